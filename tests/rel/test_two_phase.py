"""Two-phase commit, killed as a process at two steps of its sink while others fail, and what commits too early, which must be seen."""

from __future__ import annotations

from pathlib import Path

from tests.rel.__main__ import run_card
from tests.rel.cards import CARDS

CARD = next(card for card in CARDS if card.name == "two-phase")
SHORT = ["--only", "processes", "--rows", "2000", "--rate", "4000", "--errors", "0.03"]


def test_every_row_is_there_once_whatever_dies(tmp_path: Path) -> None:
    verdict = run_card(CARD, ["--out", str(tmp_path), *SHORT, "--into", "sqlite", "--steps", "S2", "S5"])
    assert verdict.word == "passed", verdict


def test_what_is_committed_too_early_is_seen(tmp_path: Path) -> None:
    verdict = run_card(CARD, ["--out", str(tmp_path), *SHORT, "--into", "sqlite", "--steps", "S3", "--hasty"])
    assert any("are there twice" in sentence for sentence in verdict.wrong), verdict
