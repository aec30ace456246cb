"""Lookup joins: FOR SYSTEM_TIME AS OF a processing time, with a table in a database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog.connectors.registry import is_looked_up, reload_ms
from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import BOOLEAN, DATE, STRING, is_integer
from penstock.planner.expressions.nodes import Cast, Column, Expression, conjunction, conjuncts
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.parser.syntax_nodes import AsOf, span_of

Pair = tuple[Expression, Expression]


@dataclass(frozen=True)
class LookupSide:
    """The right side of a lookup join: a scan with its filters, and each output column over the scan's
    columns.
    """

    scan: Scan
    columns: tuple[Expression, ...]


def resolve_lookup(plan: LogicalPlan) -> LookupSide | None:
    """Return the right side of a join as a lookup table: one in a database, or one that is reloaded on an
    interval. ``None`` for any other plan.
    """
    match plan:
        # The table itself
        case Scan(table=table) if is_looked_up(table):
            return LookupSide(
                plan,
                tuple(Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(plan.schema)),
            )
        # A lookup by processing time ignores the table's event time.
        case WatermarkAssign(input=inner):
            return resolve_lookup(inner)
        # WHERE of a view or subquery joins the scan's own predicate.
        case Filter(input=inner, predicate=predicate) if (below := resolve_lookup(inner)) is not None:
            # SELECT .. FROM (SELECT * FROM t WHERE x > 1): the lookup tests it with the key
            known = () if below.scan.predicate is None else conjuncts(below.scan.predicate)
            return replace(
                below,
                scan=replace(
                    below.scan, predicate=conjunction((*known, *conjuncts(_over(predicate, below.columns))))
                ),
            )
        # Projected columns are inlined down to the scan's columns.
        case Project(input=inner, expressions=expressions) if (below := resolve_lookup(inner)) is not None:
            return replace(
                below, columns=tuple(_over(expression, below.columns) for expression in expressions)
            )
    return None


def reject_reloaded(plan: LogicalPlan, tree: AsOf) -> None:
    """Raise SQL-1730 if a plan reads a table that is reloaded on an interval.

    Call it for a plan other than a scan with filters and projections: the join would load such a plan only
    once.
    """
    again = [
        node.table.name
        for node in plan.walk()
        if isinstance(node, Scan) and reload_ms(node.table) is not None
    ]
    if again:
        message = (
            f"{again[0]} is read again on an interval, and that is joined as a table, with filters and "
            "columns at most"
        )
        hint = "join the table itself and aggregate after that, or leave 'scan.reload.interval' out"
        raise PenstockError("SQL-1730", message, span=span_of(tree.this), hint=hint, sqlstate="0A000")


def _over(expression: Expression, columns: Sequence[Expression]) -> Expression:
    return expression.transform(lambda node: columns[node.index] if isinstance(node, Column) else node)


def in_terms_of(parts: Sequence[Expression], looked: LookupSide, width: int) -> tuple[Expression, ...]:
    """Rewrite conditions over left ++ right to left ++ scan."""

    def moved(node: Expression) -> Expression:
        if not isinstance(node, Column) or node.index < width:
            return node
        right = looked.columns[node.index - width]
        return right.remap({i: i + width for i in right.columns()})

    return tuple(part.transform(moved) for part in parts)


def is_lookup_key(pair: Pair) -> bool:
    """Return whether an equality can be a lookup key: a plain column, of a type that compares alike in all
    databases.
    """
    # INT = BIGINT widens the table's column; the key is the column beneath
    column = pair[1].arg if isinstance(pair[1], Cast) else pair[1]
    if not isinstance(column, Column):
        return False
    # Integers of any width compare alike; other types must be equal.
    same = pair[0].type == column.type or (is_integer(pair[0].type) and is_integer(column.type))
    return same and (is_integer(column.type) or column.type in (STRING, DATE, BOOLEAN))


def lookup_keys(pairs: Sequence[tuple[Expression, Pair]]) -> list[tuple[Expression, Pair]]:
    """Return the equalities that form the lookup key, one per database column."""
    first: dict[int, tuple[Expression, Pair]] = {}
    for part, pair in pairs:
        if is_lookup_key(pair):
            # t.k = a AND t.k = b: one is the key, the other a condition on the joined row.
            first.setdefault(_column(pair[1]).index, (part, pair))
    return list(first.values())


def lookup_plan(
    left: LogicalPlan,
    looked: LookupSide,
    kind: JoinKind,
    keys: Sequence[tuple[int, Expression]],
    of_table: Sequence[Expression],
    tests: Sequence[Expression],
) -> LogicalPlan:
    """Return the lookup join. ``keys`` are columns of the left side and of the scan; ``of_table`` are
    conditions over the scan, ``rest`` over left ++ scan.
    """
    known = () if looked.scan.predicate is None else conjuncts(looked.scan.predicate)
    # conditions over the table alone are sent to the database
    scan = replace(looked.scan, predicate=conjunction((*known, *of_table))) if of_table else looked.scan
    right_keys = tuple(_column(right).index for _, right in keys)
    return LookupJoin(
        left,
        scan,
        kind,
        tuple(index for index, _ in keys),
        right_keys,
        conjunction(tuple(tests)) if tests else None,
    )


def _column(expression: Expression) -> Column:
    column = expression.arg if isinstance(expression, Cast) else expression
    assert isinstance(column, Column)
    return column


def refuse_keyless(tree: AsOf) -> PenstockError:
    """Return SQL-1728 for a join without a lookup key."""
    message = (
        "a lookup join compares a column of the table it looks up, a whole number, STRING, DATE or "
        "BOOLEAN, for equality"
    )
    hint = "write ON l.k = t.k AND ..; compute what the column is compared with on the left side"
    return PenstockError("SQL-1728", message, span=span_of(tree), hint=hint, sqlstate="0A000")


def refuse_computed(looked: LookupSide, kind: JoinKind, tree: AsOf) -> None:
    """Refuse computed columns in the table of a LEFT lookup join; SQL-1728. They are computed above the join,
    where an unmatched row has only NULLs.
    """
    # SELECT COALESCE(x, 0) AS x FROM t: without a match x would be 0 and not NULL
    computed = [column for column in looked.columns if not isinstance(column, Column)]
    if computed and kind is JoinKind.LEFT:
        message = "a LEFT lookup join takes the columns of a table as they are, and this one computes some"
        hint = "compute them in SELECT, or write JOIN"
        raise PenstockError("SQL-1728", message, span=span_of(tree), hint=hint, sqlstate="0A000")
