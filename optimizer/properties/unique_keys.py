"""Unique keys: sets of columns no two rows of a node agree on."""

from __future__ import annotations

from collections.abc import Callable

from penstock.catalog.types import is_integer
from penstock.planner.expressions.nodes import Cast, Column
from penstock.planner.logical.aggregate import Aggregate, Phase, WindowAggregate
from penstock.planner.logical.emit import Emit
from penstock.planner.logical.join import Join, JoinKind
from penstock.planner.logical.late_rows import LateMark
from penstock.planner.logical.lookup_join import LookupJoin
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import (
    BoundedInput,
    Exchange,
    Filter,
    Limit,
    LogicalPlan,
    Project,
    Scan,
    Sink,
    Sort,
    TopN,
    Values,
    WatermarkAssign,
    WindowTable,
)
from penstock.planner.logical.processing_time import ProcessingTime
from penstock.planner.logical.temporal_join import TemporalJoin
from penstock.planner.logical.temporal_sort import TemporalSort
from penstock.planner.logical.unnest import Unnest
from penstock.planner.logical.windows import AttachedWindow

Key = frozenset[int]
Keys = frozenset[Key]
_NONE: Keys = frozenset()
_KEYS_MAX = 16


def unique_keys(node: LogicalPlan, below: Callable[[LogicalPlan], Keys]) -> Keys:
    """Return the unique keys of a node, given how to ask for those of its inputs; at most sixteen, the
    smallest ones.
    """
    keys = _minimal(_derive(node, below))
    return (
        keys
        if len(keys) <= _KEYS_MAX
        else frozenset(sorted(keys, key=lambda key: (len(key), sorted(key)))[:_KEYS_MAX])
    )


def _minimal(keys: Keys) -> Keys:
    """A key that contains another says nothing new."""
    return frozenset(key for key in keys if not any(other < key for other in keys))


def _derive(node: LogicalPlan, below: Callable[[LogicalPlan], Keys]) -> Keys:
    match node:
        case Scan():
            return _of_scan(node)
        case Values(rows=rows):
            return frozenset({frozenset()}) if len(rows) <= 1 else _NONE
        case BoundedInput(plan=plan):
            return below(plan)
        case ProcessingTime(input=inner, time_column=time):
            return frozenset(key for key in below(inner) if time not in key)
        case (
            Filter()
            | WatermarkAssign()
            | Sort()
            | Limit()
            | TopN()
            | TemporalSort()
            | LateMark()
            | Exchange()
            | Sink()
            | Emit()
        ):
            return below(node.inputs[0])
        case Unnest(input=inner, keep=keep, ordinality=True, outer=False):
            places = {old: new for new, old in enumerate(keep)}
            last = len(node.schema) - 1
            return frozenset(
                frozenset({*(places[i] for i in key), last}) for key in below(inner) if key <= places.keys()
            )
        case Project():
            return _of_project(node, below(node.input))
        case WindowTable(input=inner, window=window):
            if not (window.overlapping or window.merging):
                return below(inner)
            return frozenset(key | {len(inner.schema) + 1} for key in below(inner))
        case Aggregate(keys=keys, phase=Phase.SINGLE | Phase.GLOBAL):
            return frozenset({frozenset(range(len(keys)))})
        case WindowAggregate(phase=Phase.SINGLE | Phase.GLOBAL):
            return _of_windows(node)
        case Over():
            numbered = {
                len(node.input.schema) + i
                for i, call in enumerate(node.calls)
                if call.function == "row_number"
            }
            return below(node.input) | {frozenset({*node.partition, position}) for position in numbered}
        case PartitionTop():
            return below(node.input) | _of_top(node)
        case Join():
            return _of_join(node, below(node.left), below(node.right))
        case TemporalJoin(left=left):
            return below(left)
        case LookupJoin(left=left, scan=scan, right_keys=right):
            return below(left) if any(key <= set(right) for key in _of_scan(scan)) else _NONE
    return _NONE


def _of_top(node: PartitionTop) -> Keys:
    """Numbered rows of a partition differ in their number, and a single one needs none."""
    keys = frozenset(node.partition)
    if node.rank != "row_number":
        return _NONE
    if node.limit == 1:
        return frozenset({keys})
    return _NONE if node.rank_name is None else frozenset({keys | {len(node.input.schema)}})


def _of_scan(node: Scan) -> Keys:
    source = node.table.source_schema
    positions = {source[column].name.lower(): i for i, column in enumerate(node.columns)}
    key = [positions.get(name.lower()) for name in node.table.primary_key]
    return frozenset({frozenset(i for i in key if i is not None)}) if key and None not in key else _NONE


def _of_project(node: Project, keys: Keys) -> Keys:
    places: dict[int, int] = {}
    for index, expression in enumerate(node.expressions):
        whole = (
            isinstance(expression, Cast)
            and not expression.safe
            and is_integer(expression.type)
            and is_integer(expression.arg.type)
        )
        kept = expression.children[0] if whole else expression  # unlike whole numbers stay unlike
        if isinstance(kept, Column):
            places.setdefault(kept.index, index)
    return frozenset(frozenset(places[i] for i in key) for key in keys if key <= places.keys())


def _of_windows(node: WindowAggregate) -> Keys:
    """A group and its window; attached windows of one start or one end may differ in the other."""
    keys = frozenset(range(len(node.keys)))
    start = len(node.keys) + len(node.aggregates)
    if isinstance(node.window, AttachedWindow):
        return frozenset({keys | {start, start + 1}})
    found = {keys | {start + 1}}
    if not node.window.ends_share_start:
        found.add(keys | {start})
    return frozenset(found)


def _of_join(node: Join, left: Keys, right: Keys) -> Keys:
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left
    width = len(node.left.schema)
    shifted = frozenset(frozenset(i + width for i in key) for key in right)
    found = {a | b for a in left for b in shifted}
    left_meets_one = any(key <= set(node.right_keys) for key in right)
    right_meets_one = any(key <= set(node.left_keys) for key in left)
    if left_meets_one and node.kind in (JoinKind.INNER, JoinKind.LEFT):
        found |= left
    if right_meets_one and node.kind in (JoinKind.INNER, JoinKind.RIGHT):
        found |= shifted
    return frozenset(found)
