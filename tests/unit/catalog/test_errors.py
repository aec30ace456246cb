"""Errors as text: nothing of what they say is left out without a word."""

from __future__ import annotations

import pytest

from penstock.catalog.errors import DETAILS_MOST, Kind, PenstockError, out_of_memory


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


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ("Unable to allocate 6.71 GiB for an array with shape (9,) and data type int64", ": 6.71 GiB were"),
        ("malloc of size 1125899906842624 failed", ": 1,125,899,906,842,624 bytes were"),
        ("realloc of size 100 failed", ": 100 bytes were"),
        ("failed to allocate data of size 8.0 MiB (8.0 MiB/9.5 MiB used)", ": 8.0 MiB were"),
        ("", ""),
    ],
)
def test_memory_that_is_short_has_a_sentence_of_its_own(said: str, size: str) -> None:
    error = out_of_memory(MemoryError(said), "hold its rows", "aggregate")
    assert (error.code, error.kind, error.retriable) == ("RUN-2024", Kind.EXTERNAL, False)
    asked = f"{size} asked for at once" if size else ""
    assert error.message == f"aggregate: there is not enough memory to hold its rows{asked}"
    assert "state.memory.budget-per-slot" in str(error.hint) and error.operator == "aggregate"
