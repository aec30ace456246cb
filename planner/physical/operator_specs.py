"""The physical plan as pure data: operator specs, chains of them, edges between chains. Nothing here runs."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable
from penstock.planner.expressions.nodes import AggregateCall, Expression, Literal, SortKey
from penstock.planner.expressions.row_pattern import Pattern
from penstock.planner.logical.aggregate import Phase
from penstock.planner.logical.distribution import Edge
from penstock.planner.logical.joins.interval_join import JoinTime
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.match_recognize import Definition, Rows, SkipTo, Value
from penstock.planner.logical.over import Frame
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.unnest import TableCall
from penstock.planner.logical.windows import ON_CLOSE, AttachedWindow, Emission, Windowing
from penstock.planner.physical.state_compatibility import PlanMeaning

DEFAULT_MAX_PARALLELISM = 128


@dataclass(frozen=True)
class OperatorSpec:
    """Base of operator specs: a stable id (a hash of the meaning of the subplan), a name for people, and
    the output columns.
    """

    operator_id: str
    name: str
    schema: Schema


@dataclass(frozen=True)
class SourceSpec(OperatorSpec):
    """Read ``columns`` of a table, no rows failing ``predicate`` over them. ``skips``: per join that
    filters all rows its id, its keys' places.
    """

    table: CatalogTable
    columns: tuple[int, ...]
    predicate: Expression | None
    skips: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class ValuesSpec(OperatorSpec):
    """Give literal rows once, from subtask 0."""

    rows: tuple[tuple[Literal, ...], ...]


@dataclass(frozen=True)
class BoundedSourceSpec(OperatorSpec):
    """Give the rows of a bounded subplan computed by the bounded backend."""

    plan: LogicalPlan


@dataclass(frozen=True)
class CalcSpec(OperatorSpec):
    """Filter and project fused: keep rows whose ``predicate`` is TRUE, then compute ``projections`` (None:
    all input columns).
    """

    predicate: Expression | None
    projections: tuple[Expression, ...] | None


@dataclass(frozen=True)
class WatermarkSpec(OperatorSpec):
    """Watermarks per split from an expression; rows behind their split's watermark are marked."""

    time_column: int
    watermark: Expression
    idle_timeout_ms: int


@dataclass(frozen=True)
class ProcessingTimeSpec(OperatorSpec):
    """Stamp a column with the clock, which is the watermark from here on."""

    time_column: int


@dataclass(frozen=True)
class UnnestSpec(OperatorSpec):
    """Each row once per row a table function gives for it; see ``penstock.planner.logical.unnest.Unnest``."""

    call: TableCall
    keep: tuple[int, ...]
    gives: tuple[int, ...]
    outer: bool
    ordinality: bool
    condition: Expression | None = None


@dataclass(frozen=True)
class LookupJoinSpec(OperatorSpec):
    """Each row with what a table of a database has for its key; see
    ``penstock.planner.logical.joins.lookup_join.LookupJoin``.
    """

    left_schema: Schema
    table: CatalogTable
    columns: tuple[int, ...]
    predicate: Expression | None
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    residual: Expression | None


@dataclass(frozen=True)
class LateMarkSpec(OperatorSpec):
    """Mark rows that are late for all their windows; see ``penstock.planner.logical.window_table.LateMark``.
    ``insert_only`` says the input never retracts.
    """

    window: Windowing
    lateness_us: int
    insert_only: bool = False


@dataclass(frozen=True)
class WindowTableSpec(OperatorSpec):
    """Append window columns, one row per window. ``insert_only`` says the input never retracts."""

    window: Windowing
    insert_only: bool = True


@dataclass(frozen=True)
class WindowAggregateSpec(OperatorSpec):
    """Windowed aggregation; see ``penstock.planner.logical.aggregate.WindowAggregate``."""

    input_schema: Schema
    window: Windowing | AttachedWindow
    keys: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]
    phase: Phase
    insert_only: bool
    emission: Emission = ON_CLOSE


@dataclass(frozen=True)
class GroupAggregateSpec(OperatorSpec):
    """Unbounded aggregation; see ``penstock.planner.logical.aggregate.Aggregate``. ``insert_only``: the input
    never retracts. ``ttl_ms``: as a partition's of OVER.
    """

    input_schema: Schema
    keys: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]
    phase: Phase
    insert_only: bool
    ttl_ms: int = 0


@dataclass(frozen=True)
class JoinSpec(OperatorSpec):
    """Equi-join of port 0 and port 1; a side named in ``bounded_ports`` is loaded to its end before rows of
    the other side are joined.

    A port without watermarks holds the merged watermark back until it ends, so rows held meanwhile are not
    overtaken by time. Rows joined with a complete bounded side keep their ``Batch.behind`` (held rows keep it
    in their state), so lateness stays a matter of the row's own split. ``time``: rows are freed, and those
    without a match given, when the watermark has passed their deadlines (see
    ``penstock.planner.logical.joins.interval_join``). ``copied``: the port whose rows every subtask has.
    ``pruned``: that behind a runtime filter. ``ttl_ms``: how long rows live untouched, 0 for ever.
    """

    left_schema: Schema
    right_schema: Schema
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    residual: Expression | None
    bounded_ports: tuple[int, ...]
    insert_only: tuple[bool, bool]
    time: JoinTime | None = None
    copied: int | None = None
    ttl_ms: tuple[int, int] = (0, 0)
    pruned: int | None = None


@dataclass(frozen=True)
class SnapshotJoinSpec(JoinSpec):
    """Join of port 0 with port 1 as it is; see ``penstock.planner.logical.joins.snapshot_join``.

    ``build_time`` is a column of port 1, of a type with a zone or without.
    """

    build_time: int = 0
    loaded_us: int | None = None
    idle_ms: int | None = None


@dataclass(frozen=True)
class TemporalJoinSpec(OperatorSpec):
    """Join of port 0 with the versions of port 1; see ``penstock.planner.logical.joins.temporal_join``.
    ``slacks_us``: how far below a watermark times on time may be.

    ``ttl_ms``: how long the versions of a key live when there comes no new one, 0 for ever.
    """

    left_schema: Schema
    right_schema: Schema
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    times: tuple[int, int]
    ties: tuple[int, ...]
    slacks_us: tuple[int, int]
    residual: Expression | None
    insert_only: tuple[bool, bool]
    ttl_ms: int = 0


@dataclass(frozen=True)
class UnionSpec(OperatorSpec):
    """Pass on rows of every port."""

    ports: int


@dataclass(frozen=True)
class RepeatSpec(OperatorSpec):
    """Give each row as often as its last column says, without that column."""


@dataclass(frozen=True)
class LimitSpec(OperatorSpec):
    """The first rows that come; runs in one task. Not ``insert_only``: of rows that change as many as
    there may be, so all of them are kept.
    """

    limit: int | None
    offset: int
    insert_only: bool = True


@dataclass(frozen=True)
class TopNSpec(OperatorSpec):
    """The first rows by an order, kept up to date; runs in one task. ``insert_only`` says the input never
    retracts: then only these rows are kept.

    ``arrival``: whether ties go by arrival, see ``penstock.planner.logical.time_attributes.arrival_order``;
    so in the specs below.
    """

    keys: tuple[SortKey, ...]
    limit: int
    offset: int
    insert_only: bool = False
    arrival: int = 0


@dataclass(frozen=True)
class OverSpec(OperatorSpec):
    """Values of calls appended to rows; see ``penstock.planner.logical.over.Over``. ``in_time``: each row
    once, when the watermark has passed its first order key.

    ``history``: how many earlier rows of its partition a row in time may look at. ``ttl_ms``: how long a
    partition lives untouched, 0 for ever.
    """

    input_schema: Schema
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    frame: Frame
    calls: tuple[AggregateCall, ...]
    window: AttachedWindow | None
    in_time: bool
    history: int
    insert_only: bool
    ttl_ms: int = 0
    arrival: int = 0


@dataclass(frozen=True)
class PartitionTopSpec(OperatorSpec):
    """The first rows of each partition by a rank, kept up to date; see
    ``penstock.planner.logical.over.PartitionTop``.

    With ``window`` and an ``insert_only`` input each row is given once, when its window closes. ``ttl_ms``:
    as OVER's.
    """

    input_schema: Schema
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    rank: str
    limit: int
    shows_rank: bool
    window: AttachedWindow | None
    insert_only: bool
    ttl_ms: int = 0
    arrival: int = 0


@dataclass(frozen=True)
class TemporalSortSpec(OperatorSpec):
    """Rows in the order of ``keys`` as the watermark passes them; ``of_windows``: their time is the last
    millisecond of a window.
    """

    keys: tuple[SortKey, ...]
    time_column: int
    of_windows: bool


@dataclass(frozen=True)
class FinalRowsSpec(OperatorSpec):
    """What changes of rows come to, given when all have come; ``keys`` are the columns by which changes of
    one row meet.
    """

    keys: tuple[int, ...]


@dataclass(frozen=True)
class ThinnedRowsSpec(OperatorSpec):
    """What changes come to, given ``every_us`` apart."""

    every_us: int


@dataclass(frozen=True)
class MatchSpec(OperatorSpec):
    """The matches of a row pattern; see ``penstock.planner.logical.match_recognize.MatchRecognize``.

    ``history``: how many rows before a match are kept. ``counts``: matches are numbered. ``tells_time``:
    their time is told. ``ttl_ms``: as OVER's.
    """

    input_schema: Schema
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    pattern: Pattern
    variables: tuple[str, ...]
    definitions: tuple[Definition, ...]
    values: tuple[Value, ...]
    measures: tuple[Expression, ...]
    all_rows: bool
    skip: SkipTo
    skip_rows: Rows
    within_us: int | None
    history: int
    counts: bool
    tells_time: bool
    ttl_ms: int = 0
    arrival: int = 0


@dataclass(frozen=True)
class SinkSpec(OperatorSpec):
    """Write rows to a table; ``table`` None collects to the client. ``upsert_key`` are the columns that
    identify a row of a changelog.
    """

    table: CatalogTable | None
    upsert_key: tuple[int, ...] | None
    insert_only: bool


@dataclass(frozen=True)
class HistorySpec(OperatorSpec):
    """Give, instead of ``operators`` (a source and what follows it, first to last), the rows these would give
    for ``splits``.

    ``plan``: over one table, computed by ``backend`` (None: read by ``operators``); its rows may be fewer
    where the one above keeps the first only. ``timing``: a source and a watermark assigner over nothing but
    the columns time is made of; none where nobody above goes by time.
    """

    plan: LogicalPlan
    backend: str | None
    splits: tuple[str, ...]
    operators: tuple[OperatorSpec, ...]
    timing: tuple[OperatorSpec, ...] = ()


@dataclass(frozen=True)
class ReadSplitsSpec(OperatorSpec):
    """Give nothing, and know that these splits of the source with this operator's id have been read to
    their end.
    """

    splits: tuple[str, ...]


@dataclass(frozen=True)
class Chain:
    """Operators that share a task, first to last; the first may have several ports, the others take the
    one before.
    """

    chain_id: int
    operators: tuple[OperatorSpec, ...]
    parallelism: int

    @property
    def is_source(self) -> bool:
        """Whether rows begin here."""
        return isinstance(
            self.operators[0], SourceSpec | ValuesSpec | BoundedSourceSpec | HistorySpec | ReadSplitsSpec
        )

    @property
    def name(self) -> str:
        """The chain's name for people."""
        return " -> ".join(operator.name for operator in self.operators)


@dataclass(frozen=True)
class ChainEdge:
    """Rows of ``source`` chain's last operator travel by ``edge`` into ``port`` of ``target`` chain's
    first operator.
    """

    source: int
    target: int
    port: int
    edge: Edge


@dataclass(frozen=True)
class JobGraph:
    """A whole job: chains in topological order, the edges between them, the number of key groups, and what
    checkpoints say of its operators.
    """

    chains: tuple[Chain, ...]
    edges: tuple[ChainEdge, ...]
    max_parallelism: int = DEFAULT_MAX_PARALLELISM
    meaning: PlanMeaning = PlanMeaning()

    def inputs_of(self, chain_id: int) -> tuple[ChainEdge, ...]:
        """Return the edges into a chain, by port."""
        return tuple(
            sorted((e for e in self.edges if e.target == chain_id), key=lambda e: (e.port, e.source))
        )

    def outputs_of(self, chain_id: int) -> tuple[ChainEdge, ...]:
        """Return the edges out of a chain."""
        return tuple(e for e in self.edges if e.source == chain_id)

    def overtakable(self, edge: ChainEdge) -> bool:
        """Return whether a checkpoint's barrier may overtake the rows of an edge.

        Not so before windows whose results are corrected: how far time has come is one value for all their
        subtasks only where barriers wait.
        """
        target = next(chain for chain in self.chains if chain.chain_id == edge.target)
        return edge.edge.overtakable and not any(
            isinstance(o, WindowAggregateSpec) and o.emission.corrects for o in target.operators
        )
