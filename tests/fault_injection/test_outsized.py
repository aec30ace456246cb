"""The card of outsized things, on one that is refused in an instant; another answer, or too much memory,
is a failure.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.fault_injection import outsized
from tests.fault_injection.__main__ import run_card
from tests.fault_injection.cards import CARDS

NAME = "CUMULATE of 1 ms in 1 day"


def test_a_thing_is_refused_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = next(card for card in CARDS if card.name == "outsized")
    words = ["--only", NAME, "--out", str(tmp_path)]
    verdict = run_card(card, words)
    assert verdict.word == "passed", verdict
    assert "SQL-1715: a row would fall into 86,400,000 windows" in verdict.figures[NAME]
    monkeypatch.setitem(outsized.THINGS, NAME, replace(outsized.THINGS[NAME], answer="7", most_mb=1))
    verdict = run_card(card, words)
    assert verdict.word == "failed" and len(verdict.wrong) == 2
