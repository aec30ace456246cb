"""Statements with words left out, doubled, swapped or replaced: whatever comes, either a plan or an error
with a code and a place.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from tests.harness.case_files import case_files
from tests.harness.golden import read_cases
from tests.unit.planner.frontend import run_statements, sample_catalog

SCRIPTS = case_files(Path(__file__).parent / "scripts", "*.sql")
PIECE = re.compile(r"\w+|'[^']*'|\s+|[^\w\s]")
ODD = [
    "1e",
    "0x1F",
    "1e999",
    "''",
    "``",
    '""',
    "\0",
    "é",
    "9" * 60,
    "?",
    "::",
    "=>",
    "1.",
    ".5",
    "$",
    "@",
    "INTERVAL '-5' DAY",
    "X'0'",
    "''''",
    "1e3-2",
]


def mutated(text: str, words: list[str], chance: random.Random) -> str:
    pieces = PIECE.findall(text)
    for _ in range(chance.choice([1, 1, 2, 3])):
        place = chance.randrange(len(pieces) or 1)
        match chance.choice(["drop", "replace", "insert", "swap", "cut"]):
            case "drop":
                del pieces[place : place + 1]
            case "replace":
                pieces[place : place + 1] = [chance.choice(words)]
            case "insert":
                pieces.insert(place, f" {chance.choice(words)} ")
            case "swap":
                pieces[place : place + 3] = pieces[place : place + 3][::-1]
            case _:
                pieces = pieces[:place] if chance.random() < 0.3 else pieces
    return "".join(pieces)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_but_plans_and_placed_errors(seed: int) -> None:
    chance = random.Random(seed)
    texts = [case.input for path in SCRIPTS for case in read_cases(path)]
    words = sorted({piece for text in texts for piece in PIECE.findall(text) if piece.strip()}) + ODD
    for _ in range(700):
        text = mutated(chance.choice(texts), words, chance)
        try:
            run_statements(text, sample_catalog())
        except PenstockError as error:
            # a word in quotes behind FROM is a path, and this catalog reads no files
            assert error.code.startswith("SQL-1") or error.code == "DAT-4121", text
            assert error.span is not None, text
            assert not re.search(r"Traceback|\bNone\b|object at 0x|<class", error.render()), text
