"""Lakehouse tables, killed as a process at two steps of the sink, and a target that forgets its epochs, which
must be seen.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fault_injection.__main__ import run_card
from tests.fault_injection.cards import CARDS

pytest.importorskip("deltalake", reason="the extra delta is not installed")

CARD = next(card for card in CARDS if card.name == "lakehouse")
SHORT = ["--rows", "1200", "--rate", "2000", "--into", "delta", "--hits", "1", "--ckpt", "300 ms"]


def test_every_row_is_there_once_whatever_dies(tmp_path: Path) -> None:
    verdict = run_card(CARD, ["--out", str(tmp_path), *SHORT, "--steps", "S4", "S6"])
    assert verdict.word == "passed", verdict


@pytest.mark.at_length
@pytest.mark.parametrize("mutant", [[], ["--forgetful"]])
def test_a_commit_over_a_rest_catalog_that_is_not_answered(tmp_path: Path, mutant: list[str]) -> None:
    pytest.importorskip("pyiceberg", reason="the extra iceberg is not installed")
    # later epochs have rows: the first may be empty
    longer = ["--rows", "4000", "--rate", "1000", "--hits", "4"]
    into = ["--into", "iceberg-rest", "--steps", "unanswered", "late", "S6", "unanswered", "S6", *mutant]
    verdict = run_card(CARD, ["--out", str(tmp_path), *SHORT, *longer, *into])
    assert (verdict.word == "passed") == (not mutant), verdict
    assert any("are there twice" in sentence for sentence in verdict.wrong) == bool(mutant), verdict


@pytest.mark.at_length
def test_epochs_that_are_forgotten_are_seen(tmp_path: Path) -> None:
    verdict = run_card(CARD, ["--out", str(tmp_path), *SHORT, "--steps", "S6", "S6", "S6", "--forgetful"])
    assert any("are there twice" in sentence for sentence in verdict.wrong), verdict
