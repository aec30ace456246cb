"""Errors as text: nothing of what they say is left out without a word."""

from __future__ import annotations

import pytest

from penstock.catalog.errors import DETAILS_MOST, PenstockError


@pytest.mark.parametrize("facts", [0, 1, 20, DETAILS_MOST, DETAILS_MOST + 1, 1_000])
def test_facts_are_shown_or_counted(facts: int) -> None:
    error = PenstockError(
        "VER-7002", "they differ", detail="\n".join(f"row {i}" for i in range(facts)) or None
    )
    lines = [line for line in error.render().splitlines() if line.startswith("detail: ")]
    assert lines[: min(facts, DETAILS_MOST)] == [f"detail: row {i}" for i in range(min(facts, DETAILS_MOST))]
    assert lines[DETAILS_MOST:] == (
        [f"detail: and {facts - DETAILS_MOST:,} more"] if facts > DETAILS_MOST else []
    )
