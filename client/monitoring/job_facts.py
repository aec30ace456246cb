"""The facts of a job that operators watch. SQL's system tables, the JSON API and the page show this model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from penstock.catalog.frozen_dataclass import dataclass
from penstock.client.monitoring.bottleneck import bottleneck
from penstock.client.monitoring.event_time import WatermarkDelay, slowest_split, watermark_delay
from penstock.client.monitoring.output_verdict import verdict
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US
from penstock.engine.job.job_state import JobState

if TYPE_CHECKING:
    from penstock.catalog.errors import PenstockError
    from penstock.engine.job.job import Job
    from penstock.engine.job.job_metrics import JobMetrics, OperatorReport
    from penstock.engine.metrics.task_metrics import TaskFigures


@dataclass(frozen=True)
class FailureFacts:
    """An error of a job, as its user reads it."""

    code: str
    message: str
    hint: str | None
    detail: str | None


@dataclass(frozen=True)
class LatencyFacts:
    """How long latency markers took from a source to a sink, microseconds. ``octaves``: see
    ``LatencyFigures``.
    """

    source: str
    subtask: int
    count: int
    p50_us: int
    p95_us: int
    p99_us: int
    max_us: int
    octaves: tuple[int, ...]


@dataclass(frozen=True)
class OperatorStatus:
    """One operator, summed over its subtasks. ``busy``, ``idle`` and ``backpressured`` are shares of the last
    seconds of its busiest subtask, which all operators of a chain have in common. Times are milliseconds.
    ``pending``: records of a source that are not read yet.
    """

    operator_id: str
    name: str
    chain: int
    is_source: bool
    parallelism: int
    rows_in: int
    rows_out: int
    rows_in_per_second: int
    rows_out_per_second: int
    busy: float
    idle: float
    backpressured: float
    watermark_ms: int | None
    watermark_lag_ms: int | None
    state_entries: int
    state_bytes: int
    spilled_bytes: int
    late_rows: int
    bad_rows: int
    windows_closed: int
    next_close_ms: int | None
    pending: int | None
    counters: dict[str, int] = field(default_factory=dict)
    latency: tuple[LatencyFacts, ...] = ()


@dataclass(frozen=True)
class SplitFacts:
    """One split of a source: how far it is read, and its event time in milliseconds. ``delays_watermark``:
    the watermark of its source waits for it.
    """

    operator_id: str
    operator: str
    split: str
    rows: int | None
    rows_per_second: int | None
    pending: int | None
    last_event_ms: int | None
    watermark_ms: int | None
    idle: bool
    delays_watermark: bool


@dataclass(frozen=True)
class CheckpointFacts:
    """A completed checkpoint. ``new_bytes`` were written for it; the other bytes are shared with earlier
    ones.
    """

    checkpoint_id: int
    kind: str
    completed_at_ms: int
    duration_ms: float
    size_bytes: int
    new_bytes: int
    channel_state_rows: int
    channel_state_bytes: int


@dataclass(frozen=True)
class CheckpointPart:
    """What one task has contributed to the newest checkpoint."""

    task: str
    subtask: int
    duration_ms: float
    size_bytes: int
    alignment_ms: float
    blocked_ms: float


@dataclass(frozen=True)
class EventFacts:
    """A restart, failure or warning of a job; ``at_ms``: wall clock."""

    at_ms: int
    kind: str
    text: str


@dataclass(frozen=True)
class JobSummary:
    """A job in a list. Times are milliseconds; ``verdict`` says why it has no output, or that it has some."""

    job_id: str
    name: str
    state: str
    submitted_at_ms: int
    uptime_ms: float
    parallelism: int
    restarts: int
    rows_in: int
    rows_out: int
    rows_in_per_second: int
    rows_out_per_second: int
    late_rows: int
    bad_rows: int
    state_bytes: int
    watermark_ms: int | None
    watermark_lag_ms: int | None
    watermark_delay: str | None
    checkpoints_completed: int
    checkpoints_failed: int
    verdict: str
    failure: FailureFacts | None


@dataclass(frozen=True)
class JobFacts:
    """All facts of one job, read at one moment."""

    summary: JobSummary
    read_at_ms: int
    bottleneck: str
    delay: WatermarkDelay | None
    operators: tuple[OperatorStatus, ...]
    splits: tuple[SplitFacts, ...]
    checkpoints: tuple[CheckpointFacts, ...]
    checkpoint_parts: tuple[CheckpointPart, ...]
    checkpoint_failure: str | None
    events: tuple[EventFacts, ...]


BAD_ROWS = "bad_records"
"""The counter of records that a source could not read and left out."""


def job_facts(job: Job) -> JobFacts:
    """Return the facts of a job as they are now; any thread may ask."""
    # once, so that all facts are of one moment
    metrics = job.metrics()
    running = not job.state.terminal
    return JobFacts(
        summary=_summary(job, metrics),
        read_at_ms=metrics.read_at_ms,
        bottleneck=bottleneck(metrics.tasks, running=job.state is JobState.RUNNING),
        # a job that has ended waits for nothing
        delay=watermark_delay(metrics) if running else None,
        operators=tuple(_operators(metrics)),
        splits=tuple(_splits(metrics)),
        checkpoints=tuple(
            CheckpointFacts(
                one.checkpoint_id,
                str(one.kind),
                one.completed_at_ms,
                one.duration_ms,
                one.size_bytes,
                one.new_bytes,
                one.channel_state_rows,
                one.channel_state_bytes,
            )
            for one in metrics.checkpoints
        ),
        checkpoint_parts=tuple(_part(task) for task in metrics.tasks if task.part_ms),
        checkpoint_failure=metrics.checkpoint_failure,
        events=tuple(EventFacts(event.at_ms, event.kind, event.text) for event in metrics.events),
    )


def job_summary(job: Job) -> JobSummary:
    """Return a job as a list shows it."""
    return _summary(job, job.metrics())


def _summary(job: Job, metrics: JobMetrics) -> JobSummary:
    # read once: it may change meanwhile
    state = job.state
    delay = watermark_delay(metrics) if not state.terminal else None
    watermark_ms = _event_ms(metrics.watermark_us)
    sources = [one for one in metrics.operators if one.is_source]
    sinks = [one for one in metrics.operators if one.name.startswith("sink ")]
    return JobSummary(
        job_id=job.job_id,
        name=job.name,
        state=str(state),
        submitted_at_ms=job.submitted_at_ms,
        uptime_ms=0.0 if state.terminal else metrics.uptime_ms,
        parallelism=job.parallelism,
        restarts=metrics.restarts,
        rows_in=metrics.rows_in,
        rows_out=metrics.rows_out,
        rows_in_per_second=0 if state.terminal else sum(one.rows_out_per_second for one in sources),
        rows_out_per_second=0 if state.terminal else sum(one.rows_in_per_second for one in sinks),
        late_rows=metrics.late_rows,
        bad_rows=sum(one.counters.get(BAD_ROWS, 0) for one in metrics.operators),
        state_bytes=sum(one.state_bytes + one.spilled_bytes for one in metrics.operators),
        watermark_ms=watermark_ms,
        watermark_lag_ms=_lag_ms(metrics, watermark_ms),
        watermark_delay=None if delay is None else delay.sentence,
        checkpoints_completed=metrics.checkpoints_completed,
        checkpoints_failed=metrics.checkpoints_failed,
        verdict=verdict(job, metrics),
        failure=_failure(job.error or job.last_failure),
    )


def _failure(error: PenstockError | None) -> FailureFacts | None:
    return None if error is None else FailureFacts(error.code, error.message, error.hint, error.detail)


def _operators(metrics: JobMetrics) -> list[OperatorStatus]:
    chains = {operator.operator_id: task.chain for task in metrics.tasks for operator in task.operators}
    tasks: dict[int, list[TaskFigures]] = {}
    for task in metrics.tasks:
        tasks.setdefault(task.chain, []).append(task)
    return [
        _operator(report, chains[report.operator_id], tasks[chains[report.operator_id]], metrics)
        for report in metrics.operators
    ]


def _operator(
    report: OperatorReport, chain: int, tasks: Sequence[TaskFigures], metrics: JobMetrics
) -> OperatorStatus:
    # the busiest subtask limits the chain: a mean would hide one that is skewed
    busiest = max(tasks, key=lambda task: task.per_second.busy + task.per_second.backpressured).per_second
    spent = sum(busiest) or 1.0
    watermark_ms = _event_ms(report.watermark_us)
    return OperatorStatus(
        operator_id=report.operator_id,
        name=report.name,
        chain=chain,
        is_source=report.is_source,
        parallelism=report.parallelism,
        rows_in=report.rows_in,
        rows_out=report.rows_out,
        rows_in_per_second=report.rows_in_per_second,
        rows_out_per_second=report.rows_out_per_second,
        busy=round(busiest.busy / spent, 3),
        idle=round(busiest.idle / spent, 3),
        backpressured=round(busiest.backpressured / spent, 3),
        watermark_ms=watermark_ms,
        watermark_lag_ms=_lag_ms(metrics, watermark_ms),
        state_entries=report.state_entries,
        state_bytes=report.state_bytes,
        spilled_bytes=report.spilled_bytes,
        late_rows=report.late_rows,
        bad_rows=report.counters.get(BAD_ROWS, 0),
        windows_closed=report.windows_closed,
        next_close_ms=_event_ms(report.next_close_us),
        pending=report.lag,
        counters=dict(sorted(report.counters.items())),
        latency=tuple(_latencies(report.operator_id, tasks)),
    )


def _latencies(operator_id: str, tasks: Sequence[TaskFigures]) -> list[LatencyFacts]:
    return [
        LatencyFacts(
            source,
            task.subtask,
            figures.count,
            figures.p50_us,
            figures.p95_us,
            figures.p99_us,
            figures.max_us,
            figures.octaves,
        )
        for task in tasks
        for operator in task.operators
        if operator.operator_id == operator_id
        for source, figures in sorted(operator.latency.items())
    ]


def _splits(metrics: JobMetrics) -> list[SplitFacts]:
    facts = []
    reports = {report.operator_id: report for report in metrics.operators}
    # a source knows what was read of a split, the watermark generator of its chain the event time
    for chain in {task.chain: task for task in metrics.tasks}.values():
        operators = [reports[operator.operator_id] for operator in chain.operators]
        source = operators[0]
        events = next((one for one in operators if one.splits), source)
        slowest = slowest_split(events)
        facts += [
            _split(source, events, name, delays=name == slowest)
            for name in sorted(source.reads.keys() | events.splits.keys())
        ]
    return facts


def _split(source: OperatorReport, events: OperatorReport, name: str, *, delays: bool) -> SplitFacts:
    reads, progress = source.reads.get(name), events.splits.get(name)
    return SplitFacts(
        operator_id=source.operator_id,
        operator=source.name,
        split=name,
        rows=None if reads is None else reads.rows,
        rows_per_second=None if reads is None else reads.rows_per_second,
        pending=None if reads is None else reads.lag,
        last_event_ms=None if progress is None else _event_ms(progress.last_event_us),
        watermark_ms=None if progress is None else _event_ms(progress.watermark_us),
        idle=progress is not None and progress.idle,
        delays_watermark=delays,
    )


def _part(task: TaskFigures) -> CheckpointPart:
    return CheckpointPart(
        task.name, task.subtask, task.part_ms, task.part_bytes, task.alignment_ms, task.checkpoint_sync_ms
    )


def _event_ms(time_us: int | None) -> int | None:
    """Return an event time in milliseconds; None before the first watermark and after the last."""
    # the two limits mean "no watermark yet" and "end of input": neither is a time
    if time_us is None or not MIN_WATERMARK_US < time_us < MAX_WATERMARK_US:
        return None
    return time_us // 1000


def _lag_ms(metrics: JobMetrics, watermark_ms: int | None) -> int | None:
    return None if watermark_ms is None or not metrics.read_at_ms else metrics.read_at_ms - watermark_ms
