"""Programs that end at any moment, as few as say something; the card ``ends`` runs hundreds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fault_injection.__main__ import run_card
from tests.fault_injection.cards import CARDS
from tests.fault_injection.ends import ABORTS, End, Outcome, judge
from tests.fault_injection.ends_tables import ROWS
from tests.harness.length import of_length
from tests.harness.patience import PATIENCE_S

CARD = next(card for card in CARDS if card.name == "ends")


@pytest.mark.longer
def test_programs_end_in_order_at_any_moment(tmp_path: Path) -> None:
    verdict = run_card(CARD, ["--out", str(tmp_path), "--count", of_length("2", "12")])
    assert verdict.word == "passed", verdict.wrong


def test_a_program_that_leaves_without_closing_is_seen(tmp_path: Path) -> None:
    verdict = run_card(CARD, ["--out", str(tmp_path), "--count", "1", "--hard"])
    assert any("nobody says that job" in sentence for sentence in verdict.wrong)


BROKEN_OFF = """
import _imp, penstock
connection = penstock.connect()
connection.execute("CREATE TABLE e (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')")
connection.execute("CREATE TABLE hole (a BIGINT) WITH ('connector' = 'blackhole')")
_imp.acquire_lock()  # as Ctrl-C leaves it in the middle of an import: no thread can import from here on
connection.execute("INSERT INTO hole SELECT a FROM e")
"""


def test_a_program_ends_whose_import_was_interrupted() -> None:
    program = [sys.executable, "-c", BROKEN_OFF]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0
    assert "was stopped before its sources ended" in done.stderr


def test_what_must_not_happen_is_seen() -> None:
    end = End(1, "client", "bounded", False, "main", 0.1)
    whole = dict.fromkeys(range(ROWS), 1)
    assert judge(end, Outcome(0, f"ready\nfinished {ROWS}\n", "", whole)) == []
    assert judge(
        end,
        Outcome(
            -6, f"ready\nfinished {ROWS}\n", "terminate called after throwing an instance of ''\n", whole
        ),
    ) == [
        "exit code -6, not 0",
        "noise: terminate called",
    ]
    assert ABORTS.search("nanobind: leaked 3 instances!")
    assert judge(end, Outcome(0, f"ready\nfinished {ROWS}\n", "", {0: 1})) == [
        f"the INSERT was finished, and {ROWS - 1} of its rows are not there"
    ]
    assert judge(end, Outcome(0, f"ready\nfinished {ROWS}\n", "", {**whole, 0: 2})) == [
        "rows of copied are there twice"
    ]
    assert judge(end, Outcome(0, "ready\n", "Traceback (most recent call last):\n", {})) == [
        "a traceback that is not the program's own"
    ]
