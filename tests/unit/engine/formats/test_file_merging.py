"""Merged files hold the rows of their sources in order, in every format and codec; damage is noticed."""

from __future__ import annotations

import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.formats.file_merging import FORMATS, MergeTask, merge_files
from penstock.engine.formats.file_task import CsvDialect
from penstock.engine.formats.file_writers import WriteTask, open_writer
from tests.harness.reading import as_rows, read, table_of
from tests.unit.engine.formats.test_formats import COLUMNS, sample

SUFFIXES = {"json": "jsonl"}


def write(kind: str, task: WriteTask, rows: pa.Table) -> Path:
    writer = open_writer(kind, task)
    for batch in rows.to_batches(max_chunksize=7):
        writer.write(batch)
    writer.finish()
    return task.path


@pytest.mark.parametrize(
    ("kind", "codec"),
    [*((kind, None) for kind in FORMATS), ("csv", "gzip"), ("json", "zstd"), ("parquet", "zstd")],
)
def test_rows_stay_in_their_order(kind: str, codec: str | None, tmp_path: Path) -> None:
    rows = sample(40)
    # the second source has no row
    cuts = [(0, 11), (11, 0), (11, 29)]
    task = WriteTask(tmp_path / "none", rows.schema, codec)
    sources = [
        write(
            kind, WriteTask(tmp_path / f"source-{start}-{size}", rows.schema, codec), rows.slice(start, size)
        )
        for start, size in cuts
    ]
    suffix = f".{SUFFIXES.get(kind, kind)}" + {"gzip": ".gz", "zstd": ".zst"}.get(codec or "", "")
    target = tmp_path / "out" / f"merged{suffix if kind != 'parquet' else '.parquet'}"
    target.parent.mkdir()
    written = merge_files(MergeTask(kind, task), sources, target)
    data = target.read_bytes()
    assert (written.length, written.crc32) == (len(data), zlib.crc32(data))
    table = table_of(COLUMNS, {"connector": "filesystem", "path": str(target.parent), "format": kind})
    assert read(table) == as_rows(rows)


def test_headers_of_several_lines(tmp_path: Path) -> None:
    schema = pa.schema([('a "b"\nc', pa.string()), ("d", pa.string())])
    rows = pa.table([["x\ny", "1"], ["2", "3"]], schema=schema)
    for header in (True, False):
        task = WriteTask(tmp_path / "none", schema, None, CsvDialect(header=header))
        sources = [
            write(
                "csv", WriteTask(tmp_path / f"{i}", schema, None, CsvDialect(header=header)), rows.slice(i, 1)
            )
            for i in range(2)
        ]
        whole = write("csv", WriteTask(tmp_path / "whole", schema, None, CsvDialect(header=header)), rows)
        merge_files(MergeTask("csv", task), sources, tmp_path / "merged")
        assert (tmp_path / "merged").read_bytes() == whole.read_bytes()


def test_a_damaged_source_is_noticed_and_nothing_is_left(tmp_path: Path) -> None:
    schema = pa.schema([("s", pa.string())])
    task = WriteTask(tmp_path / "none", schema, None)
    rows = pa.table([["x" * 100] * 50], schema=schema)
    source = write("parquet", WriteTask(tmp_path / "a", schema, None), rows)
    data = bytearray(source.read_bytes())
    data[60] ^= 1
    source.write_bytes(bytes(data))
    with pytest.raises((PenstockError, OSError)):
        merge_files(MergeTask("parquet", task), [source, source], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
    with pytest.raises(PenstockError, match="DAT-4609"):
        (tmp_path / "b").write_bytes(b"no parquet at all")
        merge_files(MergeTask("parquet", task), [tmp_path / "b"], tmp_path / "merged")
    with pytest.raises(FileNotFoundError):
        merge_files(MergeTask("csv", task), [tmp_path / "gone"], tmp_path / "merged")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
