"""The card of Kafka for the faults beside the job's own death, and its negative controls. ``make test`` has the
same in one process: ``tests/unit/engine/connectors/kafka/test_target.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fault_injection.__main__ import run_card
from tests.fault_injection.cards import CARDS

CARD = next(card for card in CARDS if card.name == "kafka")
pytestmark = pytest.mark.at_length


def run(directory: Path, *words: str):
    return run_card(CARD, ["--out", str(directory), "--rate", "400", *words])


def test_rows_are_there_once_whatever_dies(tmp_path: Path) -> None:
    steps = ("broker", "zombie", "worker", "broker", "zombie")
    verdict = run(tmp_path, "--rows", "20000", "--steps", *steps, "--seed", "3")
    assert verdict.word == "passed", verdict


@pytest.mark.parametrize(
    ("control", "step", "said"),
    [
        ("unfenced", "zombie", "there twice"),
        ("careless", "broker", "lost"),
        ("hasty", "worker", "there twice"),
    ],
)
def test_what_would_be_wrong_is_seen(tmp_path: Path, control: str, step: str, said: str) -> None:
    words = ("--rows", "12000", "--steps", step, step, "--seed", "3", "--control", control)
    verdict = run(tmp_path, *words)
    assert any(said in sentence for sentence in verdict.wrong), verdict
