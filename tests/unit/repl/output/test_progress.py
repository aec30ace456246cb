"""What happens to a job is told once: by who waits for it, or by who prints its rows."""

from __future__ import annotations

import io
import logging
from types import SimpleNamespace

import pytest

from penstock.engine.api.clock import ManualClock
from penstock.engine.api.slow_steps import SlowStep, SlowSteps
from penstock.engine.job.job_events import JobEvent
from penstock.repl.launch import job_waiter
from penstock.repl.output.messages import EngineLogHandler, Messages
from penstock.repl.output.printer import Printer, Style
from penstock.repl.output.progress import JobNotices


def a_job(*events: JobEvent) -> SimpleNamespace:
    return SimpleNamespace(job_id="j", events=events, metrics=lambda: SimpleNamespace(events=events))


def test_each_event_is_told_once_in_order_and_a_failure_by_its_error() -> None:
    events = [
        JobEvent(1, "RESTARTING", "(RUN-2900: x) in 1.0 s"),
        JobEvent(2, "RUNNING", "recovered"),
        JobEvent(3, "FAILED", "RUN-2900: x"),
    ]
    out, job = io.StringIO(), a_job(*events[:1])
    notices = JobNotices(job, Messages(out))
    notices.report()
    notices.report()
    job.metrics = lambda: SimpleNamespace(events=tuple(events))
    notices.report()
    assert out.getvalue() == "job j: restarting (RUN-2900: x) in 1.0 s\njob j: running: recovered\n"


@pytest.mark.parametrize("has_rows", [True, False])
def test_who_prints_rows_tells_of_their_job_alone(has_rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    told, rows = io.StringIO(), io.StringIO()
    result = SimpleNamespace(
        has_rows=has_rows,
        job=a_job(JobEvent(1, "FALLBACK", "to checkpoint 1")),
        note=None,
        cancel=lambda: None,
    )
    printer = Printer(rows, Messages(told), Style())
    monkeypatch.setattr(printer, "_rows", lambda *_: 0)
    printer.show(result)  # type: ignore[arg-type]  # as much of a result as is asked for
    assert told.getvalue() == ("job j: fallback: to checkpoint 1\n" if has_rows else "")


def test_a_summary_has_the_rate_of_the_run_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock(0)
    steps = SlowSteps(clock)
    monkeypatch.setattr(job_waiter, "SLOW_STEPS", steps)
    metrics = SimpleNamespace(
        rows_in=1_000, busy_s=3.0, rows_out=2, windows_closed=0, late_rows=0, checkpoints_completed=0
    )
    job = SimpleNamespace(job_id="j", state="FINISHED", metrics=lambda: metrics)
    clock.now_ms = 10_000
    plain = job_waiter.summary(job, 10.0)  # type: ignore[arg-type]  # as much of a job as is asked for
    assert plain.startswith("job j: finished after 10.0 s: 1,000 rows in (100 rows/s, 333 rows/s while busy)")
    clock.now_ms = 6_000
    steps.ended(SlowStep.SPARK, 0)
    steps.ended(SlowStep.KERNELS, 4_000)
    clock.now_ms = 10_000
    assert job_waiter.summary(job, 10.0).startswith(  # type: ignore[arg-type]
        "job j: finished after 10.0 s (Spark's start 6.0 s, compiling 2.0 s, the run itself 4.0 s): "
        "1,000 rows in (250 rows/s, 1,000 rows/s while busy)"
    )


def test_a_note_erases_the_status_line_first() -> None:
    out = io.StringIO()
    messages = Messages(out)
    messages.note("a")
    messages.status("working")
    messages.note("b")
    messages.note("c")
    assert out.getvalue() == "a\n\rworking\x1b[K\r\x1b[Kb\nc\n"


def test_what_the_engine_logs_goes_above_the_prompt() -> None:
    """Spark may be started while the user types: its lines must not be written into that one."""
    logger, out, above = logging.getLogger("penstock"), io.StringIO(), []
    before = list(logger.handlers)
    messages = Messages(out)
    try:
        EngineLogHandler(messages).attach()
        logging.getLogger("penstock.spark").info("Spark is being started")
        messages.note_above_prompt(lambda text, write: above.append((text, write)))
        logging.getLogger("penstock.spark").info("Spark runs, after %.1f s", 2)
    finally:
        logger.handlers[:] = before
    assert out.getvalue() == "Spark is being started\n"
    assert above == [("Spark runs, after 2.0 s", messages.note)]
