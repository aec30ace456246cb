"""SPLIT_INDEX, SPLIT_PART and SUBSTRING_INDEX against Python's split."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

import penstock
from penstock.engine.expressions.text.text_pieces import first_pieces, nth_pieces


def piece(text: str | None, delimiter: str, index: int | None) -> str | None:
    """SPLIT_INDEX as Flink describes it."""
    if not text or index is None:
        return None
    pieces = text.split(delimiter) if delimiter else [text]
    return pieces[index] if 0 <= index < len(pieces) else None


@pytest.fixture(scope="module")
def connection() -> Iterator[penstock.Connection]:
    settings = {"bounded.backend": "duckdb", "execution.runtime-mode": "streaming"}
    with penstock.connect(settings=settings) as connection:
        yield connection


@pytest.mark.parametrize("delimiter", ["/", "//", "é", "☃a", ""])
def test_split_index_is_a_piece_of_pythons_split(connection: penstock.Connection, delimiter: str) -> None:
    draw = random.Random(7)
    texts = [None if n % 7 == 3 else "".join(draw.choices("ab/é☃", k=n % 9)) for n in range(500)]
    numbers = [None if n % 5 == 4 else draw.randrange(-1, 5) for n in range(500)]
    rows = {
        "t": pa.array(texts, pa.string()),
        "n": pa.array(numbers, pa.int32()),
        "d": pa.repeat(delimiter, 500),
    }
    connection.register("texts", pa.table(rows))
    for index in (-1, 0, 2):
        found = connection.execute(
            f"SELECT t, n, split_index(t, '{delimiter}', {index}), split_index(t, '{delimiter}', n), split_index(t, d, n) FROM texts"
        ).fetchall()
        assert len(found) == 500
        for text, n, constant, by_row, both_by_row in found:
            assert constant == piece(text, delimiter, index)
            assert by_row == both_by_row == piece(text, delimiter, n)


@pytest.mark.parametrize("delimiter", ["/", "//", "é", "aab"])
def test_pieces_of_a_slice_are_pythons_split(delimiter: str) -> None:
    draw = random.Random(8)
    texts = [None if n % 7 == 3 else "".join(draw.choices("aab/é", k=n % 12)) for n in range(500)]
    column = pa.array(["b//"] * 3 + texts + ["/"]).slice(3, len(texts))
    for number in range(3):
        pieces, absent = nth_pieces(column, delimiter, number)
        found = [None if text is None else (text.split(delimiter)[number:] or [""])[0] for text in texts]
        assert pieces.to_pylist() == found
        known = [i for i, text in enumerate(texts) if text is not None]
        assert [bool(absent[i]) for i in known] == [
            len((texts[i] or "").split(delimiter)) <= number for i in known
        ]
        first = first_pieces(column, delimiter, number + 1).to_pylist()
        assert first == [
            None if text is None else delimiter.join(text.split(delimiter)[: number + 1]) for text in texts
        ]
