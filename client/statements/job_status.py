"""The status of a query or a job in a few lines: what it has read, its watermark, and why no row has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client.monitoring.event_time import moment_text, silent_source, slowest_split
from penstock.client.monitoring.output_verdict import verdict
from penstock.client.results.result import Result

if TYPE_CHECKING:
    from penstock.engine.job.job import Job
    from penstock.engine.job.job_metrics import JobMetrics


_BACKENDS = {"duckdb": "DuckDB", "spark": "Spark"}


def query_status(result: Result) -> list[str]:
    """Return the status of what computes a result."""
    if result.job is not None:
        return job_status(result.job, folded=result.shape.folds and result.shape.finite)
    if result.backend is None:
        return []
    return [result.progress() or f"{_BACKENDS.get(result.backend, result.backend)} computes the query"]


def job_status(job: Job, *, folded: bool = False) -> list[str]:
    """Return the status of a job. ``folded``: its rows are read by a query that gives them at its end."""
    metrics = job.metrics()
    why = verdict(job, metrics)
    # rows have reached the client, which shows none before the end
    if folded and metrics.rows_out and not job.state.terminal:
        why = "later input may change its rows, so they are printed when the query ends"
    return [
        f"job {job.job_id} is {job.state.lower()}: {metrics.rows_in:,} rows read, "
        f"{metrics.rows_out:,} given, {metrics.late_rows:,} late",
        *_lags(metrics),
        *_event_time(metrics),
        f"so: {why}",
    ]


def _lags(metrics: JobMetrics) -> list[str]:
    """Return a line a source that knows its lag, with the split that has most of it."""
    lines = []
    for operator in metrics.operators:
        if operator.lag:
            split = max(operator.reads, key=lambda name: operator.reads[name].lag or 0)
            lines.append(
                f"{operator.name}: {operator.lag:,} records behind, "
                f"{operator.reads[split].lag:,} of them in split {split}"
            )
    return lines


def _event_time(metrics: JobMetrics) -> list[str]:
    """Return a line with the watermark, the split that delays it and the next window's end; none for a
    job without event time.
    """
    parts = [_watermark(metrics)] if any(operator.splits for operator in metrics.operators) else []
    closes = [o.next_close_us for o in metrics.operators if o.next_close_us is not None]
    if closes and (moment := moment_text(min(closes))) is not None:
        parts.append(f"the next window closes at {moment}")
    return ["; ".join(parts)] if parts else []


def _watermark(metrics: JobMetrics) -> str:
    if (silent := silent_source(metrics)) is not None:
        return f"no watermark yet: {silent} has emitted no row"
    assigners = [operator for operator in metrics.operators if operator.splits]
    # of several sources the one whose watermark is the lowest, or that has none
    slowest = min(assigners, key=lambda one: (one.watermark_us is not None, one.watermark_us or 0))
    moment = moment_text(slowest.watermark_us)
    text = "no watermark yet" if moment is None else f"watermark {moment}"
    if (split := slowest_split(slowest)) is not None:
        event = moment_text(slowest.splits[split].last_event_us)
        seen = "no event yet" if event is None else f"last event {event}"
        text += f", delayed by split {split} of {slowest.name} ({seen})"
    if idle := sum(split.idle for operator in assigners for split in operator.splits.values()):
        text += f", {idle} idle split{'' if idle == 1 else 's'} not waited for"
    return text
