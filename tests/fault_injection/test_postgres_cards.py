"""The cards of PostgreSQL, as short as they say something, each with its negative control."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fault_injection.__main__ import run_card
from tests.fault_injection.cards import CARDS
from tests.fault_injection.verdict import Verdict
from tests.harness.postgres_server import logical_server

pytestmark = [pytest.mark.xdist_group("postgres-cdc"), pytest.mark.at_length]
FOLLOWED = ("--rows", "2000", "--rate", "1500", "--restarts", "0", "--writers", "1")


@pytest.fixture(autouse=True)
def _server() -> None:
    """Skip where there is none: the card itself would call that a failure."""
    logical_server()


def run(name: str, tmp_path: Path, *words: str) -> Verdict:
    card = next(card for card in CARDS if card.name == name)
    return run_card(card, ["--out", str(tmp_path), *words])


def test_a_sink_whose_server_is_killed_writes_each_row_once(tmp_path: Path) -> None:
    verdict = run("postgres-sink", tmp_path, "--rows", "3000", "--steps", "S5", "crash")
    assert verdict.word == "passed", verdict


def test_commits_before_the_checkpoint_are_seen(tmp_path: Path) -> None:
    verdict = run("postgres-sink", tmp_path, "--rows", "3000", "--steps", "C8", "--hasty")
    assert verdict.wrong, verdict


def test_a_table_of_upserts_is_followed_by_workers_that_are_killed(tmp_path: Path) -> None:
    words = ("--kills", "2", "--mode", "upsert", "--deployment", "processes")
    verdict = run("postgres-cdc", tmp_path, *FOLLOWED, *words)
    assert verdict.word == "passed", verdict


def test_values_that_are_left_out_and_forgotten_are_seen(tmp_path: Path) -> None:
    words = ("--kills", "1", "--mode", "upsert", "--careless")
    verdict = run("postgres-cdc", tmp_path, *FOLLOWED, *words)
    assert not verdict.wrong and verdict.figures["wrong rows"], verdict
