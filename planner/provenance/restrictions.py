"""Restrictions of the rows of a plan node: conditions, and semi-joins with other rows. They say which rows of
a node belong to the provenance of a result row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.catalog.coercion import is_orderable
from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Role
from penstock.catalog.types import BOOLEAN
from penstock.planner.expressions.nodes import Call, Column, Expression, conjunction
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.process_table import ProcessTable
from penstock.planner.logical.projection import Filter, column_of, select_columns


@dataclass(frozen=True)
class Restriction:
    """A condition that a row of a node meets. With ``rows`` it reads the columns of the node, then those of
    ``rows``, and one of these rows must make it TRUE.
    """

    condition: Expression
    rows: LogicalPlan | None = None

    def columns(self, width: int) -> frozenset[int]:
        """Return the columns of the node that the condition reads; the node has ``width`` columns."""
        return frozenset(index for index in self.condition.columns() if index < width)

    def moved(self, definitions: Sequence[Expression | None], width: int) -> Restriction:
        """Return the restriction of another node of ``width`` columns. ``definitions`` are the columns of
        this node as expressions over the other one; None for a column that the condition does not read.
        """
        old = len(definitions)

        def move(node: Expression) -> Expression:
            if not isinstance(node, Column):
                return node
            if node.index >= old:
                return replace(node, index=node.index - old + width)
            moved = definitions[node.index]
            assert moved is not None
            return moved

        return Restriction(self.condition.transform(move), self.rows)


Restrictions = tuple[Restriction, ...]
"""Restrictions that a row meets all together."""


def moved(restrictions: Restrictions, definitions: Sequence[Expression | None], width: int) -> Restrictions:
    """Return restrictions over the columns of another node; see ``Restriction.moved``."""
    return tuple(one.moved(definitions, width) for one in restrictions)


def widened(restrictions: Restrictions, narrow: LogicalPlan, wide: LogicalPlan) -> Restrictions:
    """Return restrictions of a node for one that has its columns first, and more behind them."""
    columns = tuple(column_of(wide, i) for i in range(len(narrow.schema)))
    return moved(restrictions, columns, len(wide.schema))


def split_by_columns(
    restrictions: Restrictions, width: int, known: Iterable[int]
) -> tuple[Restrictions, Restrictions]:
    """Return the restrictions that read only the ``known`` columns of a node, and the others."""
    columns = frozenset(known)
    within = tuple(one for one in restrictions if one.columns(width) <= columns)
    return within, tuple(one for one in restrictions if one not in within)


def restrict(node: LogicalPlan, restrictions: Restrictions) -> LogicalPlan:
    """Return the rows of a node that meet all restrictions, each as often as it is there."""
    plain = tuple(one.condition for one in restrictions if one.rows is None)
    if plain:
        node = Filter(node, conjunction(plain))
    for one in restrictions:
        if one.rows is not None:
            node = Join(node, one.rows, JoinKind.SEMI, (), (), one.condition)
    return node


def rows_like(pairs: Iterable[tuple[Expression, int]], width: int, rows: LogicalPlan) -> Restriction:
    """Return the restriction to rows whose expressions equal columns of some of ``rows``. NULL equals NULL.
    ``pairs``: an expression over the node, which has ``width`` columns, and the column it equals.
    """
    equal = []
    for expression, index in pairs:
        other = rows.schema[index]
        # maps have no equality; the clock is read again by each run
        if not is_orderable(other.type) or other.role is Role.PROCESSING_TIME:
            continue
        column = Column(other.type, other.nullable, index=width + index, name=other.name)
        function = "null_safe_equal" if expression.nullable or other.nullable else "equal"
        equal.append(Call(BOOLEAN, False, function=function, args=(expression, column)))
    return Restriction(conjunction(tuple(equal)), rows)


def same_rows(node: LogicalPlan, rows: LogicalPlan, first: int = 0) -> Restriction:
    """Return the restriction of a node to the rows that some of ``rows`` have as their columns from ``first``
    on. Rows that are equal in every column are all among them.
    """
    width = len(node.schema)
    needed = select_columns(rows, range(first, first + width))
    return rows_like(((column_of(node, i), i) for i in range(width)), width, needed)


def no_lineage(node: LogicalPlan) -> PenstockError:
    """Return the error of an operator whose input rows are not known."""
    if isinstance(node, ProcessTable):
        what, hint = f"the function {node.function.name}", "ask about the query that it is called with"
    else:
        what, hint = f"an operator: {node.operator_name()}", "ask about the query below it"
    message = f"EXPLAIN WHY does not know the input rows of {what}"
    return PenstockError("WHY-7102", message, hint=hint, sqlstate="0A000")


def field_column(field: Field, index: int) -> Column:
    """Return a reference to a column by its field."""
    return Column(field.type, field.nullable, index=index, name=field.name)
