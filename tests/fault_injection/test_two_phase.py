"""Two-phase commit, killed as a process at two steps of its sink while others fail, and what commits too
early, which must be seen.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock
from penstock.engine.api.sink import Committable
from penstock.engine.connectors import registry
from tests.fault_injection.__main__ import run_card
from tests.fault_injection.cards import CARDS
from tests.fault_injection.log import KEYS, Log, Refused, out_of_order
from tests.fault_injection.log_sink import LogSink

CARD = next(card for card in CARDS if card.name == "two-phase")
SHORT = ["--only", "processes", "--rows", "2000", "--rate", "4000", "--errors", "0.03"]


def test_every_row_is_there_once_whatever_dies(tmp_path: Path) -> None:
    verdict = run_card(CARD, ["--out", str(tmp_path), *SHORT, "--into", "sqlite", "--steps", "S2", "S5"])
    assert verdict.word == "passed", verdict


@pytest.mark.at_length
def test_what_is_committed_too_early_is_seen(tmp_path: Path) -> None:
    verdict = run_card(CARD, ["--out", str(tmp_path), *SHORT, "--into", "sqlite", "--steps", "S3", "--hasty"])
    assert any("are there twice" in sentence for sentence in verdict.wrong), verdict


@pytest.mark.at_length
@pytest.mark.parametrize("hasty", [False, True])
def test_the_numbers_of_each_key_are_in_order_in_a_log(tmp_path: Path, hasty: bool) -> None:
    flags = ["--into", "log", "--steps", "S3", "S6", *(["--hasty"] if hasty else [])]
    verdict = run_card(CARD, ["--out", str(tmp_path), *SHORT, *flags])
    seen = {
        word
        for sentence in verdict.wrong
        for word in ("are there twice", "behind a higher one")
        if word in sentence
    }
    assert seen == {"are there twice", "behind a higher one"} if hasty else verdict.word == "passed", verdict


def test_a_log_hides_what_is_open_and_what_was_aborted(tmp_path: Path) -> None:
    log = Log(tmp_path)
    epoch = log.take_over(1, 0, [])
    first = log.append(0, epoch, None, [0, 1])
    second = log.append(0, epoch, None, [KEYS, 2])
    log.end(second, "committed")
    assert log.committed().tolist() == [2]  # the rest of its partition is behind what is open
    log.end(first, "aborted")
    assert log.committed().tolist() == [KEYS, 2] and log.open_transactions == 0
    with pytest.raises(Refused, match="is aborted"):
        log.end(first, "committed")
    log.take_over(1, 0, [])
    with pytest.raises(Refused, match="fenced"):
        log.append(0, epoch, None, [3])
    assert (
        out_of_order(np.array([0, 1, KEYS, KEYS + 1])) == 0
        and out_of_order(np.array([KEYS, 1, 0])) == out_of_order(np.array([1, 1])) == 1
    )


def test_a_transaction_the_log_has_given_up_ends_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that aborts what it has held too long must not be passed over: its rows would be lost
    without a word.
    """
    tried: list[Committable] = []

    class Late(LogSink):
        def commit(self, items: list[Committable]) -> None:
            if items:
                tried.extend(items)
                self._log.expire()
            super().commit(items)

    monkeypatch.setitem(registry.SINKS, "filesystem", Late)
    settings = {
        "execution.runtime-mode": "streaming",
        "execution.checkpointing.interval": "50 ms",
        "table.dml-sync": "true",
    }
    with penstock.connect(
        settings={**settings, "execution.checkpointing.dir": str(tmp_path / "state")}
    ) as made:
        made.execute(
            "CREATE TABLE n (k INT) WITH ('connector' = 'datagen', 'fields.k.kind' = 'sequence', 'rows-per-second' = '1000')"
        )
        made.execute(
            f"CREATE TABLE o (k INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'o.log'}', 'format' = 'json')"
        )
        with pytest.raises(
            penstock.Error, match=r"DAT-4707.*checkpoint \d+: the log refuses transaction \d+"
        ):
            made.execute("INSERT INTO o SELECT k FROM n")
    assert len(tried) == 1 and not Log(tmp_path / "o.log").committed().size
