"""Why a job has no output: the conclusion of EXPLAIN WHY NO OUTPUT and of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client.monitoring.event_time import silent_source, slowest_split
from penstock.engine.job.job_state import JobState

if TYPE_CHECKING:
    from penstock.engine.job.job import Job
    from penstock.engine.job.job_metrics import JobMetrics


def verdict(job: Job, metrics: JobMetrics) -> str:
    """Return why a job has no output, or that it has some: the conclusion of EXPLAIN WHY NO OUTPUT."""
    # facts about the whole job come before conclusions about one operator
    if job.error is not None:
        return f"the job has failed: {job.error.message}"
    if metrics.rows_out:
        return f"there is output: {metrics.rows_out:,} rows have reached the sinks"
    pruned, skipped = (
        sum(o.counters.get(name, 0) for o in metrics.operators) for name in ("rows_pruned", "rows_skipped")
    )
    # runtime filters dropped every row
    if pruned + skipped and pruned >= metrics.rows_in:
        return (
            f"no row has a key of the side of its join that was loaded first: {pruned + skipped:,} were "
            "dropped by runtime filters"
        )
    # a restart resets the counters, and no task reports before it runs
    if job.state is JobState.RESTARTING and (failure := job.last_failure) is not None:
        return f"the job is being restarted after {failure.code}: {failure.message}"
    if not metrics.operators and not job.state.terminal:
        return "its tasks are being started"
    if not metrics.rows_in:
        sources = [operator.name for operator in metrics.operators if operator.is_source]
        silent = f"{sources[0]} has emitted no row" if len(sources) == 1 else "no source has emitted a row"
        return silent + ("" if job.state.terminal else " yet")
    swallowed = [
        o for o in metrics.operators if o.rows_in and not o.rows_out and not o.name.startswith("sink ")
    ]
    if not swallowed:
        return "rows are in progress"
    # operators come in plan order: the first one with input and no output is the reason
    first = swallowed[0]
    # its window was closed before each row came
    if first.late_rows >= first.rows_in:
        return (
            f"every row that came to {first.name} was late; a longer delay of the watermark, or EMIT .. "
            "WITH LATENESS, accepts them"
        )
    # it waits for no watermark
    if first.name == "emit final" and not job.state.terminal:
        return "emit final gives its rows when the input ends"
    if first.state_entries and job.state is JobState.RUNNING:
        return f"{first.name} buffers its rows until the watermark passes them{_who_holds(metrics)}"
    if first.state_entries:
        return f"{first.name} still buffered rows when the job ended"
    return f"{first.name} has emitted no row"


def _who_holds(metrics: JobMetrics) -> str:
    if (silent := silent_source(metrics)) is not None:
        return f", and {silent} has emitted no row yet"
    for operator in metrics.operators:
        slowest = slowest_split(operator)
        if slowest is None:
            continue
        # it has no watermark at all: nothing else can let the windows close
        if operator.splits[slowest].last_event_us is None:
            return f", and split {slowest} of {operator.name} has given no event yet"
        return f", and split {slowest} of {operator.name} is the furthest behind"
    return ""
