"""The figures of one task at one moment: plain values that a process sends to another as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, field
from typing import Any

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.metrics.busy_time import TimeShares
from penstock.engine.metrics.operator_metrics import (
    LatencyFigures,
    OperatorMetrics,
    SplitProgress,
    SplitReads,
    TaskMetrics,
)
from penstock.engine.metrics.row_rates import RowRates


@dataclass(frozen=True)
class Queues:
    """How full the input channels of a task are: elements, their capacity, and bytes of rows."""

    length: int
    capacity: int
    size_bytes: int


NO_TIME = TimeShares()
NO_QUEUES = Queues(0, 0, 0)


@dataclass(frozen=True)
class OperatorFigures:
    """What one operator of one subtask has counted; see ``OperatorMetrics``."""

    operator_id: str
    name: str
    rows_in: int = 0
    rows_out: int = 0
    late_rows: int = 0
    windows_closed: int = 0
    state_entries: int = 0
    state_bytes: int = 0
    spilled_bytes: int = 0
    watermark_us: int | None = None
    next_close_us: int | None = None
    counters: dict[str, int] = field(default_factory=dict)
    splits: dict[str, SplitProgress] = field(default_factory=dict)
    reads: dict[str, SplitReads] = field(default_factory=dict)
    latency: dict[str, LatencyFigures] = field(default_factory=dict)
    rows_in_per_second: int = 0
    rows_out_per_second: int = 0


@dataclass(frozen=True)
class TaskFigures:
    """What one task has counted. Times are milliseconds; ``per_second`` is milliseconds a second over the
    last one or two.

    Four are of its last checkpoint. ``alignment_ms``: the wait for barriers. ``checkpoint_sync_ms``: how long
    the snapshot blocked rows (``_max``: the longest of all). ``part_ms``: from its start until the task's
    part was written. ``part_bytes``: the size of that part's files.
    """

    chain: int
    subtask: int
    phase: str
    is_source: bool
    operators: tuple[OperatorFigures, ...]
    time: TimeShares = NO_TIME
    per_second: TimeShares = NO_TIME
    batches: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    queues: Queues = NO_QUEUES
    alignment_ms: float = 0.0
    checkpoint_sync_ms: float = 0.0
    checkpoint_sync_ms_max: float = 0.0
    part_ms: float = 0.0
    part_bytes: int = 0

    @property
    def name(self) -> str:
        """The chain in words."""
        return " -> ".join(operator.name for operator in self.operators)

    def to_json(self) -> dict[str, Any]:
        """Return the figures as what JSON knows."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> TaskFigures:
        """Return the figures ``to_json`` was made of."""
        operators = tuple(
            OperatorFigures(
                # JSON has no classes: nested figures are built anew from their fields
                **{
                    **operator,
                    "splits": {name: SplitProgress(**split) for name, split in operator["splits"].items()},
                    "reads": {name: SplitReads(**reads) for name, reads in operator["reads"].items()},
                    "latency": {
                        source: LatencyFigures(**{**latency, "octaves": tuple(latency["octaves"])})
                        for source, latency in operator["latency"].items()
                    },
                }
            )
            for operator in values["operators"]
        )
        shares = {name: TimeShares(*values[name]) for name in ("time", "per_second")}
        return cls(**{**values, **shares, "operators": operators, "queues": Queues(**values["queues"])})


def task_figures(
    chain: int,
    subtask: int,
    phase: str,
    is_source: bool,
    metrics: TaskMetrics,
    operators: Sequence[tuple[str, str, OperatorMetrics]],
    queues: Queues,
    bytes_out: int,
    now_ms: float,
) -> TaskFigures:
    """Return what a task has counted by ``now_ms`` (monotonic); ``operators`` are ids, names and counters,
    first to last.
    """
    return TaskFigures(
        chain,
        subtask,
        phase,
        is_source,
        tuple(_operator(*operator, metrics.rates, now_ms) for operator in operators),
        metrics.time.total(now_ms),
        metrics.time.per_second(now_ms),
        metrics.batches,
        metrics.bytes_in,
        bytes_out,
        queues,
        metrics.alignment_ms,
        metrics.checkpoint_sync_ms,
        metrics.checkpoint_sync_ms_max,
    )


def _operator(
    operator_id: str, name: str, metrics: OperatorMetrics, rates: RowRates, now_ms: float
) -> OperatorFigures:
    rate = rates.per_second(now_ms, operator_id, metrics.rows_in, metrics.rows_out)
    return OperatorFigures(
        operator_id,
        name,
        metrics.rows_in,
        metrics.rows_out,
        metrics.late_rows,
        metrics.windows_closed,
        metrics.state_entries,
        metrics.state_bytes,
        metrics.spilled_bytes,
        metrics.watermark_us,
        metrics.next_close_us,
        # copies: the slot's thread may add a name while another thread reads
        metrics.counters.copy(),
        metrics.splits.copy(),
        metrics.reads.copy(),
        {source: histogram.figures() for source, histogram in metrics.latency.copy().items()},
        rate.rows_in,
        rate.rows_out,
    )
