"""Runtime filters: rows of one side are tested against the keys of a join's loaded side before they travel to
the join.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import INTEGERS, is_integer
from penstock.planner.expressions.nodes import Cast, Column, Expression
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.node_digest import hash_parts
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan, SourceFacts
from penstock.planner.physical.operator_specs import AnyOperatorSpec, Calc, OperatorSpec

_ID_LENGTH = 16


@dataclass(frozen=True)
class RuntimeFilter(LogicalPlan):
    """Keep the rows whose ``keys`` occur in the loaded side of the join ``join_id``. Until those keys are
    known, keep all rows.
    """

    join_id: str
    keys: tuple[int, ...]

    @property
    def keeps_state(self) -> bool:
        return False


def runtime_filter(join: BinaryJoin, port: int, join_id: str) -> AnyOperatorSpec:
    """Return the runtime filter before a port of a join."""
    side, keys = (join.left, join.left_keys) if port == 0 else (join.right, join.right_keys)
    name = f"runtime filter on {', '.join(side.schema[key].name for key in keys)}"
    # derived from the join's id, so it is as stable
    operator_id = hash_parts("runtime filter", join_id)[:_ID_LENGTH]
    return OperatorSpec(operator_id, name, side.schema, RuntimeFilter(join_id, keys))


def skipping(chain: tuple[AnyOperatorSpec, ...]) -> tuple[AnyOperatorSpec, ...]:
    """Return the operators of a chain, with those runtime filters in its source's facts that apply to rows as
    they are read.

    A filter above a watermark assigner does not apply: event time needs all rows. A filter above an
    expression that may fail does not either: the query fails with and without the filter.
    """
    source = chain[0]
    if not isinstance(source.node, Scan):
        return chain
    # the scan column behind each column of the current operator
    scan_columns = tuple(range(len(source.schema)))
    skips: list[tuple[str, tuple[int, ...]]] = []
    for spec in chain[1:]:
        # follow the chain from the source until an operator that needs or changes every row
        node = spec.node
        if isinstance(node, RuntimeFilter):
            skips.append((node.join_id, tuple(scan_columns[key] for key in node.keys)))
        # a projection of bare columns only renames positions
        elif isinstance(node, Calc) and node.predicate is None and node.projections:
            columns = [_column(expression) for expression in node.projections]
            if None in columns:
                break
            scan_columns = tuple(scan_columns[column] for column in columns if column is not None)
        else:
            break
    return (replace(source, facts=SourceFacts(skips=tuple(skips))), *chain[1:]) if skips else chain


def _column(expression: Expression) -> int | None:
    """Return the column that an expression is. A cast to a wider integer counts, since it keeps the order."""
    if isinstance(expression, Cast) and is_integer(expression.type) and is_integer(expression.arg.type):
        widens = INTEGERS.index(expression.type) >= INTEGERS.index(expression.arg.type)
        # a narrowing cast may raise, and a query that fails must fail without the filter too
        return _column(expression.arg) if widens else None
    return expression.index if isinstance(expression, Column) else None
