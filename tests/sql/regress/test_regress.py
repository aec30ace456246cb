"""Queries that once went wrong, as small as they could be made: ours, ``===``, and DuckDB's words where
they differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.generated.queries.generated.pieces import Piece
from tests.generated.queries.generated.trial import CUTS, Arena, Manner, check
from tests.harness.case_files import case_files

CASES = case_files(Path(__file__).parent, "*.sql")
MANNERS = (Manner(), Manner(2, 3, CUTS), Manner(1, 9, CUTS, 2))


@pytest.fixture(scope="module")
def arenas() -> Iterator[list[Arena]]:
    arenas = [Arena.of(variant) for variant in range(2)]
    yield arenas
    for arena in arenas:
        arena.close()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
@pytest.mark.parametrize("manner", MANNERS, ids=str)
def test_right_now(arenas: list[Arena], path: Path, manner: Manner) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if not line.startswith("--")]
    ours, _, theirs = "\n".join(lines).partition("\n===\n")
    query = Piece("query", (ours.strip(),), (theirs.strip() or ours.strip(),))
    for arena in arenas:
        assert check(arena, query, manner)
