"""EXPLAIN ANALYZE JOB and EXPLAIN WHY NO OUTPUT FOR JOB: a job's counters, its pending rows and its
bottleneck.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.client.monitoring.bottleneck import bottleneck
from penstock.client.monitoring.event_time import moment_text, slowest_split
from penstock.client.monitoring.output_verdict import verdict
from penstock.client.results.result import Result, verbatim_result
from penstock.client.statements.jobs import find_job, state_text
from penstock.engine.job.job_state import JobState
from penstock.planner.explain import explain
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.execution.session_state import SessionState
    from penstock.engine.job.job import Job
    from penstock.engine.job.job_metrics import OperatorReport


def explain_job(state: SessionState, node: nodes.ExplainJob) -> Result:
    """Return the physical plan of a job with each operator's counters, or why the job has no output; one
    line a row.
    """
    job = find_job(state, node.job_id, node.job_span)
    lines = silence(job) if node.silence else analysis(state, job)
    return verbatim_result("why" if node.silence else "plan", lines)


def analysis(state: SessionState, job: Job) -> list[str]:
    """Return the job's chains, sinks first. Each operator has its rows, state and time; each task has its
    time shares.
    """
    metrics = job.metrics()
    graph = state.jobs.submitted[job.job_id].query.graph
    assert graph is not None

    def counted(operator_id: str) -> str:
        found = next(
            (
                o
                for o in metrics.operators
                if o.operator_id == operator_id or o.operator_id.startswith(f"{operator_id}-")
            ),
            None,
        )
        return "" if found is None else f"  [{_counts(found)}]"

    # the plan as EXPLAIN shows it, each operator with its counters
    lines = [f"job {job.job_id} is {job.state.lower()}", *explain.explain_job(graph, counted).split("\n")]
    for task in metrics.tasks:
        # a task that has just started has no time yet
        spent = sum(task.time) or 1.0
        shares = (
            f"{task.time.busy / spent:.0%} busy, {task.time.idle / spent:.0%} idle, "
            f"{task.time.backpressured / spent:.0%} backpressured"
        )
        lines.append(
            f"task {task.subtask} of {task.name}: {task.time.busy:,.0f} ms busy ({shares}), "
            f"{task.phase}, alignment {task.alignment_ms:,.0f} ms"
        )
    last = metrics.last_checkpoint
    if last is not None and last.channel_state_rows:
        lines.append(
            f"checkpoint {last.checkpoint_id}: {last.channel_state_rows:,} rows in flight, "
            f"{last.channel_state_bytes:,} bytes"
        )
    return [*lines, bottleneck(metrics.tasks, running=job.state is JobState.RUNNING)]


def _counts(operator: OperatorReport) -> str:
    words = [f"{operator.rows_in:,} in, {operator.rows_out:,} out"]
    if operator.state_entries:
        words.append(
            f"state {operator.state_entries:,} ({state_text(operator)})"
            if operator.state_bytes
            else f"state {operator.state_entries:,}"
        )
    if operator.lag is not None:
        words.append(f"lag {operator.lag:,}")
    if operator.late_rows:
        words.append(f"late {operator.late_rows:,}")
    if operator.windows_closed:
        words.append(f"windows closed {operator.windows_closed:,}")
    words += [f"{name.replace('_', ' ')} {count:,}" for name, count in sorted(operator.counters.items())]
    if (watermark := moment_text(operator.watermark_us)) is not None:
        words.append(f"watermark {watermark}")
    return "; ".join(words)


def silence(job: Job) -> list[str]:
    """Return the rows a job has read and written, the watermark of each split, the buffered rows, and a
    conclusion.
    """
    metrics = job.metrics()
    lines = [
        f"job {job.job_id} is {job.state.lower()}: {metrics.rows_in:,} rows in, "
        f"{metrics.rows_out:,} out, {metrics.late_rows:,} late"
    ]
    for operator in metrics.operators:
        lines += _splits(operator)
    for operator in metrics.operators:
        lines += _buffered(operator)
    return [*lines, f"so: {verdict(job, metrics)}"]


def why_unfinished(job: Job) -> tuple[str, bool]:
    """Return a sentence about a running job's output, and whether there is any."""
    metrics = job.metrics()
    return f"job {job.job_id}: {verdict(job, metrics)}", bool(metrics.rows_out)


def _splits(operator: OperatorReport) -> list[str]:
    """Return a line for each open split of a watermark assigner. The split furthest behind delays the
    merged watermark.
    """
    if not operator.splits:
        return []
    lines = [f"{operator.name}: {len(operator.splits)} open split{'s' if len(operator.splits) != 1 else ''}"]
    slowest = slowest_split(operator)
    for name, split in sorted(operator.splits.items()):
        event = moment_text(split.last_event_us) or "none yet"
        behind = (
            " <- delays the watermark"
            if name == slowest
            else " (idle: does not delay the watermark)"
            if split.idle
            else ""
        )
        lines.append(
            f"  {name}: last event {event}, watermark {moment_text(split.watermark_us) or 'none yet'}{behind}"
        )
    return lines


def _buffered(operator: OperatorReport) -> list[str]:
    if not operator.state_entries:
        return []
    held = f"{operator.name}: holds {operator.state_entries:,} entries"
    # a state without windows, as that of a join: nothing says when it is emitted
    if operator.next_close_us is None:
        return [held]
    at = moment_text(operator.watermark_us)
    short = timedelta(seconds=(operator.next_close_us - (operator.watermark_us or 0)) // 1_000_000)
    stands = f"the watermark is {short} short of it" if at else "no watermark has come"
    return [f"{held}; its next window closes at {moment_text(operator.next_close_us)}, {stands}"]
