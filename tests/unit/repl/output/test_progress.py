"""What happens to a job is told once: by who waits for it, or by who prints its rows."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from penstock.engine.job.job_events import JobEvent
from penstock.repl.output.messages import Messages
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
    monkeypatch.setattr(printer, "_rows", lambda _: 0)
    printer.show(result)  # type: ignore[arg-type]  # as much of a result as is asked for
    assert told.getvalue() == ("job j: fallback: to checkpoint 1\n" if has_rows else "")
