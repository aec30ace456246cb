"""Aggregate before the exchange and again after it: what travels is one row per key and batch, not one per
row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    SMALLINT,
    TINYINT,
    DataType,
    Decimal,
    is_integer,
)
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.expressions.expression_properties import is_deterministic
from penstock.planner.expressions.nodes import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
)
from penstock.planner.logical.aggregate import Aggregate, Phase, WindowAggregate
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project, column_of
from penstock.planner.logical.windows import AttachedWindow, Windowing


def split_aggregates(plan: LogicalPlan) -> LogicalPlan:
    """Split aggregates over inputs that never retract into a LOCAL part that keeps nothing and a GLOBAL part
    that merges.

    Only where every aggregate merges exactly. DISTINCT does not; sums of floating-point numbers do not
    either, since their last digits would depend on where batches are cut.
    """
    facts = PlanFacts()
    return plan.transform(lambda node: _rewrite(node, facts))


def _rewrite(node: LogicalPlan, facts: PlanFacts) -> LogicalPlan:
    # What the rule made has another phase: a second pass changes nothing.
    if not isinstance(node, Aggregate | WindowAggregate) or node.phase is not Phase.SINGLE:
        return node
    # Sessions have no bounds before their rows are together, attached windows have them in each row.
    if isinstance(node, WindowAggregate) and (isinstance(node.window, AttachedWindow) or node.window.merging):
        return node
    # MIN and MAX cannot retract from a partial, and few rows gain nothing.
    if not facts.insert_only(node.input) or _already_small(node.input):
        return node
    parts = [_split_call(call) for call in node.aggregates]
    known = [part for part in parts if part is not None]
    return _split(node, known) if len(known) == len(parts) else node


def _already_small(node: LogicalPlan) -> bool:
    """Whether rows come from another aggregate, which has made few of many."""
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Aggregate | WindowAggregate)


@dataclass(frozen=True)
class _Parts:
    """How one aggregate is split: what is computed locally, how each partial is merged, and the result
    from the merged columns.
    """

    local: tuple[AggregateCall, ...]
    merge: tuple[str, ...]
    result: Callable[[tuple[Column, ...]], Expression] = lambda columns: columns[0]


# Aggregates that merge partials with the same function.
_ITSELF = frozenset({"min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"})
# Their sum is exact in BIGINT, as fewer than 2**32 of them cannot overflow it.
_SMALL_INTEGERS: tuple[DataType, ...] = (TINYINT, SMALLINT, INT)


def _split_call(call: AggregateCall) -> _Parts | None:
    # Two subtasks may see one distinct value.
    if call.distinct or not all(is_deterministic(e) for e in (*call.args, call.filter) if e is not None):
        return None
    # Counts are added; sum0 is 0 and not NULL over no partial.
    if call.function == "count":
        return _Parts((call,), ("sum0",))
    if call.function in _ITSELF:
        return _Parts((call,), (call.function,))
    # Exact sums only: DOUBLE would depend on the order of the partials.
    if call.function in ("sum", "sum0") and (is_integer(call.type) or isinstance(call.type, Decimal)):
        return _Parts((call,), (call.function,))
    # avg is sum / count, computed above the merge.
    if call.function == "avg" and call.args[0].type in _SMALL_INTEGERS and call.type == DOUBLE:
        total = replace(call, function="sum", type=BIGINT, nullable=True)
        count = replace(call, function="count", type=BIGINT, nullable=False)
        return _Parts((total, count), ("sum", "sum0"), _quotient)
    return None


def _quotient(columns: tuple[Column, ...]) -> Expression:
    """``sum / count`` as DOUBLE, NULL where nothing was counted."""
    total, count = columns
    none = Call(BOOLEAN, False, function="equal", args=(count, Literal(BIGINT, False, value=0)))
    known = Case(
        DOUBLE,
        True,
        whens=((none, Literal(DOUBLE, True, value=None)),),
        default=Cast(DOUBLE, False, arg=count),
    )
    return Call(DOUBLE, True, function="divide", args=(Cast(DOUBLE, True, arg=total), known))


def _partial_names(whole: str, part: _Parts) -> list[str]:
    return [whole] if len(part.local) == 1 else [str(call) for call in part.local]


def _split(node: Aggregate | WindowAggregate, parts: list[_Parts]) -> LogicalPlan:
    calls = tuple(call for part in parts for call in part.local)
    names = tuple(
        name for whole, part in zip(node.names, parts, strict=True) for name in _partial_names(whole, part)
    )
    # the local part runs where its rows are, whatever a hint asks of the aggregate
    local = replace(node, aggregates=calls, names=names, phase=Phase.LOCAL, subtasks=None)
    width = len(node.keys)
    merges = tuple(function for part in parts for function in part.merge)
    merged = tuple(
        AggregateCall(function, (column_of(local, width + i),), call.type, call.nullable, span=call.span)
        for i, (function, call) in enumerate(zip(merges, calls, strict=True))
    )
    keys = tuple(range(width))
    if isinstance(node, Aggregate):
        return _finish(
            node,
            Aggregate(local, keys, merged, names, Phase.GLOBAL, node.ttl_ms, subtasks=node.subtasks),
            parts,
        )
    assert isinstance(node.window, Windowing)
    # The local part appends the end of its slice as the last column: the global part merges slices by it.
    window = replace(node.window, time_column=len(local.schema) - 1, sliced=True)
    return _finish(
        node,
        WindowAggregate(
            local, window, keys, merged, names, Phase.GLOBAL, node.emission, subtasks=node.subtasks
        ),
        parts,
    )


def _finish(node: Aggregate | WindowAggregate, merged: LogicalPlan, parts: list[_Parts]) -> LogicalPlan:
    """Compute the results of aggregates that were split in two; nothing to do when there are none."""
    # Every aggregate has one partial, so the merged columns are the results.
    if all(len(part.local) == 1 for part in parts):
        return merged
    position = len(node.keys)
    expressions: list[Expression] = [column_of(merged, i) for i in range(position)]
    for part in parts:
        expressions.append(
            part.result(tuple(column_of(merged, position + i) for i in range(len(part.local))))
        )
        position += len(part.local)
    # Behind the aggregates: the bounds of the window.
    expressions += [column_of(merged, i) for i in range(position, len(merged.schema))]
    return Project(merged, tuple(expressions), tuple(node.schema.names))
