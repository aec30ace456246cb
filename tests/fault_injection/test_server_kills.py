"""A killed server: all its jobs go on, each row once; and what is lost would be seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fault_injection.__main__ import run_card
from tests.fault_injection.cards import CARDS
from tests.fault_injection.server_kills import RATE, judge, rows_for
from tests.fault_injection.server_process import ServerProcess
from tests.fault_injection.verdict import Verdict
from tests.harness.length import of_length
from tests.harness.patience import await_that


@pytest.mark.longer
def test_five_jobs_of_a_killed_server_go_on_exactly(tmp_path: Path) -> None:
    card = next(card for card in CARDS if card.name == "server")
    verdict = run_card(card, ["--out", str(tmp_path), "--kills", of_length("1", "10"), "--keep"])
    assert verdict.word == "passed", verdict
    # the negative control: of the same run, one published file less is seen
    root = tmp_path / "server" / "run"
    # its log is none of those of the card
    server = ServerProcess(root, rows_for(int(of_length("1", "10"))), RATE, starts=100)
    server.start()
    server.await_ready()
    next(path for path in (root / "out" / "numbers").glob("*.csv") if path.stat().st_size).unlink()
    control = Verdict("server", 1)
    judge(server, control)
    assert len(control.wrong) == 1 and control.wrong[0].startswith("numbers: ")


@pytest.mark.at_length
def test_a_second_server_takes_over_from_one_that_is_killed(tmp_path: Path) -> None:
    first = ServerProcess(tmp_path, 4_000, 500)
    first.start()
    first.await_ready()
    second = ServerProcess(tmp_path, 4_000, 500, starts=10)
    second.start()
    try:
        await_that(lambda: second.events("waits for the lease"), "the second server")
        assert not second.events("ready")
        first.kill()
        second.await_ready()
        assert {event["epoch"] for event in second.events("lease acquired")} == {2}
        await_that(lambda: second.finished, "the end of all jobs", 0.05)
        verdict = Verdict("server", 1)
        judge(second, verdict)
        assert not verdict.wrong
    finally:
        for server in (first, second):
            if server.process is not None and server.process.poll() is None:
                server.kill()
