"""The card of attacks, as short as it says something, with its negative control."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fault_injection.__main__ import run_card
from tests.fault_injection.cards import CARDS
from tests.fault_injection.verdict import Verdict

pytestmark = pytest.mark.at_length
BRIEFLY = ("--messages", "50", "--slow", "10")


def run(tmp_path: Path, *words: str) -> Verdict:
    card = next(card for card in CARDS if card.name == "attacks")
    return run_card(card, ["--out", str(tmp_path), *words])


def test_a_server_is_attacked_on_every_port(tmp_path: Path) -> None:
    verdict = run(tmp_path, *BRIEFLY)
    assert verdict.word == "passed", verdict


def test_users_of_too_large_a_role_are_seen(tmp_path: Path) -> None:
    verdict = run(tmp_path, *BRIEFLY, "--careless")
    assert any("role read may" in sentence for sentence in verdict.wrong), verdict
