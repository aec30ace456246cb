"""The spec of the operator that runs a logical node."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Protocol

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Role
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.emit import Emit, EmitKind, final_keys
from penstock.planner.logical.joins.interval_join import IntervalJoin
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.joins.snapshot_join import SnapshotJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.match_recognize import MatchRecognize
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import BoundedInput, Scan, Values
from penstock.planner.logical.set_operations import Repeat, Union
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Limit, TemporalSort, TopN
from penstock.planner.logical.time_attributes import ProcessingTime, WatermarkAssign, arrival_order
from penstock.planner.logical.unnest import Unnest
from penstock.planner.logical.window_table import LateMark, WindowTable
from penstock.planner.physical.operator_specs import (
    BoundedSourceSpec,
    CalcSpec,
    FinalRowsSpec,
    GroupAggregateSpec,
    JoinSpec,
    LateMarkSpec,
    LimitSpec,
    LookupJoinSpec,
    MatchSpec,
    OperatorSpec,
    OverSpec,
    PartitionTopSpec,
    ProcessingTimeSpec,
    RepeatSpec,
    SinkSpec,
    SnapshotJoinSpec,
    SourceSpec,
    TemporalJoinSpec,
    TemporalSortSpec,
    ThinnedRowsSpec,
    TopNSpec,
    UnionSpec,
    UnnestSpec,
    ValuesSpec,
    WatermarkSpec,
    WindowAggregateSpec,
    WindowTableSpec,
)


class Facts(Protocol):
    """What is asked of ``penstock.optimizer.properties.plan_properties.PlanFacts``."""

    def insert_only(self, node: LogicalPlan) -> bool:
        """Return whether a node never takes a row back."""

    def upsert_key(self, node: LogicalPlan) -> tuple[int, ...] | None:
        """Return the columns that identify a row of a node."""

    def in_time(self, node: Over) -> bool:
        """Return whether each row of an Over is given once, when time has passed it."""

    def bounded_ports(self, join: BinaryJoin) -> tuple[int, ...]:
        """Return the side of a join that is loaded first."""

    def copied(self, join: BinaryJoin) -> int | None:
        """Return the side of a join that every subtask has."""

    def side_ttl_ms(self, join: BinaryJoin, port: int) -> int:
        """Return how long a row of a side of a join is kept untouched."""

    def ttl_ms(self, node: Aggregate | Over | PartitionTop | TemporalJoin | MatchRecognize) -> int:
        """Return how long a group or a partition is kept untouched."""


class SettingReader(Protocol):
    """Typed values by setting key."""

    def get(self, key: str) -> Any:
        """Return the typed value of a setting."""


def spec_of(node: LogicalPlan, operator_id: str, facts: Facts, settings: SettingReader) -> OperatorSpec:
    """Return the spec of a node that is not a Filter or Project (``calc_of``)."""
    name, schema = node.operator_name(), node.schema
    match node:
        case Scan(table=table, columns=columns, predicate=predicate):
            return SourceSpec(operator_id, name, schema, table, columns, predicate)
        case Values(rows=rows):
            return ValuesSpec(operator_id, name, schema, rows)
        case BoundedInput(plan=plan):
            return BoundedSourceSpec(operator_id, name, schema, plan)
        case WatermarkAssign(time_column=time, watermark=watermark):
            idle_ms = int(settings.get("table.exec.source.idle-timeout"))
            return WatermarkSpec(operator_id, name, schema, time, watermark, idle_ms)
        case ProcessingTime(time_column=time):
            return ProcessingTimeSpec(operator_id, name, schema, time)
        case LateMark(window=window, lateness_us=lateness_us):
            return LateMarkSpec(operator_id, name, schema, window, lateness_us, facts.insert_only(node.input))
        case WindowTable(window=window):
            return WindowTableSpec(operator_id, name, schema, window, facts.insert_only(node.input))
        case Aggregate():
            return _group_aggregate_spec(node, operator_id, facts)
        case WindowAggregate():
            return _window_aggregate_spec(node, operator_id, facts)
        case BinaryJoin():
            return _join_spec(node, operator_id, facts)
        case TemporalJoin():
            return _temporal_join_spec(node, operator_id, facts)
        case LookupJoin():
            return _lookup_join_spec(node, operator_id)
        case Union(branches=branches):
            return UnionSpec(operator_id, name, schema, len(branches))
        case Unnest(call=called, keep=keep, gives=gives, outer=outer, ordinality=ordinality, condition=test):
            return UnnestSpec(operator_id, name, schema, called, keep, gives, outer, ordinality, test)
        case Repeat():
            return RepeatSpec(operator_id, name, schema)
        case Limit(input=inner, limit=limit, offset=offset):
            return LimitSpec(operator_id, name, schema, limit, offset, facts.insert_only(inner))
        case TopN(keys=order, limit=first, offset=offset):
            inserts, arrival = facts.insert_only(node.inputs[0]), arrival_order(node.inputs[0], order)
            return TopNSpec(operator_id, name, schema, order, first, offset, inserts, arrival)
        case Over():
            return _over_spec(node, operator_id, facts)
        case PartitionTop():
            return _partition_top_spec(node, operator_id, facts)
        case TemporalSort(time_column=time):
            return TemporalSortSpec(
                operator_id, name, schema, node.keys, time, schema[time].role is Role.WINDOW_TIME
            )
        case Emit(kind=EmitKind.FINAL, input=inner):
            return FinalRowsSpec(operator_id, name, schema, final_keys(facts.upsert_key(inner), len(schema)))
        case Emit(emission=emission):
            return ThinnedRowsSpec(operator_id, name, schema, emission.every_us)
        case MatchRecognize():
            return _match_spec(node, operator_id, facts)
        case Sink():
            return _sink_spec(node, operator_id, facts)
    raise PenstockError(
        "INT-9003", f"no operator runs {type(node).__name__}", kind=Kind.INTERNAL, sqlstate="XX000"
    )


def _group_aggregate_spec(node: Aggregate, operator_id: str, facts: Facts) -> GroupAggregateSpec:
    return GroupAggregateSpec(
        operator_id,
        node.operator_name(),
        node.schema,
        node.input.schema,
        node.keys,
        node.aggregates,
        node.phase,
        facts.insert_only(node.input),
        facts.ttl_ms(node),
    )


def _window_aggregate_spec(node: WindowAggregate, operator_id: str, facts: Facts) -> WindowAggregateSpec:
    return WindowAggregateSpec(
        operator_id,
        node.operator_name(),
        node.schema,
        node.input.schema,
        node.window,
        node.keys,
        node.aggregates,
        node.phase,
        facts.insert_only(node.input),
        node.emission,
    )


def _lookup_join_spec(node: LookupJoin, operator_id: str) -> LookupJoinSpec:
    return LookupJoinSpec(
        operator_id,
        node.operator_name(),
        node.schema,
        node.left.schema,
        node.scan.table,
        node.scan.columns,
        node.scan.predicate,
        node.kind,
        node.left_keys,
        node.right_keys,
        node.residual,
    )


def _partition_top_spec(node: PartitionTop, operator_id: str, facts: Facts) -> PartitionTopSpec:
    return PartitionTopSpec(
        operator_id,
        node.operator_name(),
        node.schema,
        node.input.schema,
        node.partition,
        node.order,
        node.rank,
        node.limit,
        node.rank_name is not None,
        node.window,
        facts.insert_only(node.input),
        facts.ttl_ms(node),
        arrival_order(node.input, node.order),
    )


def _join_spec(node: BinaryJoin, operator_id: str, facts: Facts) -> JoinSpec:
    left, right = node.inputs
    joined = JoinSpec(
        operator_id,
        node.operator_name(),
        node.schema,
        left.schema,
        right.schema,
        node.kind,
        node.left_keys,
        node.right_keys,
        node.residual,
        facts.bounded_ports(node),
        (facts.insert_only(left), facts.insert_only(right)),
        node.allowing if isinstance(node, IntervalJoin) and not facts.bounded_ports(node) else None,
        facts.copied(node),
        (facts.side_ttl_ms(node, 0), facts.side_ttl_ms(node, 1)),
        node.pruned,
    )
    if isinstance(node, SnapshotJoin):
        told: dict[str, Any] = {field.name: getattr(joined, field.name) for field in fields(joined)}
        return SnapshotJoinSpec(
            **told, build_time=node.build_time, loaded_us=node.loaded_us, idle_ms=node.idle_ms
        )
    return joined


def _temporal_join_spec(node: TemporalJoin, operator_id: str, facts: Facts) -> TemporalJoinSpec:
    left, right = node.inputs
    return TemporalJoinSpec(
        operator_id,
        node.operator_name(),
        node.schema,
        left.schema,
        right.schema,
        node.kind,
        node.left_keys,
        node.right_keys,
        (node.left_time, node.right_time),
        node.ties,
        node.slacks_us,
        node.residual,
        (facts.insert_only(left), facts.insert_only(right)),
        facts.ttl_ms(node),
    )


def _over_spec(node: Over, operator_id: str, facts: Facts) -> OverSpec:
    return OverSpec(
        operator_id,
        node.operator_name(),
        node.schema,
        node.input.schema,
        node.partition,
        node.order,
        node.frame,
        node.calls,
        node.window,
        facts.in_time(node),
        node.history,
        facts.insert_only(node.input),
        facts.ttl_ms(node),
        arrival_order(node.input, node.order),
    )


def _match_spec(node: MatchRecognize, operator_id: str, facts: Facts) -> MatchSpec:
    return MatchSpec(
        operator_id,
        node.operator_name(),
        node.schema,
        node.input.schema,
        node.partition,
        node.order,
        node.pattern,
        node.variables,
        node.definitions,
        node.values,
        node.measures,
        node.all_rows,
        node.skip,
        node.skip_rows,
        node.within_us,
        node.history,
        node.counts,
        node.tells_time,
        facts.ttl_ms(node),
        arrival_order(node.input, node.order),
    )


def _sink_spec(node: Sink, operator_id: str, facts: Facts) -> SinkSpec:
    """A table's primary key says which columns identify its rows; without one the plan's own key does."""
    key = facts.upsert_key(node.input)
    if node.table is not None and node.table.primary_key:
        declared = {name.lower() for name in node.table.primary_key}
        key = tuple(i for i, field in enumerate(node.table.physical_fields) if field.name.lower() in declared)
    return SinkSpec(
        operator_id, node.operator_name(), node.schema, node.table, key, facts.insert_only(node.input)
    )


def calc_of(node: Filter | Project, predicate: Filter | None, operator_id: str) -> CalcSpec:
    """Return the spec of a projection over the filter below it, or of a filter alone."""
    projections = node.expressions if isinstance(node, Project) else None
    name = "filter" if projections is None else "project" if predicate is None else "filter, project"
    return CalcSpec(
        operator_id, name, node.schema, None if predicate is None else predicate.predicate, projections
    )
