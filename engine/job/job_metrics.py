"""The metrics of a job so far, summed over its tasks, for people to read."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.checkpoint.coordinator import CheckpointCoordinator, CheckpointInfo
from penstock.engine.job.job_events import JobEvent
from penstock.engine.metrics.operator_metrics import SplitProgress, SplitReads
from penstock.engine.metrics.task_metrics import OperatorFigures, TaskFigures
from penstock.engine.network.admission import Refusals
from penstock.engine.task_manager.task_executor import TaskHandle
from penstock.planner.logical.sink import Sink
from penstock.planner.physical.operator_specs import JobGraph


@dataclasses.dataclass
class OperatorReport:
    """Counters of one operator summed over its subtasks; ``watermark_us`` is the lowest of them."""

    operator_id: str
    name: str
    is_source: bool = False
    parallelism: int = 0
    rows_in: int = 0
    rows_out: int = 0
    late_rows: int = 0
    windows_closed: int = 0
    state_entries: int = 0
    state_bytes: int = 0
    spilled_bytes: int = 0
    watermark_us: int | None = None
    counters: dict[str, int] = field(default_factory=dict)
    splits: dict[str, SplitProgress] = field(default_factory=dict)
    reads: dict[str, SplitReads] = field(default_factory=dict)
    next_close_us: int | None = None
    rows_in_per_second: int = 0
    rows_out_per_second: int = 0

    @property
    def lag(self) -> int | None:
        """Records of a source's splits that were not read yet; ``None`` when its connector knows of none."""
        lags = [reads.lag for reads in self.reads.values() if reads.lag is not None]
        return sum(lags) if lags else None


@dataclass(frozen=True)
class JobMetrics:
    """A job's numbers. Rows and time count since the last (re)start, checkpoints and restarts since
    submission.

    ``uptime_ms``: since the last (re)start. ``read_at_ms``: when the numbers were read, wall milliseconds.
    ``workers_lost``, ``stale_messages``: lost worker processes, and messages of earlier deployments.
    ``refusals``: refused connections of strangers. None without worker processes.
    """

    tasks: tuple[TaskFigures, ...] = ()
    restarts: int = 0
    checkpoints_completed: int = 0
    checkpoints_failed: int = 0
    checkpoints: tuple[CheckpointInfo, ...] = ()
    checkpoint_failure: str | None = None
    uptime_ms: float = 0.0
    read_at_ms: int = 0
    events: tuple[JobEvent, ...] = ()
    workers_lost: int | None = None
    stale_messages: int | None = None
    refusals: Refusals | None = None

    @cached_property
    def operators(self) -> tuple[OperatorReport, ...]:
        """One report per operator, summed over its subtasks, in plan order."""
        return operator_reports(self.tasks)

    @property
    def rows_in(self) -> int:
        """Rows emitted by the sources."""
        return sum(o.rows_out for o in self.operators if o.is_source)

    @property
    def rows_out(self) -> int:
        """Rows that have reached the sinks."""
        return sum(o.rows_in for o in self.operators if o.name.startswith("sink "))

    @property
    def busy_s(self) -> float:
        """Seconds the busiest slot has worked; waiting for others, bounded tables among them, does not
        count.
        """
        # slot i runs subtask i of every chain: their busy times add up
        by_slot: dict[int, float] = {}
        for task in self.tasks:
            by_slot[task.subtask] = by_slot.get(task.subtask, 0.0) + task.time.busy / 1e3
        return max(by_slot.values(), default=0.0)

    @property
    def late_rows(self) -> int:
        """Rows dropped because their window had closed."""
        return sum(o.late_rows for o in self.operators)

    @property
    def state_bytes(self) -> int:
        """Bytes of state in memory, as last measured."""
        return sum(o.state_bytes for o in self.operators)

    @property
    def windows_closed(self) -> int:
        """Windows whose result was emitted."""
        return sum(o.windows_closed for o in self.operators)

    @property
    def watermark_us(self) -> int | None:
        """The lowest watermark of any operator that has one: the event time the whole job has reached."""
        return min((o.watermark_us for o in self.operators if o.watermark_us is not None), default=None)

    @property
    def last_checkpoint(self) -> CheckpointInfo | None:
        """The newest completed checkpoint."""
        return self.checkpoints[-1] if self.checkpoints else None


def job_metrics(
    tasks: Sequence[TaskHandle],
    coordinator: CheckpointCoordinator,
    restarts: int,
    uptime_ms: float,
    read_at_ms: int,
    events: tuple[JobEvent, ...],
) -> JobMetrics:
    """Gather the numbers of a job's tasks and of its checkpoints."""
    # Durations and bytes of parts are the coordinator's, everything else the task's.
    figures = tuple(coordinator.with_part(task.task_id, task.figures()) for task in tasks)
    checkpoints = (
        coordinator.completed,
        coordinator.failed,
        tuple(coordinator.history),
        coordinator.last_failure,
    )
    return JobMetrics(figures, restarts, *checkpoints, uptime_ms, read_at_ms, events)


def operator_reports(tasks: Sequence[TaskFigures]) -> tuple[OperatorReport, ...]:
    """Return one report per operator, in plan order."""
    reports: dict[str, OperatorReport] = {}
    for task in tasks:
        for index, figures in enumerate(task.operators):
            # The source is the first operator of its chain.
            report = reports.setdefault(
                figures.operator_id,
                OperatorReport(figures.operator_id, figures.name, task.is_source and index == 0),
            )
            _add(report, figures)
    return tuple(reports.values())


def _add(report: OperatorReport, figures: OperatorFigures) -> None:
    # One task is one subtask of each of its operators.
    report.parallelism += 1
    report.rows_in += figures.rows_in
    report.rows_out += figures.rows_out
    report.late_rows += figures.late_rows
    report.rows_in_per_second += figures.rows_in_per_second
    report.rows_out_per_second += figures.rows_out_per_second
    report.windows_closed += figures.windows_closed
    report.state_entries += figures.state_entries
    report.state_bytes += figures.state_bytes
    report.spilled_bytes += figures.spilled_bytes
    if figures.watermark_us is not None:
        report.watermark_us = (
            figures.watermark_us
            if report.watermark_us is None
            else min(report.watermark_us, figures.watermark_us)
        )
    # Each split is read by one subtask only.
    report.splits |= figures.splits
    for name, reads in figures.reads.items():
        known = report.reads.get(name)
        report.reads[name] = reads if known is None else _sum(known, reads)
    if figures.next_close_us is not None:
        report.next_close_us = min(
            figures.next_close_us,
            figures.next_close_us if report.next_close_us is None else report.next_close_us,
        )
    for name, count in figures.counters.items():
        report.counters[name] = report.counters.get(name, 0) + count


def _sum(one: SplitReads, other: SplitReads) -> SplitReads:
    lags = [reads.lag for reads in (one, other) if reads.lag is not None]
    return SplitReads(
        one.rows + other.rows, one.rows_per_second + other.rows_per_second, sum(lags) if lags else None
    )


def has_delivered(graph: JobGraph, tasks: Sequence[TaskHandle]) -> bool:
    """Return whether rows were delivered to a client, which cannot retract them."""
    # A sink without a table returns its rows to a client.
    sinks = [
        spec
        for chain in graph.chains
        for spec in chain.operators
        if isinstance(spec.node, Sink) and spec.node.table is None
    ]
    collects = {spec.operator_id for spec in sinks}
    return any(
        operator.rows_in > 0
        for task in tasks
        for operator in task.figures().operators
        if operator.operator_id in collects
    )
