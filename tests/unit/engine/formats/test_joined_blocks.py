"""Blocks of narrow rows are joined into one piece: the same rows, ordinals, bad records and errors as block by
block, wherever reading begins again.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.formats.csv import CsvReader
from penstock.engine.formats.decoded_batch import Decoded
from penstock.engine.formats.file_task import CsvDialect, FileTask

ID, TEXT = Field("id", BIGINT), Field("text", STRING)
# about 200 bytes a record, so 10,000 of them a block of 2 MB
LINES = 60_000


def file_of(path: Path, bad: int | None = None) -> Path:
    text = "x" * 193
    path.write_text("".join(f"{'bad' if n == bad else n},{text}\n" for n in range(LINES)), encoding="ascii")
    return path


def task_of(path: Path, wanted: tuple[Field, ...], compression: str | None = None) -> FileTask:
    dialect = CsvDialect(header=False)
    return FileTask(pafs.LocalFileSystem(), str(path), wanted, (ID, TEXT), compression, dialect)


def pieces_of(reader: CsvReader) -> list[Decoded]:
    pieces = []
    while (piece := reader.next()) is not None:
        pieces.append(piece)
    reader.close()
    return pieces


def ids(pieces: list[Decoded]) -> list[int]:
    return [value for piece in pieces for value in piece.rows.column(0).to_pylist()]


def test_narrow_blocks_are_joined_and_each_piece_is_where_reading_may_begin_again(tmp_path: Path) -> None:
    task = task_of(file_of(tmp_path / "a.csv"), (ID,))
    pieces = pieces_of(CsvReader(task, None))
    counts = [piece.records for piece in pieces]
    # one block first, two, then all that is left
    assert counts[0] < counts[1] < counts[2]
    assert len(counts) == 3
    assert ids(pieces) == list(range(LINES))
    for piece in pieces:
        again = pieces_of(CsvReader(task, piece.anchor))
        assert again[0].first == piece.first
        assert ids(again) == list(range(piece.first, LINES))


def test_rows_without_columns_are_counted(tmp_path: Path) -> None:
    pieces = pieces_of(CsvReader(task_of(file_of(tmp_path / "a.csv"), ()), None))
    assert sum(piece.rows.num_rows for piece in pieces) == LINES
    assert len(pieces) == 3


def test_wide_blocks_stay_as_they_are(tmp_path: Path) -> None:
    pieces = pieces_of(CsvReader(task_of(file_of(tmp_path / "a.csv"), (ID, TEXT)), None))
    assert max(piece.records for piece in pieces) <= 11_000
    assert ids(pieces) == list(range(LINES))


@pytest.mark.parametrize("bad", [0, 15_000, 35_000, LINES - 1])
def test_a_block_with_a_bad_record_is_a_piece_of_its_own(tmp_path: Path, bad: int) -> None:
    pieces = pieces_of(CsvReader(task_of(file_of(tmp_path / "a.csv", bad), (ID,)), None))
    assert ids(pieces) == [number for number in range(LINES) if number != bad]
    assert [record.ordinal for piece in pieces for record in piece.bad] == [bad]
    place = next(piece for piece in pieces if piece.bad)
    assert place.records <= 11_000
    # ordinals go on behind it
    assert [piece.first for piece in pieces[1:]] == [piece.first + piece.records for piece in pieces[:-1]]


def test_rows_before_an_error_are_emitted_first(tmp_path: Path) -> None:
    text = "x" * 193
    lines = "".join(f"{n},{text}{n * 7919:06}\n" for n in range(LINES)).encode()
    packed = gzip.compress(lines, 1)
    (tmp_path / "a.csv.gz").write_bytes(packed[: len(packed) * 3 // 4])
    reader = CsvReader(task_of(tmp_path / "a.csv.gz", (ID,), "gzip"), None)
    seen: list[int] = []
    with pytest.raises(PenstockError) as caught:
        while (piece := reader.next()) is not None:
            seen += piece.rows.column(0).to_pylist()
    reader.close()
    assert caught.value.code == "DAT-4106"
    # all blocks before the one that is cut: a reader block by block has emitted as many
    assert seen == list(range(len(seen)))
    assert len(seen) > LINES // 2
