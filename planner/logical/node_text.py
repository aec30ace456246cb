"""Plan nodes in words: the line EXPLAIN prints for a node, and the short name of its operator."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from penstock.catalog.connectors.lookup import lookup_option, reload_ms
from penstock.catalog.schema import Schema
from penstock.catalog.types import Row, Timestamp, TimestampLtz
from penstock.planner.expressions.nodes import AggregateCall, Column, Expression, SortKey
from penstock.planner.logical.aggregate import Aggregate, Phase, WindowAggregate
from penstock.planner.logical.distribution import Edge, Partition
from penstock.planner.logical.emit import Emit
from penstock.planner.logical.interval_join import TimedJoin
from penstock.planner.logical.join import Join, JoinKind
from penstock.planner.logical.late_rows import LateMark
from penstock.planner.logical.lookup_join import LookupJoin
from penstock.planner.logical.match_recognize import MatchRecognize, Value
from penstock.planner.logical.over import RANKS, RUNNING, WHOLE, Frame, Over, PartitionTop
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
    StatementSet,
    TopN,
    Union,
    Values,
    WatermarkAssign,
    WindowTable,
)
from penstock.planner.logical.processing_time import ProcessingTime
from penstock.planner.logical.replicate_rows import Repeat
from penstock.planner.logical.snapshot_join import SnapshotJoin
from penstock.planner.logical.temporal_join import TemporalJoin
from penstock.planner.logical.temporal_sort import TemporalSort
from penstock.planner.logical.unnest import Unnest
from penstock.planner.logical.windows import AttachedWindow, Emission, Windowing, WindowKind

_UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000))


def describe(node: LogicalPlan) -> str:
    """Return one line saying what a node does, columns by name."""
    match node:
        case Scan(predicate=predicate):
            kept = "" if predicate is None else f" where {named(predicate, node.schema)}"
            return f"Scan {node.table.name} [{', '.join(_scanned(node))}]{kept}"
        case Values(rows=rows):
            return f"Values {len(rows)} row{'' if len(rows) == 1 else 's'} [{', '.join(node.schema.names)}]"
        case BoundedInput():
            once = f", computed once for {node.readers} readers" if node.readers > 1 else ""
            return f"BoundedInput [{', '.join(node.schema.names)}]{once}"
        case Filter(input=inner, predicate=predicate):
            return f"Filter {named(predicate, inner.schema)}"
        case Project(input=inner, expressions=expressions, names=names):
            return (
                "Project "
                f"{', '.join(_item(e, n, inner.schema) for e, n in zip(expressions, names, strict=True))}"
            )
        case WatermarkAssign(input=inner, time_column=time, watermark=watermark):
            return f"WatermarkAssign {inner.schema[time].name} AS {named(watermark, inner.schema)}"
        case ProcessingTime(input=inner, time_column=time):
            return f"ProcessingTime {inner.schema[time].name}"
        case LateMark(input=inner, window=window, lateness_us=lateness_us):
            return (
                "LateMark "
                f"{window_text(window, inner.schema)}{emission_text(Emission(lateness_us=lateness_us))}"
            )
        case WindowTable(input=inner, window=window):
            return f"WindowTable {window_text(window, inner.schema)}"
        case Aggregate() | WindowAggregate():
            return _describe_aggregate(node)
        case Join():
            return _describe_join(node)
        case TemporalJoin():
            return _describe_temporal_join(node)
        case LookupJoin():
            return _describe_lookup_join(node)
        case Exchange(input=inner, edge=edge):
            return f"Exchange {edge_text(edge, inner.schema)}"
    return _describe_ending(node)


def _describe_ending(node: LogicalPlan) -> str:
    match node:
        case Sort(input=inner):
            return f"Sort {_order(node.keys, inner.schema)}"
        case TopN(input=inner, limit=limit, offset=offset):
            return f"TopN {limit}{f' offset {offset}' if offset else ''} by {_order(node.keys, inner.schema)}"
        case Limit(limit=limit, offset=offset):
            return f"Limit {'all' if limit is None else limit}{f' offset {offset}' if offset else ''}"
        case Unnest():
            return _describe_unnest(node)
        case Repeat(input=inner):
            return f"Repeat by {inner.schema.names[-1]}"
        case Union(branches=branches):
            return f"Union {len(branches)} inputs"
        case Over():
            return _describe_over(node)
        case PartitionTop(rank=rank, limit=limit, rank_name=name):
            shown = "" if name is None else f" AS {name}"
            return f"PartitionTop {rank}{shown} <= {limit}{_specification(node)}"
        case TemporalSort(input=inner):
            return f"TemporalSort {_order(node.keys, inner.schema)}"
        case Emit(kind=kind, emission=emission):
            return (
                "Emit "
                f"{kind.value}{f' every {duration_text(emission.every_us)}' if emission.every_us else ''}"
            )
        case MatchRecognize():
            return _describe_matches(node)
        case Sink(table=table):
            return f"Sink {'to the client' if table is None else table.name} [{', '.join(node.schema.names)}]"
        case StatementSet(sinks=sinks):
            return f"StatementSet {len(sinks)} sinks"
    raise AssertionError(type(node))


def _scanned(node: Scan) -> list[str]:
    """The columns a scan reads, with the fields of rows that are not read whole."""
    declared = {field.name: field.type for field in node.table.schema}
    texts = []
    for field in node.schema:
        whole = not isinstance(field.type, Row) or declared.get(field.name, field.type) == field.type
        texts.append(
            field.name
            if whole or not isinstance(field.type, Row)
            else f"{field.name}({', '.join(name for name, _ in field.type.fields)})"
        )
    return texts


def _describe_unnest(node: Unnest) -> str:
    schema = node.input.schema
    names = [node.call.columns[i].name for i in node.gives] + (["ordinality"] if node.ordinality else [])
    call = f"{node.call.function}({', '.join(named(arg, schema) for arg in node.call.args)})"
    condition = "" if node.condition is None else f" ON {node.condition}"
    kept = ", ".join(schema[i].name for i in node.keep) or "nothing"
    return f"Unnest {'outer ' if node.outer else ''}{call} AS {', '.join(names)}{condition}, keeping {kept}"


def _describe_over(node: Over) -> str:
    schema = node.input.schema
    calls = ", ".join(
        _labelled(_call_text(call, schema), name) for call, name in zip(node.calls, node.names, strict=True)
    )
    framed = any(call.function not in RANKS | {"lag", "lead"} for call in node.calls)
    frame = f" {frame_text(node.frame, node.order)}" if framed and node.frame not in (RUNNING, WHOLE) else ""
    return f"Over{' in time' if node.timely else ''}{_specification(node)}{frame}: {calls}"


def _describe_matches(node: MatchRecognize) -> str:
    schema = node.input.schema
    measures = "".join(f", {_measure(e, n, node)}" for e, n in zip(node.measures, node.names, strict=True))
    defined = ", ".join(
        f"{node.variables[d.variable]} AS {_over_values(d.condition, d.values, node)}"
        for d in node.definitions
    )
    rows = "|".join(node.variables[number] for number in sorted(node.skip_rows))
    within = "" if node.within_us is None else f" within {duration_text(node.within_us)}"
    head = (
        f"MatchRecognize ({node.pattern}){within}{_per(' per', node.partition, schema)} by "
        f"{_order(node.order, schema)}"
    )
    shown = "all rows" if node.all_rows else "one row"
    return (
        f"{head}, {shown} per match, skip {node.skip}{f' {rows}' if rows else ''}{measures} where {defined}"
    )


def _measure(expression: Expression, name: str, node: MatchRecognize) -> str:
    return f"{_over_values(expression, node.values, node)} AS {name}"


def _over_values(expression: Expression, values: Sequence[Value], node: MatchRecognize) -> str:
    names = node.input.schema.names

    def shown(part: Expression) -> Expression:
        return (
            Column(
                part.type,
                part.nullable,
                index=part.index,
                name=values[part.index].words(node.variables, names),
            )
            if isinstance(part, Column)
            else part
        )

    text = str(expression.transform(shown))
    return text[1:-1] if _is_wrapped(text) else text


def _specification(node: Over | PartitionTop) -> str:
    schema = node.input.schema
    return (
        f"{_per(' per', node.partition, schema)}{f' by {_order(node.order, schema)}' if node.order else ''}"
    )


def frame_text(frame: Frame, order: Sequence[SortKey]) -> str:
    """Return a frame in words, distances of time in their largest unit."""
    timed = frame.has_distance and isinstance(order[0].expression.type, Timestamp | TimestampLtz)
    return re.sub(r"\d+", lambda size: duration_text(int(size[0])), str(frame)) if timed else str(frame)


def _order(keys: Sequence[SortKey], schema: Schema) -> str:
    words = []
    for key in keys:
        nulls = (
            ""
            if key.nulls_first != key.descending
            else (" NULLS FIRST" if key.nulls_first else " NULLS LAST")
        )
        words.append(f"{named(key.expression, schema)}{' DESC' if key.descending else ''}{nulls}")
    return ", ".join(words)


def named(expression: Expression, schema: Schema) -> str:
    """Return an expression as text with its columns named as a schema names them now (repeated names get
    their position).
    """
    names = schema.names

    def rename(node: Expression) -> Expression:
        if not isinstance(node, Column):
            return node
        name = names[node.index]
        return Column(
            node.type,
            node.nullable,
            index=node.index,
            name=name if names.count(name) == 1 else f"{name}#{node.index}",
        )

    text = str(expression.transform(rename))
    return text[1:-1] if _is_wrapped(text) else text


def _is_wrapped(text: str) -> bool:
    """Whether the first parenthesis closes with the last character."""
    depth, quoted = 0, False
    for position, character in enumerate(text):
        quoted ^= character == "'"
        depth += 0 if quoted else (character == "(") - (character == ")")
        if depth == 0:
            return position == len(text) - 1 and text.startswith("(")
    return False


def _item(expression: Expression, name: str, schema: Schema) -> str:
    return _labelled(named(expression, schema), name)


def _labelled(text: str, name: str) -> str:
    return text if text == name else f"{text} AS {name}"


def window_text(window: Windowing | AttachedWindow, schema: Schema) -> str:
    """Return a window in words: its kind, time column and sizes."""
    if isinstance(window, AttachedWindow):
        return f"attached({schema[window.start_column].name}, {schema[window.end_column].name})"
    sizes = [duration_text(window.size_us)]
    if window.kind in (WindowKind.HOP, WindowKind.CUMULATE):
        sizes.insert(0, duration_text(window.step_us))
    if window.offset_us:
        sizes.append(f"offset {duration_text(window.offset_us)}")
    if window.partition_keys:
        sizes.append(f"per {', '.join(schema[key].name for key in window.partition_keys)}")
    return f"{window.kind.value}({schema[window.time_column].name}, {', '.join(sizes)})"


def emission_text(emission: Emission) -> str:
    """Return when windows give rows, in words; nothing for when they close."""
    early = (
        f" early{f' every {duration_text(emission.every_us)}' if emission.every_us else ''}"
        if emission.early
        else ""
    )
    return early + (f" lateness {duration_text(emission.lateness_us)}" if emission.lateness_us else "")


def duration_text(us: int) -> str:
    """Return microseconds in the largest unit that divides them: ``90 s`` is ``90 s``, an hour is ``1 h``."""
    for unit, size in _UNITS:
        if us % size == 0 and us:
            return f"{us // size} {unit}"
    return f"{us} us"


def _describe_aggregate(node: Aggregate | WindowAggregate) -> str:
    schema = node.input.schema
    phase = "" if node.phase is Phase.SINGLE else f"{node.phase.value.capitalize()} "
    words = [f"{phase}{type(node).__name__}"]
    if isinstance(node, WindowAggregate):
        words.append(window_text(node.window, schema) + emission_text(node.emission))
    if node.keys:
        words.append(f"by {', '.join(schema[key].name for key in node.keys)}")
    calls = ", ".join(
        _labelled(_call_text(call, schema), name)
        for call, name in zip(node.aggregates, node.names, strict=True)
    )
    return " ".join(words) + (f": {calls}" if calls else "")


def _call_text(call: AggregateCall, schema: Schema) -> str:
    return str(call.map(lambda e: e.transform(lambda n: _renamed(n, schema))))


def _renamed(node: Expression, schema: Schema) -> Expression:
    return (
        Column(node.type, node.nullable, index=node.index, name=schema[node.index].name)
        if isinstance(node, Column)
        else node
    )


def _describe_join(node: Join) -> str:
    left, right = node.left.schema, node.right.schema
    conditions = [
        f"{left[a].name} = {right[b].name}" for a, b in zip(node.left_keys, node.right_keys, strict=True)
    ]
    if node.residual is not None:
        conditions.append(named(node.residual, left.concat(right)))
    kind = "cross" if node.kind is JoinKind.INNER and not conditions else node.kind.value
    loading = _loading(node) if isinstance(node, SnapshotJoin) else ""
    pruning = "" if node.pruned is None else f", {_pruning(node, node.pruned)}"
    return f"{_timing(node)}Join {kind}{f' on {_and(conditions)}' if conditions else ''}{loading}{pruning}"


def _pruning(node: Join, port: int) -> str:
    """Which rows a runtime filter keeps from the join, by the tables they are read of."""
    side, keys = (node.left, node.left_keys) if port == 0 else (node.right, node.right_keys)
    reads = (
        below
        for node in side.walk()
        for below in (node.plan.walk() if isinstance(node, BoundedInput) else (node,))
    )
    tables = dict.fromkeys(scan.table.name for scan in reads if isinstance(scan, Scan))
    return f"runtime filter on {', '.join(side.schema[key].name for key in keys)} of {', '.join(tables)}"


def _describe_temporal_join(node: TemporalJoin) -> str:
    left, right = node.left.schema, node.right.schema
    conditions = [
        f"{left[a].name} = {right[b].name}" for a, b in zip(node.left_keys, node.right_keys, strict=True)
    ]
    if node.residual is not None:
        conditions.append(named(node.residual, left.concat(right)))
    return (
        f"TemporalJoin {node.kind.value} on {_and(conditions)} as of {left[node.left_time].name}, "
        f"versions by {right[node.right_time].name}"
    )


def _describe_lookup_join(node: LookupJoin) -> str:
    left, scan = node.left.schema, node.scan.schema
    conditions = [
        f"{left[a].name} = {scan[b].name}" for a, b in zip(node.left_keys, node.right_keys, strict=True)
    ]
    if node.residual is not None:
        conditions.append(named(node.residual, left.concat(scan)))
    kept = "" if node.scan.predicate is None else f" where {named(node.scan.predicate, scan)}"
    table = node.scan.table
    order = (
        str(lookup_option(table, "lookup.output-mode"))
        if lookup_option(table, "lookup.async")
        else "one at a time"
    )
    every_ms = reload_ms(table)
    if every_ms is not None:
        read = (
            f"reading {table.name} [{', '.join(_scanned(node.scan))}]{kept} again every "
            f"{duration_text(every_ms * 1000)}"
        )
        return f"LookupJoin {node.kind.value} on {_and(conditions)}, {read}, {order}"
    how = [f"cache {lookup_option(table, 'lookup.cache')}", order]
    return (
        f"LookupJoin {node.kind.value} on {_and(conditions)}, asking {table.name} "
        f"[{', '.join(_scanned(node.scan))}]{kept}, {', '.join(how)}"
    )


def _loading(node: SnapshotJoin) -> str:
    time = node.right.schema[node.build_time].name
    until = (
        "the job's start"
        if node.loaded_us is None
        else str(datetime(1970, 1, 1) + timedelta(microseconds=node.loaded_us))
    )
    idle = "" if node.idle_ms is None else f" or has stood still for {duration_text(node.idle_ms * 1000)}"
    return f", the right side loaded until {time} reaches {until}{idle}"


def _timing(node: Join) -> str:
    if isinstance(node, SnapshotJoin):
        return "Snapshot"
    return "" if not isinstance(node, TimedJoin) else "Window" if node.time.of_windows else "Interval"


def _and(conditions: Iterable[str]) -> str:
    return " AND ".join(conditions)


def edge_text(edge: Edge, schema: Schema) -> str:
    """Return an edge's sign with its keys named."""
    if isinstance(edge, Partition) and edge.keys:
        return f"⤨ partition({', '.join(schema[key].name for key in edge.keys)})"
    return edge.sign


def operator_name(node: LogicalPlan) -> str:
    """Return the short name of the operator that runs a node."""
    match node:
        case Scan(table=table):
            return f"source {table.name}"
        case BoundedInput(plan=plan):
            tables = sorted({scan.table.name for scan in plan.walk() if isinstance(scan, Scan)})
            return f"bounded {', '.join(tables)}"
        case WatermarkAssign(input=inner, time_column=time):
            return f"watermark {inner.schema[time].name}"
        case ProcessingTime(input=inner, time_column=time):
            return f"processing time {inner.schema[time].name}"
        case WindowTable(window=window):
            return f"{window.kind.value} windows"
        case Aggregate(phase=phase):
            return _phased(phase, "aggregate" if node.aggregates else "distinct", node)
        case WindowAggregate(phase=phase, window=window):
            return _phased(
                phase,
                "window aggregate"
                if isinstance(window, AttachedWindow)
                else f"{window.kind.value} aggregate",
                node,
            )
        case TemporalJoin(kind=kind):
            return f"{kind.value} temporal join"
        case LookupJoin(kind=kind, scan=scan):
            return f"{kind.value} lookup join {scan.table.name}"
        case Join(kind=kind):
            return f"{kind.value} {_timing(node).lower()}{' ' if _timing(node) else ''}join"
        case TemporalSort(input=inner, time_column=time):
            return f"sort {inner.schema[time].name}"
        case LateMark():
            return "mark late rows"
        case Emit(kind=kind):
            return f"emit {kind.value}"
        case Sink(table=table):
            return f"sink {'to the client' if table is None else table.name}"
        case TopN(limit=limit):
            return f"top {limit}"
        case PartitionTop(limit=limit, partition=partition, input=inner):
            return f"top {limit}{_per(' per', partition, inner.schema)}"
        case Over(partition=partition, input=inner):
            return f"over{_per('', partition, inner.schema)}"
        case MatchRecognize(partition=partition, input=inner):
            return f"match{_per(' per', partition, inner.schema)}"
    return type(node).__name__.lower()


def _per(word: str, keys: Sequence[int], schema: Schema) -> str:
    return f"{word} {', '.join(schema[key].name for key in keys)}" if keys else ""


def _phased(phase: Phase, what: str, node: Aggregate | WindowAggregate) -> str:
    keys = f" by {', '.join(node.input.schema[key].name for key in node.keys)}" if node.keys else ""
    return f"{'' if phase is Phase.SINGLE else phase.value + ' '}{what}{keys}"
