"""EXPLAIN ANALYZE JOB and EXPLAIN WHY NO OUTPUT FOR JOB: a job's counters, its pending rows and its
bottleneck.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.client.results.result import Result, verbatim_result
from penstock.client.statements.jobs import find_job, moment_text, state_text
from penstock.engine.job.job_state import JobState
from penstock.planner.explain import explain
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.execution.session_state import SessionState
    from penstock.engine.job.job import Job
    from penstock.engine.job.job_metrics import JobMetrics, OperatorReport
    from penstock.engine.metrics.task_metrics import TaskFigures


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
    slowest = holder(operator)
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


def holder(operator: OperatorReport) -> str | None:
    """Return the split that delays the watermark of an operator: the one furthest behind that is not idle."""
    active = [
        # a split without a watermark sorts first: the merged watermark waits for it
        (split.watermark_us is not None, split.watermark_us or 0, name)
        for name, split in operator.splits.items()
        if not split.idle
    ]
    return min(active)[2] if active else None


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


def silent_source(metrics: JobMetrics) -> str | None:
    """Return the name of a source without a row: all windows wait for its first watermark."""
    # a chain's operators come one after the other: a source, then the assigner of its watermark
    for source, assigner in itertools.pairwise(metrics.operators):
        # one that has ended has the watermark of the end
        waits = assigner.name.startswith("watermark ") and moment_text(assigner.watermark_us) is None
        if source.is_source and not source.rows_out and waits:
            return source.name
    return None


def _who_holds(metrics: JobMetrics) -> str:
    if (silent := silent_source(metrics)) is not None:
        return f", and {silent} has emitted no row yet"
    for operator in metrics.operators:
        slowest = holder(operator)
        if slowest is None:
            continue
        # it has no watermark at all: nothing else can let the windows close
        if operator.splits[slowest].last_event_us is None:
            return f", and split {slowest} of {operator.name} has given no event yet"
        return f", and split {slowest} of {operator.name} is the furthest behind"
    return ""


# busy for half of its time: the task limits the job; backpressured for a tenth: it waits for the slowest one
_MUCH = 0.5
_SOME = 0.1


def bottleneck(tasks: Sequence[TaskFigures], *, running: bool) -> str:
    """Return a sentence that names the slowest task: by the last seconds while the job runs, by all its
    time after.
    """
    if not tasks:
        return "slowest: no task runs"
    shares = {id(task): _shares(task, running=running) for task in tasks}
    # a sink that waits for its target is the bottleneck, though it is not busy itself
    stuck = [
        task for task in tasks if task.operators[-1].name.startswith("sink ") and shares[id(task)][1] >= _MUCH
    ]
    if stuck:
        slowest = max(stuck, key=lambda task: shares[id(task)][1])
        return (
            f"slowest: {slowest.operators[-1].name}, which takes no more rows "
            f"{shares[id(slowest)][1]:.0%} of the time: the sink is the bottleneck"
        )
    slowest = max(tasks, key=lambda task: shares[id(task)][0])
    busy = shares[id(slowest)][0]
    if busy < _MUCH:
        return (
            f"slowest: nothing is, no task is busy more than {busy:.0%} of the time: the sources set the pace"
        )
    waiting = sorted({task.name for task in tasks if shares[id(task)][1] >= _SOME})
    behind = f"; {', '.join(waiting)} wait{'s' if len(waiting) == 1 else ''} for buffers" if waiting else ""
    return f"slowest: task {slowest.subtask} of {slowest.name}, busy {busy:.0%} of the time{behind}"


def _shares(task: TaskFigures, *, running: bool) -> tuple[float, float]:
    """Return the shares of its time that a task was busy, and backpressured."""
    spent = task.per_second if running else task.time
    whole = sum(spent) or 1.0
    return spent.busy / whole, spent.backpressured / whole
