"""What a node keeps between rows, and whether that stays bounded."""

from __future__ import annotations

from typing import Protocol

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.logical.aggregate import Aggregate, Phase, WindowAggregate
from penstock.planner.logical.emit import Emit, EmitKind
from penstock.planner.logical.joins.interval_join import IntervalJoin
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.joins.snapshot_join import SnapshotJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.match_recognize import MatchRecognize
from penstock.planner.logical.node_text import duration_text
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.sort import Limit, TemporalSort, TopN
from penstock.planner.logical.time_attributes import ProcessingTime, WatermarkAssign
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import Windowing


class _Facts(Protocol):
    def finite(self, node: LogicalPlan) -> bool: ...

    def insert_only(self, node: LogicalPlan) -> bool: ...

    def bounded_ports(self, join: BinaryJoin) -> tuple[int, ...]: ...

    def in_time(self, node: Over) -> bool: ...

    def side_ttl_ms(self, join: BinaryJoin, port: int) -> int: ...

    def ttl_ms(self, node: Aggregate | Over | PartitionTop | TemporalJoin | MatchRecognize) -> int: ...


@dataclass(frozen=True)
class StateBound:
    """What a node keeps (None: nothing between rows), why it grows as long as rows come (None: it does
    not), and how long entries live untouched.
    """

    keeps: str | None
    grows: str | None = None
    ttl: str | None = None


_NOTHING = StateBound(None)
_BEST = frozenset({"min", "max", "any_value", "max_by", "min_by", "first_value", "last_value"})


def state_bound(node: LogicalPlan, facts: _Facts) -> StateBound:
    """Return what a node keeps and what bounds it. Inputs that end bound everything."""
    bound = _without_ttl(node, facts)
    match node:
        case BinaryJoin() if not isinstance(node, SnapshotJoin):
            times = [facts.side_ttl_ms(node, port) for port in (0, 1)]
            if not any(times):
                return bound
            endless = [port for port in (0, 1) if not times[port] and not facts.finite(node.inputs[port])]
            text = (
                _lived(times[0])
                if times[0] == times[1]
                else ", ".join(f"{_lived(t)} {s}" for t, s in zip(times, ("left", "right"), strict=True) if t)
            )
            grows = (
                f"rows of the {('left', 'right')[endless[0]]} side are kept for ever; give it a "
                "STATE_TTL as well"
                if endless
                else None
            )
            return StateBound(bound.keeps, grows, text)
        case Aggregate() | Over() | PartitionTop() | TemporalJoin() | MatchRecognize() if facts.ttl_ms(node):
            return StateBound(bound.keeps, None, _lived(facts.ttl_ms(node)))
    return bound


def _lived(ttl_ms: int) -> str:
    return duration_text(ttl_ms * 1000)


def _without_ttl(node: LogicalPlan, facts: _Facts) -> StateBound:
    match node:
        case Aggregate(phase=Phase.LOCAL) | WindowAggregate(phase=Phase.LOCAL):
            return StateBound("partial results until the next watermark or batch")
        case WindowAggregate(input=inner, window=Windowing(merging=True)) if not facts.insert_only(inner):
            late = f" by {duration_text(node.emission.lateness_us)}" if node.emission.lateness_us else ""
            return StateBound(
                f"rows of open sessions, freed when the watermark passes the session's end{late}"
            )
        case WindowAggregate():
            late = f" by {duration_text(node.emission.lateness_us)}" if node.emission.lateness_us else ""
            return StateBound(
                f"one entry per key and open window, dropped when the watermark passes the window's end{late}"
            )
        case TemporalSort():
            return StateBound("rows until the watermark passes them")
        case WindowTable(window=window) if window.merging:
            return StateBound("rows of open sessions, freed when the watermark passes the session's end")
        case Emit(kind=EmitKind.FINAL):
            return StateBound("every row until all have come")
        case Emit():
            return StateBound("changes until they are given")
        case Aggregate():
            return _of_aggregate(node, facts)
        case BinaryJoin():
            return _of_join(node, facts)
        case TemporalJoin():
            return _of_temporal_join(node, facts)
        case LookupJoin():
            return StateBound("rows whose answers are under way")
        case TopN(limit=limit, offset=offset):
            if facts.insert_only(node.input):
                return StateBound(f"the first {limit + offset} rows")
            return _unless_finite(
                node, facts, "every row", "a row taken back may let any other row into the first"
            )
        case PartitionTop():
            return _of_partition_top(node, facts)
        case Over():
            return _of_over(node, facts)
        case MatchRecognize():
            return _of_matches(node, facts)
        case Limit(input=inner):
            if facts.insert_only(inner):
                return StateBound("a count")
            return _unless_finite(
                node, facts, "every row", "a row taken back lets any other row take its place"
            )
        case WatermarkAssign():
            return StateBound("one watermark per split")
        case ProcessingTime():
            return StateBound("the last time given")
    return _NOTHING


def _unless_finite(node: LogicalPlan, facts: _Facts, keeps: str, grows: str) -> StateBound:
    return StateBound(keeps, None if all(facts.finite(child) for child in node.inputs) else grows)


def _of_aggregate(node: Aggregate, facts: _Facts) -> StateBound:
    source = node.input.schema
    keys = ", ".join(source[key].name for key in node.keys)
    if node.keys:
        return _unless_finite(
            node,
            facts,
            "one entry per key",
            f"each distinct ({keys}) keeps an entry for ever; group by a window as well",
        )
    if any(call.distinct for call in node.aggregates):
        return _unless_finite(
            node,
            facts,
            "the distinct values",
            "DISTINCT keeps every value it has seen; aggregate within a window",
        )
    if keepers := [call.function for call in node.aggregates if call.keeps_values]:
        return _unless_finite(
            node,
            facts,
            "every value",
            f"{keepers[0]} keeps every value it has seen; aggregate within a window",
        )
    if any(call.function in _BEST for call in node.aggregates) and not facts.insert_only(node.input):
        return _unless_finite(node, facts, "every value", "a value taken back may bring back any earlier one")
    return StateBound("one row")


def _of_partition_top(node: PartitionTop, facts: _Facts) -> StateBound:
    inserts = facts.insert_only(node.input)
    keeps = f"the first {node.limit} of each partition" if inserts else "every row"
    if node.window is not None and inserts:
        return StateBound(f"{keeps}, freed when the watermark passes the window's end")
    if not inserts:
        return _unless_finite(
            node, facts, keeps, "a row taken back may let any other row of its partition into the first"
        )
    if not node.partition:
        return StateBound(f"the first {node.limit} rows")
    names = ", ".join(node.input.schema[key].name for key in node.partition)
    return _unless_finite(
        node,
        facts,
        keeps,
        f"each distinct ({names}) keeps its first rows for ever; partition by a window as well",
    )


def _of_over(node: Over, facts: _Facts) -> StateBound:
    names = ", ".join(node.input.schema[key].name for key in node.partition)
    if not facts.in_time(node):
        why = (
            "any row may still change"
            if facts.insert_only(node.input)
            else "the input takes rows back, and any row may still change"
        )
        return _unless_finite(
            node, facts, "every row", f"{why}; order by a time attribute to let time settle rows"
        )
    held = "rows until the watermark passes them"
    if node.window is not None:
        return StateBound(f"{held}, and what each partition needs until its window ends")
    if node.remembers is None:
        return StateBound(f"{held}, and those within the frame; freed by the watermark")
    if not node.partition:
        return StateBound(f"{held}, and {node.remembers}")
    return _unless_finite(
        node,
        facts,
        f"{held}, and per partition {node.remembers}",
        f"each distinct ({names}) keeps {node.remembers} for ever",
    )


def _of_matches(node: MatchRecognize, facts: _Facts) -> StateBound:
    """A match in the making is given up by WITHIN; without it, it may wait for its next row for ever."""
    held = "rows until the watermark passes them, and those of matches in the making"
    names = ", ".join(node.input.schema[key].name for key in node.partition)
    if node.counts and node.partition:
        return _unless_finite(
            node,
            facts,
            f"{held}, and a number per partition",
            f"each distinct ({names}) keeps the number of its matches for ever",
        )
    if node.history and node.partition:
        kept = f"its last {node.history} rows"
        return _unless_finite(
            node,
            facts,
            f"{held}, and of each partition {kept}",
            f"each distinct ({names}) keeps {kept} for ever",
        )
    if node.within_us is None:
        return _unless_finite(
            node,
            facts,
            held,
            "a match in the making may wait for its next row for ever; add WITHIN INTERVAL ..",
        )
    return StateBound(held)


def _of_snapshot_join(node: SnapshotJoin, facts: _Facts) -> StateBound:
    keeps, ttl_ms = (
        "the right side as it is, and rows of the left side until that is loaded",
        facts.side_ttl_ms(node, 1),
    )
    if ttl_ms:
        return StateBound(keeps, None, _lived(ttl_ms))
    return StateBound(
        keeps,
        None
        if facts.finite(node.right)
        else "rows of the right side are kept until they are taken back; say state_ttl",
    )


def _of_join(node: BinaryJoin, facts: _Facts) -> StateBound:
    if isinstance(node, SnapshotJoin):
        return _of_snapshot_join(node, facts)
    first = facts.bounded_ports(node)
    if first:
        return StateBound("the left side" if first == (0,) else "the right side")
    if isinstance(node, IntervalJoin):
        return _of_interval_join(node)
    endless = [
        name for name, side in zip(("left", "right"), node.inputs, strict=True) if not facts.finite(side)
    ]
    sides = " and the ".join(endless)
    grows = (
        f"rows of the {sides} side are kept for ever, as any may match later; join within a window or "
        "an interval, or a bounded table"
    )
    return StateBound("rows of both sides", grows if endless else None)


def _of_temporal_join(node: TemporalJoin, facts: _Facts) -> StateBound:
    names = ", ".join(node.right.schema[key].name for key in node.right_keys)
    keeps = (
        "rows of the left side until the watermark passes them, and per key the version in force and "
        "later ones"
    )
    return StateBound(
        keeps,
        None
        if facts.finite(node.right)
        else f"each distinct ({names}) of the right side keeps its last version for ever",
    )


def _of_interval_join(node: IntervalJoin) -> StateBound:
    """A row is freed when its earliest deadline has passed; a side without deadlines keeps its rows."""
    words = [_freed(node, port) for port in (0, 1)]
    keeps = (
        "rows of both sides until their window ends"
        if node.time.of_windows
        else f"rows of the left side {words[0]}, of the right side {words[1]}"
    )
    for port, side in enumerate(node.time.sides):
        # also of a side that ends: what it keeps grows with it, and the words for it say "for ever"
        if not side.deadlines:
            mine, theirs = ("left", "right")[port], ("left", "right")[1 - port]
            time = node.inputs[1 - port].schema[node.time.sides[1 - port].time_column].name
            why = (
                f"rows of the {mine} side are kept for ever, as nothing bounds {time} of the {theirs} "
                "side from above; bound it from both sides"
            )
            return StateBound(keeps, why)
    return StateBound(keeps)


def _freed(node: IntervalJoin, port: int) -> str:
    side, schema = node.time.sides[port], node.inputs[port].schema
    if not side.deadlines:
        return "for ever"
    times = sorted({_late_text(schema[d.column].name, d.offset_us) for d in side.deadlines})
    return f"until the watermark passes {' or '.join(times)}"


def _late_text(name: str, offset_us: int) -> str:
    if offset_us == 0:
        return name
    return f"{name} {'+' if offset_us > 0 else '-'} {duration_text(abs(offset_us))}"
