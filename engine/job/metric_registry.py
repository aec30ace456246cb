"""The registry of metrics: the one table of their declarations, and a job's metrics by it. Every reader of
metrics uses it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US
from penstock.engine.job.job_metrics import JobMetrics
from penstock.engine.metrics.operator_metrics import OTHER_SPLITS, SPLITS_SHOWN, SplitProgress
from penstock.engine.metrics.task_metrics import OperatorFigures, TaskFigures


class MetricKind(StrEnum):
    """The kind of a metric. A counter grows until its task restarts, a gauge rises and falls, a summary is a
    percentile of a histogram.
    """

    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"


class MetricScope(StrEnum):
    """The scope of a metric: a job, a subtask of a chain, a subtask of one operator, or a split it reads."""

    JOB = "job"
    TASK = "task"
    OPERATOR = "operator"
    SPLIT = "split"


@dataclass(frozen=True)
class MetricDeclaration:
    """A metric by its name: ``unit`` is rows, batches, elements, bytes, ms, us, ms/s, permille, or nothing
    for plain counts.
    """

    name: str
    scope: MetricScope
    kind: MetricKind
    unit: str
    help: str


@dataclass(frozen=True)
class Metric:
    """One metric of a running job. Those of the job have no ``operator`` and no ``subtask``; ``source`` and
    ``quantile`` identify a latency, ``split`` a metric of a split.

    ``operator_id`` distinguishes operators of one name. For a task it is its chain, and ``operator`` names
    all operators of that chain.
    """

    name: str
    job: str
    operator: str
    operator_id: str
    subtask: int | None
    value: int
    unit: str
    kind: MetricKind
    scope: MetricScope
    source: str = ""
    quantile: str = ""
    split: str = ""


def _declare(*rows: tuple[str, MetricScope, MetricKind, str, str]) -> dict[str, MetricDeclaration]:
    return {row[0]: MetricDeclaration(*row) for row in rows}


_COUNTER, _GAUGE = MetricKind.COUNTER, MetricKind.GAUGE

METRICS: dict[str, MetricDeclaration] = _declare(
    # Of the job.
    ("uptime", MetricScope.JOB, _GAUGE, "ms", "since the job was last started or restarted"),
    ("numRestarts", MetricScope.JOB, _COUNTER, "", "restarts after failures"),
    ("numberOfCompletedCheckpoints", MetricScope.JOB, _COUNTER, "", "checkpoints that became durable"),
    ("numberOfFailedCheckpoints", MetricScope.JOB, _COUNTER, "", "checkpoints that were abandoned"),
    (
        "lastCheckpointDuration",
        MetricScope.JOB,
        _GAUGE,
        "ms",
        "from the start of the last completed checkpoint until it was durable",
    ),
    ("lastCheckpointSize", MetricScope.JOB, _GAUGE, "bytes", "what the last completed checkpoint wrote"),
    ("numLostWorkers", MetricScope.JOB, _COUNTER, "", "worker processes that died or fell silent"),
    ("numStaleMessages", MetricScope.JOB, _COUNTER, "", "messages refused because their deployment was over"),
    (
        "numConnectionsRefused",
        MetricScope.JOB,
        _COUNTER,
        "",
        "connections whose peer did not say in time, or rightly, who it is",
    ),
    (
        "numAcceptFailures",
        MetricScope.JOB,
        _COUNTER,
        "",
        "connections the system could not accept, for lack of descriptors or others",
    ),
    # Where a task's time goes, in total and of each second.
    ("busyTimeMs", MetricScope.TASK, _COUNTER, "ms", "time spent working"),
    ("idleTimeMs", MetricScope.TASK, _COUNTER, "ms", "time spent waiting for input"),
    (
        "backPressuredTimeMs",
        MetricScope.TASK,
        _COUNTER,
        "ms",
        "time spent waiting for credit of output channels, or for a sink",
    ),
    (
        "busyTimeMsPerSecond",
        MetricScope.TASK,
        _GAUGE,
        "ms/s",
        "of each of the last one or two seconds, time spent working",
    ),
    (
        "idleTimeMsPerSecond",
        MetricScope.TASK,
        _GAUGE,
        "ms/s",
        "of each of the last one or two seconds, time spent waiting for input",
    ),
    (
        "backPressuredTimeMsPerSecond",
        MetricScope.TASK,
        _GAUGE,
        "ms/s",
        "of each of the last one or two seconds, time spent waiting for credit",
    ),
    # What comes in and goes out, and what waits in its channels.
    (
        "numBatchesIn",
        MetricScope.TASK,
        _COUNTER,
        "batches",
        "batches read from input channels, or emitted by the source",
    ),
    (
        "numBytesIn",
        MetricScope.TASK,
        _COUNTER,
        "bytes",
        "about how many bytes of rows came out of input channels",
    ),
    (
        "numBytesOut",
        MetricScope.TASK,
        _COUNTER,
        "bytes",
        "about how many bytes of rows went to output channels",
    ),
    ("inputQueueLength", MetricScope.TASK, _GAUGE, "elements", "elements in the input channels"),
    (
        "inputQueueSize",
        MetricScope.TASK,
        _GAUGE,
        "bytes",
        "about how many bytes of rows are in the input channels",
    ),
    ("inPoolUsage", MetricScope.TASK, _GAUGE, "permille", "how full the input channels are"),
    # A task's part in checkpoints.
    (
        "checkpointAlignmentTime",
        MetricScope.TASK,
        _GAUGE,
        "ms",
        "from the first to the last barrier of the last checkpoint",
    ),
    (
        "checkpointSyncDuration",
        MetricScope.TASK,
        _GAUGE,
        "ms",
        "how long the last snapshot delayed rows",
    ),
    (
        "checkpointSyncDurationMax",
        MetricScope.TASK,
        _GAUGE,
        "ms",
        "the longest any snapshot delayed rows",
    ),
    (
        "checkpointEndToEndDuration",
        MetricScope.TASK,
        _GAUGE,
        "ms",
        "from the start of the last checkpoint until the task's part of it was written",
    ),
    (
        "checkpointSize",
        MetricScope.TASK,
        _GAUGE,
        "bytes",
        "what the files of the task's part of the last checkpoint hold, shared ones included",
    ),
    # Of each operator.
    ("numRecordsIn", MetricScope.OPERATOR, _COUNTER, "rows", "rows received"),
    ("numRecordsOut", MetricScope.OPERATOR, _COUNTER, "rows", "rows emitted"),
    (
        "numRecordsInPerSecond",
        MetricScope.OPERATOR,
        _GAUGE,
        "rows/s",
        "rows received in each of the last one or two seconds",
    ),
    (
        "numRecordsOutPerSecond",
        MetricScope.OPERATOR,
        _GAUGE,
        "rows/s",
        "rows emitted in each of the last one or two seconds",
    ),
    (
        "numLateRecordsDropped",
        MetricScope.OPERATOR,
        _COUNTER,
        "rows",
        "rows that came after their window had closed",
    ),
    ("numWindowsClosed", MetricScope.OPERATOR, _COUNTER, "", "windows whose result was emitted"),
    ("numStateEntries", MetricScope.OPERATOR, _GAUGE, "", "entries of state"),
    ("stateBytes", MetricScope.OPERATOR, _GAUGE, "bytes", "state in memory, measured about once a second"),
    (
        "spilledBytes",
        MetricScope.OPERATOR,
        _GAUGE,
        "bytes",
        "state on disk because memory is over its budget",
    ),
    (
        "currentInputWatermark",
        MetricScope.OPERATOR,
        _GAUGE,
        "ms",
        "the lowest watermark of the inputs, milliseconds since 1970; absent before the first",
    ),
    (
        "watermarkLag",
        MetricScope.OPERATOR,
        _GAUGE,
        "ms",
        "how far that watermark is behind the clock of the wall",
    ),
    (
        "latency",
        MetricScope.OPERATOR,
        MetricKind.SUMMARY,
        "us",
        "how long latency markers took from a source to this sink",
    ),
    # Of each split of a source.
    (
        "pendingRecords",
        MetricScope.SPLIT,
        _GAUGE,
        "records",
        "the lag: records of the split that were not read yet; absent where a connector does not know",
    ),
    ("recordsRead", MetricScope.SPLIT, _COUNTER, "rows", "rows read of the split"),
    (
        "recordsReadPerSecond",
        MetricScope.SPLIT,
        _GAUGE,
        "rows/s",
        "rows read of the split in the last second in which its source was not blocked",
    ),
    (
        "splitWatermark",
        MetricScope.SPLIT,
        _GAUGE,
        "ms",
        "the watermark of the split, milliseconds since 1970; absent before the first",
    ),
    (
        "splitIdle",
        MetricScope.SPLIT,
        _GAUGE,
        "",
        "1 while the split is idle, so that no watermark waits for it; of all other splits how many are",
    ),
)
_PLAIN_COUNTER = "counted by the operator itself"


def declaration(name: str) -> MetricDeclaration:
    """Return the declaration of a metric; a counter that an operator names itself gets a generated one."""
    # Counters of connectors and functions have no declaration of their own.
    return METRICS.get(name) or MetricDeclaration(
        name, MetricScope.OPERATOR, MetricKind.COUNTER, "", _PLAIN_COUNTER
    )


def metrics_of(job_id: str, numbers: JobMetrics) -> Iterator[Metric]:
    """Yield every metric of a job: the job's own, then task by task, in plan order."""
    for name, value in _of_job(numbers):
        yield _metric(name, job_id, "", "", None, value)
    for task in numbers.tasks:
        for name, value in _of_task(task):
            yield _metric(name, job_id, task.name, f"chain {task.chain}", task.subtask, value)
        for operator in task.operators:
            for name, value in _of_operator(operator, numbers.read_at_ms):
                yield _metric(name, job_id, operator.name, operator.operator_id, task.subtask, value)
            yield from _latencies(job_id, operator, task.subtask)
            for split, name, value in _of_splits(operator):
                metric = _metric(name, job_id, operator.name, operator.operator_id, task.subtask, value)
                yield replace(metric, split=split)


def _metric(
    name: str, job: str, operator: str, operator_id: str, subtask: int | None, value: float
) -> Metric:
    declared = declaration(name)
    return Metric(
        name, job, operator, operator_id, subtask, round(value), declared.unit, declared.kind, declared.scope
    )


def _of_job(numbers: JobMetrics) -> Iterator[tuple[str, float]]:
    yield "uptime", numbers.uptime_ms
    yield "numRestarts", numbers.restarts
    yield "numberOfCompletedCheckpoints", numbers.checkpoints_completed
    yield "numberOfFailedCheckpoints", numbers.checkpoints_failed
    if (last := numbers.last_checkpoint) is not None:
        # A gauge of something that has not happened yet is absent, not 0.
        yield "lastCheckpointDuration", last.duration_ms
        yield "lastCheckpointSize", last.size_bytes
    if numbers.workers_lost is not None and numbers.stale_messages is not None:
        yield "numLostWorkers", numbers.workers_lost
        yield "numStaleMessages", numbers.stale_messages
    if numbers.refusals is not None:
        yield "numConnectionsRefused", numbers.refusals.refused
        yield "numAcceptFailures", numbers.refusals.failed


def _of_task(task: TaskFigures) -> Iterator[tuple[str, float]]:
    for suffix, shares in (("", task.time), ("PerSecond", task.per_second)):
        # Totals, then shares of a second.
        yield f"busyTimeMs{suffix}", shares.busy
        yield f"idleTimeMs{suffix}", shares.idle
        yield f"backPressuredTimeMs{suffix}", shares.backpressured
    yield "numBatchesIn", task.batches
    yield "numBytesOut", task.bytes_out
    # a source has no input channels and aligns no barriers
    if not task.is_source:
        yield "numBytesIn", task.bytes_in
        yield "inputQueueLength", task.queues.length
        yield "inputQueueSize", task.queues.size_bytes
        # Permille of the capacity, which is counted in elements.
        yield "inPoolUsage", 1000 * task.queues.length / max(1, task.queues.capacity)
        yield "checkpointAlignmentTime", task.alignment_ms
    yield "checkpointSyncDuration", task.checkpoint_sync_ms
    yield "checkpointSyncDurationMax", task.checkpoint_sync_ms_max
    yield "checkpointEndToEndDuration", task.part_ms
    yield "checkpointSize", task.part_bytes


def _of_operator(operator: OperatorFigures, read_at_ms: int) -> Iterator[tuple[str, float]]:
    yield "numRecordsIn", operator.rows_in
    yield "numRecordsOut", operator.rows_out
    yield "numRecordsInPerSecond", operator.rows_in_per_second
    yield "numRecordsOutPerSecond", operator.rows_out_per_second
    yield "numLateRecordsDropped", operator.late_rows
    # Counters of every operator, 0 where they mean nothing to it.
    yield "numWindowsClosed", operator.windows_closed
    yield "numStateEntries", operator.state_entries
    yield "stateBytes", operator.state_bytes
    yield "spilledBytes", operator.spilled_bytes
    # the two limits mean "no watermark yet" and "end of input": neither is a time
    if operator.watermark_us is not None and MIN_WATERMARK_US < operator.watermark_us < MAX_WATERMARK_US:
        yield "currentInputWatermark", operator.watermark_us // 1000
        yield "watermarkLag", read_at_ms - operator.watermark_us // 1000
    for name, count in sorted(operator.counters.items()):
        # an operator's own counters are snake_case; metric names are camelCase
        first, *others = name.split("_")
        yield first + "".join(word.capitalize() for word in others), count


def _of_splits(operator: OperatorFigures) -> Iterator[tuple[str, str, float]]:
    """Yield split, metric and value: of a source what was read, of a watermark generator the event time."""
    for split, reads in operator.reads.items():
        if reads.lag is not None:
            yield split, "pendingRecords", reads.lag
        yield split, "recordsRead", reads.rows
        yield split, "recordsReadPerSecond", reads.rows_per_second
    for split, progress in itertools.islice(operator.splits.items(), SPLITS_SHOWN):
        if (watermark_ms := _watermark_ms(progress)) is not None:
            yield split, "splitWatermark", watermark_ms
        yield split, "splitIdle", progress.idle
    hidden = list(itertools.islice(operator.splits.values(), SPLITS_SHOWN, None))
    if hidden:
        reached = [watermark_ms for one in hidden if (watermark_ms := _watermark_ms(one)) is not None]
        # the one furthest behind is what a watermark waits for
        if reached:
            yield OTHER_SPLITS, "splitWatermark", min(reached)
        yield OTHER_SPLITS, "splitIdle", sum(progress.idle for progress in hidden)


def _watermark_ms(progress: SplitProgress) -> int | None:
    return None if progress.watermark_us is None else progress.watermark_us // 1000


def _latencies(job_id: str, operator: OperatorFigures, subtask: int) -> Iterator[Metric]:
    for source, figures in sorted(operator.latency.items()):
        quantiles = (
            ("0.5", figures.p50_us),
            ("0.95", figures.p95_us),
            ("0.99", figures.p99_us),
            ("1", figures.max_us),
        )
        # Percentiles, then what a summary needs beside them: how many markers, and their sum.
        for quantile, value in (*quantiles, ("count", figures.count), ("sum", figures.sum_us)):
            unit = "" if quantile == "count" else "us"
            yield Metric(
                "latency",
                job_id,
                operator.name,
                operator.operator_id,
                subtask,
                value,
                unit,
                MetricKind.SUMMARY,
                MetricScope.OPERATOR,
                source,
                quantile,
            )
