"""The card of damaged checkpoints, as short as it may be."""

from __future__ import annotations

from pathlib import Path

from tests.fault_injection.__main__ import run_card
from tests.fault_injection.cards import CARDS


def test_damage_of_every_kind_is_told(tmp_path: Path) -> None:
    card = next(card for card in CARDS if card.name == "bit-rot")
    verdict = run_card(card, ["--out", str(tmp_path)])
    assert verdict.word == "passed", [*verdict.wrong[:5], *verdict.uncovered]
