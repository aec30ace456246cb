"""Specs for tests of single operators: a node over input schemas and its facts, from few values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable
from penstock.planner.expressions.nodes import AggregateCall, Expression, Literal, SortKey
from penstock.planner.logical.aggregate import Aggregate, Phase, WindowAggregate
from penstock.planner.logical.changelog_normalize import ChangelogNormalize
from penstock.planner.logical.emit import Emit, EmitFacts, EmitKind
from penstock.planner.logical.joins.interval_join import IntervalJoin, IntervalJoinFacts, JoinTime
from penstock.planner.logical.joins.join import Join, JoinFacts, JoinKind
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.joins.snapshot_join import SnapshotJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin, TemporalJoinFacts
from penstock.planner.logical.operator_facts import GroupFacts, OperatorFacts, PartitionFacts
from penstock.planner.logical.over import Frame, Over, OverFacts, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import BoundedInput, Scan, SourceFacts, Values
from penstock.planner.logical.set_operations import Repeat, Union
from penstock.planner.logical.sink import Sink, SinkFacts
from penstock.planner.logical.sort import Limit, TemporalSort, TopN
from penstock.planner.logical.time_attributes import ProcessingTime, WatermarkAssign, WatermarkFacts
from penstock.planner.logical.unnest import TableCall, Unnest
from penstock.planner.logical.window_table import LateMark, WindowTable
from penstock.planner.logical.windows import ON_CLOSE, AttachedWindow, Emission, Windowing
from penstock.planner.physical.operator_specs import AnyOperatorSpec, Calc, InputSchema, OperatorSpec
from penstock.planner.physical.runtime_filter import RuntimeFilter

Keys = tuple[int, ...]


def source_spec(
    operator_id: str, name: str, schema: Schema, table: CatalogTable, columns: Keys, predicate: Any
) -> AnyOperatorSpec:
    return OperatorSpec(operator_id, name, schema, Scan(table, columns, predicate), SourceFacts())


def values_spec(
    operator_id: str, name: str, schema: Schema, rows: tuple[tuple[Literal, ...], ...]
) -> AnyOperatorSpec:
    return OperatorSpec(operator_id, name, schema, Values(rows, schema))


def bounded_source_spec(operator_id: str, name: str, schema: Schema, plan: LogicalPlan) -> AnyOperatorSpec:
    return OperatorSpec(operator_id, name, schema, BoundedInput(plan))


def calc_spec(
    operator_id: str,
    name: str,
    schema: Schema,
    predicate: Expression | None,
    projections: tuple[Expression, ...] | None,
) -> AnyOperatorSpec:
    return OperatorSpec(operator_id, name, schema, Calc(predicate, projections))


def watermark_spec(
    operator_id: str, name: str, schema: Schema, time_column: int, watermark: Expression, idle_ms: int
) -> AnyOperatorSpec:
    node = WatermarkAssign(InputSchema(schema), time_column, watermark)
    return OperatorSpec(operator_id, name, schema, node, WatermarkFacts((True,), idle_ms))


def processing_time_spec(operator_id: str, name: str, schema: Schema, time_column: int) -> AnyOperatorSpec:
    return OperatorSpec(operator_id, name, schema, ProcessingTime(InputSchema(schema), time_column))


def unnest_spec(
    operator_id: str,
    name: str,
    schema: Schema,
    source: Schema,
    call: TableCall,
    keep: Keys,
    gives: Keys,
    outer: bool = False,
    ordinality: bool = False,
) -> AnyOperatorSpec:
    node = Unnest(InputSchema(source), call, keep, gives, outer, ordinality)
    return OperatorSpec(operator_id, name, schema, node)


def window_table_spec(
    operator_id: str, name: str, schema: Schema, window: Windowing, insert_only: bool = True
) -> AnyOperatorSpec:
    node = WindowTable(InputSchema(Schema(schema.fields[:-3])), window)
    return OperatorSpec(operator_id, name, schema, node, OperatorFacts((insert_only,)))


def window_aggregate_spec(
    operator_id: str,
    name: str,
    schema: Schema,
    source: Schema,
    window: Windowing | AttachedWindow,
    keys: Keys,
    aggregates: Sequence[AggregateCall],
    phase: Phase,
    insert_only: bool,
    emission: Emission = ON_CLOSE,
) -> AnyOperatorSpec:
    names = schema.names[len(keys) : len(keys) + len(aggregates)]
    node = WindowAggregate(
        InputSchema(source), window, keys, tuple(aggregates), tuple(names), phase, emission
    )
    return OperatorSpec(operator_id, name, schema, node, OperatorFacts((insert_only,)))


def group_aggregate_spec(
    operator_id: str,
    name: str,
    schema: Schema,
    source: Schema,
    keys: Keys,
    aggregates: Sequence[AggregateCall],
    phase: Phase,
    insert_only: bool,
    ttl_ms: int = 0,
    upserts: bool = False,
) -> AnyOperatorSpec:
    names = tuple(schema.names[len(keys) : len(keys) + len(aggregates)])
    node = Aggregate(InputSchema(source), keys, tuple(aggregates), names, phase, upserts=upserts)
    counts_rows = insert_only and any(
        call.function == "count" and not call.args and call.filter is None for call in aggregates
    )
    facts = GroupFacts((insert_only,), ttl_ms, counts_rows=counts_rows)
    return OperatorSpec(operator_id, name, schema, node, facts)


def join_spec(
    operator_id: str,
    name: str,
    schema: Schema,
    left: Schema,
    right: Schema,
    kind: JoinKind,
    left_keys: Keys,
    right_keys: Keys,
    residual: Expression | None,
    bounded_ports: Keys,
    insert_only: tuple[bool, bool],
    time: JoinTime | None = None,
    copied: int | None = None,
    pruned: int | None = None,
) -> AnyOperatorSpec:
    parts = (InputSchema(left), InputSchema(right), kind, left_keys, right_keys, residual)
    if time is not None:
        timed = IntervalJoinFacts(insert_only, bounded_ports, copied, time=time)
        return OperatorSpec(operator_id, name, schema, IntervalJoin(*parts, time=time), timed)
    facts = JoinFacts(insert_only, bounded_ports, copied)
    return OperatorSpec(operator_id, name, schema, Join(*parts, pruned=pruned), facts)


def snapshot_join_spec(
    operator_id: str,
    name: str,
    schema: Schema,
    left: Schema,
    right: Schema,
    kind: JoinKind,
    left_keys: Keys,
    right_keys: Keys,
    residual: Expression | None,
    bounded_ports: Keys,
    insert_only: tuple[bool, bool],
    *,
    build_time: int,
    loaded_us: int | None = None,
    idle_ms: int | None = None,
    ttl_ms: tuple[int, int] = (0, 0),
) -> AnyOperatorSpec:
    parts = (InputSchema(left), InputSchema(right), kind, left_keys, right_keys, residual)
    node = SnapshotJoin(*parts, build_time=build_time, loaded_us=loaded_us, idle_ms=idle_ms)
    facts = JoinFacts(insert_only, bounded_ports, ttl_ms=ttl_ms)
    return OperatorSpec(operator_id, name, schema, node, facts)


def temporal_join_spec(
    operator_id: str,
    name: str,
    schema: Schema,
    left: Schema,
    right: Schema,
    kind: JoinKind,
    left_keys: Keys,
    right_keys: Keys,
    times: tuple[int, int],
    ties: Keys,
    slacks_us: tuple[int, int],
    residual: Expression | None,
    insert_only: tuple[bool, bool],
    ttl_ms: int = 0,
) -> AnyOperatorSpec:
    node = TemporalJoin(
        InputSchema(left), InputSchema(right), kind, left_keys, right_keys, *times, ties, residual
    )
    facts = TemporalJoinFacts(insert_only, slacks_us, ttl_ms)
    return OperatorSpec(operator_id, name, schema, node, facts)


def lookup_join_spec(
    operator_id: str,
    name: str,
    left: Schema,
    table: CatalogTable,
    kind: JoinKind,
    left_keys: Keys,
    right_keys: Keys,
    residual: Expression | None = None,
    predicate: Expression | None = None,
) -> AnyOperatorSpec:
    scan = Scan(table, tuple(range(len(table.source_schema))), predicate)
    node = LookupJoin(InputSchema(left), scan, kind, left_keys, right_keys, residual)
    return OperatorSpec(operator_id, name, node.schema, node, OperatorFacts((True,)))


def union_spec(operator_id: str, name: str, schema: Schema, ports: int) -> AnyOperatorSpec:
    return OperatorSpec(operator_id, name, schema, Union((InputSchema(schema),) * ports))


def replicate_rows_spec(operator_id: str, name: str, source: Schema) -> AnyOperatorSpec:
    node = Repeat(InputSchema(source))
    return OperatorSpec(operator_id, name, node.schema, node)


def emit_spec(
    operator_id: str, name: str, schema: Schema, kind: EmitKind, keys: Keys = (), every_us: int = 0
) -> AnyOperatorSpec:
    node = Emit(InputSchema(schema), kind, Emission(every_us=every_us))
    return OperatorSpec(operator_id, name, node.schema, node, EmitFacts((False,), keys))


def late_mark_spec(
    operator_id: str,
    name: str,
    source: Schema,
    window: Windowing,
    lateness_us: int = 0,
    insert_only: bool = True,
) -> AnyOperatorSpec:
    node = LateMark(InputSchema(source), window, lateness_us)
    return OperatorSpec(operator_id, name, node.schema, node, OperatorFacts((insert_only,)))


def changelog_normalize_spec(
    schema: Schema, key: Keys, marks: int = -1, bits: tuple[int, ...] = ()
) -> AnyOperatorSpec:
    node = ChangelogNormalize(InputSchema(schema), key, marks, bits)
    return OperatorSpec("id", "normalize", schema, node, OperatorFacts((False,)))


def limit_spec(
    operator_id: str, name: str, schema: Schema, limit: int | None, offset: int, insert_only: bool = True
) -> AnyOperatorSpec:
    node = Limit(InputSchema(schema), limit, offset)
    return OperatorSpec(operator_id, name, schema, node, OperatorFacts((insert_only,)))


def top_n_spec(
    operator_id: str,
    name: str,
    schema: Schema,
    keys: tuple[SortKey, ...],
    limit: int,
    offset: int,
    insert_only: bool = False,
) -> AnyOperatorSpec:
    node = TopN(InputSchema(schema), keys, limit, offset)
    return OperatorSpec(operator_id, name, schema, node, PartitionFacts((insert_only,)))


def over_spec(
    operator_id: str,
    name: str,
    schema: Schema,
    source: Schema,
    partition: Keys,
    order: tuple[SortKey, ...],
    frame: Frame,
    calls: tuple[AggregateCall, ...],
    window: AttachedWindow | None,
    in_time: bool,
    insert_only: bool,
) -> AnyOperatorSpec:
    names = tuple(schema.names[len(source) :])
    node = Over(InputSchema(source), partition, order, frame, calls, names, in_time, window)
    return OperatorSpec(operator_id, name, schema, node, OverFacts((insert_only,), in_time=in_time))


def partition_top_spec(
    operator_id: str,
    name: str,
    schema: Schema,
    source: Schema,
    partition: Keys,
    order: tuple[SortKey, ...],
    rank: str,
    limit: int,
    shows_rank: bool,
    window: AttachedWindow | None,
    insert_only: bool,
) -> AnyOperatorSpec:
    rank_name = schema.names[-1] if shows_rank else None
    node = PartitionTop(InputSchema(source), partition, order, rank, limit, rank_name, window)
    return OperatorSpec(operator_id, name, schema, node, PartitionFacts((insert_only,)))


def temporal_sort_spec(
    operator_id: str, name: str, schema: Schema, keys: tuple[SortKey, ...]
) -> AnyOperatorSpec:
    return OperatorSpec(operator_id, name, schema, TemporalSort(InputSchema(schema), keys))


def sink_spec(
    operator_id: str,
    name: str,
    schema: Schema,
    table: CatalogTable | None,
    upsert_key: Keys | None,
    insert_only: bool,
) -> AnyOperatorSpec:
    facts = SinkFacts((insert_only,), upsert_key)
    return OperatorSpec(operator_id, name, schema, Sink(InputSchema(schema), table), facts)


def runtime_filter_spec(
    operator_id: str, name: str, schema: Schema, join_id: str, keys: Keys
) -> AnyOperatorSpec:
    return OperatorSpec(operator_id, name, schema, RuntimeFilter(join_id, keys))


def with_node(spec: AnyOperatorSpec, **changes: Any) -> AnyOperatorSpec:
    """Return a spec with other fields of its node."""
    return replace(spec, node=replace(spec.node, **changes))


def with_facts(spec: AnyOperatorSpec, **changes: Any) -> AnyOperatorSpec:
    """Return a spec with other facts."""
    return replace(spec, facts=replace(spec.facts, **changes))
