"""The experiments with processes, as short as they say something, and a negative control of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fault_injection.__main__ import run_card
from tests.fault_injection.cards import CARDS
from tests.harness.length import of_length

SHORT = ["--every", "0.5", "--jitter", "0.5", "--ckpt", "200 ms", "--rate", "3000"]


def run(name: str, tmp_path: Path, *words: str):
    card = next(card for card in CARDS if card.name == name)
    return run_card(card, ["--out", str(tmp_path), *SHORT, *words])


@pytest.mark.longer
def test_alerts_are_exact_while_the_job_is_killed(tmp_path: Path) -> None:
    verdict = run(
        "alerts",
        tmp_path,
        "--kills",
        of_length("1", "2"),
        "--keys",
        "500",
        "--seconds",
        of_length("25", "90"),
        "--error-rate",
        "0.001",
    )
    assert verdict.word == "passed", verdict


@pytest.mark.at_length
def test_alerts_without_state_are_wrong(tmp_path: Path) -> None:
    verdict = run(
        "alerts", tmp_path, "--kills", "1", "--keys", "500", "--seconds", "90", "--guarantee", "none"
    )
    assert verdict.figures["false alerts"], verdict


@pytest.mark.at_length
def test_balances_sum_to_zero_while_the_job_is_killed(tmp_path: Path) -> None:
    verdict = run("ledger", tmp_path, "--kills", of_length("1", "2"))
    assert verdict.word == "passed", verdict
