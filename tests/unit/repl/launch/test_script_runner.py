"""What is said when a script took too long: what its job waited for, and the advice that fits."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator

import pytest

from penstock.client.session import Session
from penstock.repl.launch.config import Config
from penstock.repl.launch.parser import EXIT_TIMEOUT
from penstock.repl.launch.script_runner import ScriptRunner
from penstock.repl.launch.session_factory import printer_for
from penstock.repl.output.messages import Messages

SOURCE = "CREATE TABLE e (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' DAY) WITH ('connector' = 'datagen', 'rows-per-second' = '2000');"
WINDOWS = "SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '1' DAY) GROUP BY window_start, window_end;"


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming"})
    yield session
    session.close()


def timed_out(session: Session, text: str, ready: Callable[[], bool]) -> str:
    """Let the time of a script be over when its job has come so far."""
    said = io.StringIO()
    messages = Messages(said)
    runner = ScriptRunner(session, printer_for(Config(), messages), messages)

    def expire() -> None:
        pause = threading.Event()
        while not ready():
            pause.wait(0.01)
        runner._expire()

    waiting = threading.Thread(target=expire, daemon=True)
    waiting.start()
    runner._timeout_s = 1_000.0
    assert runner.run_text(text) == EXIT_TIMEOUT
    waiting.join()
    return said.getvalue()


def test_a_query_that_waits_for_the_watermark_is_told_so(session: Session) -> None:
    def holds_rows() -> bool:
        return any(operator.state_entries for job in session.jobs() for operator in job.metrics().operators)

    told = timed_out(session, SOURCE + WINDOWS, holds_rows)
    assert "buffers its rows until the watermark passes them" in told and "EXPLAIN WHY NO OUTPUT" in told, (
        told
    )
    assert "LIMIT" not in told


def test_a_query_that_gives_rows_for_ever_may_have_a_limit(session: Session) -> None:
    told = timed_out(
        session, SOURCE + "SELECT a FROM e;", lambda: any(job.metrics().rows_in for job in session.jobs())
    )
    assert "hint: raise --timeout, or add a LIMIT" in told, told
