"""Every format gives the same rows whatever the compression, the batch cuts and the place of a restart."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, date, datetime, time
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    Array,
    DataType,
    Decimal,
)
from penstock.engine.formats import parquet, record_blocks
from penstock.engine.formats.record_blocks import RecordBlocks
from tests.harness.reading import Taken, as_rows, drain, open_source, read, resume_everywhere, table_of

COLUMNS = {
    "id": INT,
    "n": BIGINT,
    "name": STRING,
    "x": DOUBLE,
    "f": FLOAT,
    "ok": BOOLEAN,
    "day": DATE,
    "at": TIMESTAMP,
    "instant": TIMESTAMP_LTZ,
    "clock": TIME,
    "price": Decimal(10, 2),
}


def row(i: int) -> dict[str, Any]:
    names = ["plain", 'quo"ted', "com,ma", " blank ", "ünï", "", "NA?", None]
    full = {
        "id": i,
        "n": i * 10**10,
        "name": names[i % len(names)],
        "x": i / 4,
        "f": i / 2,
        "ok": i % 2 == 0,
        "day": date(2013, 1, 1 + i % 28),
        "at": datetime(2013, 1, 1, i % 24, 30, 5, 123456),
        "instant": datetime(2013, 1, 1, i % 24, 30, tzinfo=UTC),
        "clock": time(i % 24, 1, 2, 3),
        "price": D(i) / 4,
    }
    return {key: None if i % 5 == 3 and key != "id" else value for key, value in full.items()}


def sample(count: int) -> pa.Table:
    schema = table_of(COLUMNS, {}).source_schema.to_arrow()
    return pa.Table.from_pylist([row(i) for i in range(count)], schema=schema)


def write(path: Path, kind: str, data: pa.Table, **options: str) -> dict[str, str]:
    """Write a file with the engine's own writers and return the options of a table over it."""
    from penstock.engine.formats.file_writers import WriteTask, open_writer

    writer = open_writer(kind, WriteTask(path, data.schema, options.pop("codec", None)))
    for batch in data.to_batches(max_chunksize=5):
        writer.write(batch)
    writer.finish()
    return {"connector": "filesystem", "path": str(path), "format": kind, **options}


FILES = [
    ("csv", "a.csv", None),
    ("csv", "a.csv.gz", "gzip"),
    ("csv", "a.csv.zst", "zstd"),
    ("json", "a.jsonl", None),
    ("json", "a.jsonl.gz", "gzip"),
]
FILES += [("parquet", "a.parquet", "zstd"), ("arrow", "a.arrow", None)]


@pytest.mark.parametrize(("kind", "name", "codec"), FILES)
def test_round_trip_and_batch_cuts(tmp_path: Path, kind: str, name: str, codec: str | None) -> None:
    data = sample(50)
    options = write(tmp_path / name, kind, data, **({"codec": codec} if codec else {}))
    table = table_of(COLUMNS, options)
    for batch in (1, 7, 1000, 32_768):
        assert read(table, batch=batch) == as_rows(data)
    assert read(table, columns=["price", "id"]) == as_rows(data.select(["price", "id"]))


@pytest.mark.parametrize(("kind", "name", "codec"), FILES)
@pytest.mark.parametrize("batch", [1, 3])
def test_resume_at_every_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str, codec: str | None, batch: int
) -> None:
    monkeypatch.setattr(RecordBlocks.__init__, "__defaults__", (None, None, 512))
    data = sample(23)
    options = write(tmp_path / name, kind, data, **({"codec": codec} if codec else {}))
    resume_everywhere(table_of(COLUMNS, options), as_rows(data), batch=batch)


def test_parquet_resumes_inside_and_between_row_groups(tmp_path: Path) -> None:
    data = sample(40)
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=9)
    table = table_of(COLUMNS, {"connector": "filesystem", "path": str(tmp_path / "a.parquet")})
    resume_everywhere(table, as_rows(data), batch=4)


def test_arrow_streams_are_read_too(tmp_path: Path) -> None:
    data = sample(20)
    with pa.ipc.new_stream(str(tmp_path / "a.arrow"), data.schema) as writer:
        writer.write_table(data, max_chunksize=3)
    table = table_of(COLUMNS, {"connector": "filesystem", "path": str(tmp_path / "a.arrow")})
    resume_everywhere(table, as_rows(data), batch=2)


def csv_table(path: Path, **options: str) -> Any:
    return table_of(
        {"a": INT, "b": STRING}, {"connector": "filesystem", "path": str(path), "format": "csv", **options}
    )


def test_csv_null_literal_and_quoted_values(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbfA,b\r\nNA,NA\r\n1,"NA"\r\n,""\r\n\r\n2,"x ""y"""')
    rows = read(csv_table(tmp_path / "a.csv", **{"csv.null-literal": "NA"}))
    assert rows == [{"a": None, "b": None}, {"a": 1, "b": "NA"}, {"a": None, "b": ""}, {"a": 2, "b": 'x "y"'}]


def test_csv_dialect(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1;'x;y'\n2;z\n")
    rows = read(
        csv_table(tmp_path / "a.csv", **{"csv.delimiter": ";", "csv.quote": "'", "csv.header": "false"})
    )
    assert rows == [{"a": 1, "b": "x;y"}, {"a": 2, "b": "z"}]


@pytest.mark.parametrize("block", [8, 16, 64, 4096])
def test_csv_multiline_values_do_not_depend_on_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(RecordBlocks.__init__, "__defaults__", (None, None, block))
    (tmp_path / "a.csv").write_text('a,b\n1,"x\ny"\n2,"p ""q""\n\nr"\n3,z\n')
    table = csv_table(tmp_path / "a.csv", **{"csv.multiline": "true"})
    expected = [{"a": 1, "b": "x\ny"}, {"a": 2, "b": 'p "q"\n\nr'}, {"a": 3, "b": "z"}]
    assert read(table) == expected
    resume_everywhere(table, expected, batch=1)


def test_csv_header_decides_the_order_and_may_hold_more(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,B,a\n9,hello,1\n")
    assert read(csv_table(tmp_path / "a.csv")) == [{"a": 1, "b": "hello"}]


def test_csv_missing_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("carier,b\n1,2\n")
    with pytest.raises(PenstockError, match="DAT-4203") as caught:
        read(table_of({"carrier": STRING}, {"connector": "filesystem", "path": str(tmp_path / "a.csv")}))
    assert caught.value.hint == 'did you mean "carier"?'
    (tmp_path / "c.csv").write_text("a;b\n1;2\n")
    with pytest.raises(PenstockError, match="delimiter"):
        read(csv_table(tmp_path / "c.csv"))


def test_ranges_of_bytes_give_every_record_once(tmp_path: Path) -> None:
    from penstock.engine.formats.file_task import FileTask
    from penstock.engine.formats.registry import READERS

    lines = "".join(f'{{"id": {i}, "s": "{"x" * (i % 7)}"}}\n' for i in range(60))
    (tmp_path / "a.json").write_text(lines)
    fields = table_of({"id": INT}, {}).source_schema.fields
    fs = pa.fs.LocalFileSystem()
    for step in (1, 13, 100, 5000):
        ids: list[int] = []
        for start in range(0, len(lines), step):
            reader = READERS["json"](
                FileTask(fs, str(tmp_path / "a.json"), fields, fields, start=start, end=start + step), None
            )
            while (piece := reader.next()) is not None:
                ids += piece.rows.column(0).to_pylist()
        assert ids == list(range(60)), step


def test_large_files_without_watermark_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engine.connectors.filesystem.source.RANGE_BYTES", 64)
    monkeypatch.setattr("penstock.engine.connectors.filesystem.source.RANGE_ROWS", 10)
    data = sample(40)
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=5)
    write(tmp_path / "a.csv", "csv", data)
    for name in ("a.csv", "a.parquet"):
        table = table_of(COLUMNS, {"connector": "filesystem", "path": str(tmp_path / name)})
        parts = [read(table, subtask=s, parallelism=3) for s in range(3)]
        assert all(parts)
        assert sorted((r for part in parts for r in part), key=lambda r: r["id"]) == as_rows(data)
        resume_everywhere(table, read(table), batch=2)


def test_cut_off_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(b"a,b\n" + b"1,x\n" * 10_000)
    (tmp_path / "a.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PenstockError, match="DAT-4106"):
        read(csv_table(tmp_path / "a.csv.gz"))


def test_parquet_garbage_and_other_types(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(PenstockError, match="DAT-4105"):
        read(table_of({"a": INT}, {"connector": "filesystem", "path": str(tmp_path / "a.parquet")}))
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(PenstockError, match="DAT-4205"):
        read(table_of({"a": Array(INT)}, {"connector": "filesystem", "path": str(tmp_path / "b.parquet")}))
    pq.write_table(pa.table({"A": pa.array([1, 2], pa.int64())}), tmp_path / "c.parquet")
    assert read(table_of({"a": INT}, {"connector": "filesystem", "path": str(tmp_path / "c.parquet")})) == [
        {"a": 1},
        {"a": 2},
    ]
    pq.write_table(pa.table({"a": pa.array([2**40], pa.int64())}), tmp_path / "d.parquet")
    with pytest.raises(PenstockError, match="DAT-4206"):
        read(table_of({"a": INT}, {"connector": "filesystem", "path": str(tmp_path / "d.parquet")}))


def test_nothing_but_a_count(tmp_path: Path) -> None:
    data = sample(12)
    for kind, name in (("csv", "a.csv"), ("json", "a.jsonl"), ("parquet", "a.parquet"), ("arrow", "a.arrow")):
        table = table_of(COLUMNS, write(tmp_path / name, kind, data))
        assert len(read(table, columns=[])) == 12, kind


def test_a_record_longer_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_blocks, "MAX_RECORD_BYTES", 1 << 20)
    (tmp_path / "a.csv").write_bytes(b"a,b\n1," + b"x" * (3 << 20))
    with pytest.raises(PenstockError, match="DAT-4207"):
        read(csv_table(tmp_path / "a.csv"))


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_a_file_that_is_cut_short_while_it_is_read_does_not_end_the_process(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / f"a.{kind}"
    data = pa.table({"id": pa.array(range(50_000)), "name": [f"row {i:090}" for i in range(50_000)]})
    if kind == "parquet":
        pq.write_table(data, path, row_group_size=1_000)
    elif kind == "csv":
        pyarrow.csv.write_csv(data, path)
    else:
        with pa.ipc.new_file(path, data.schema) as writer:
            writer.write_table(data, max_chunksize=1_000)
    options = {"connector": "filesystem", "path": str(path), "format": kind, "csv.header": "true"}
    source, out = open_source(table_of({"id": BIGINT, "name": STRING}, options), batch=100), Taken()
    source.poll(out)
    os.truncate(path, path.stat().st_size // 2)
    # a page of a mapped file would be gone now: SIGBUS
    with pytest.raises(PenstockError, match="DAT-4201" if kind == "csv" else "DAT-4105"):
        while not source.poll(out).ended:
            pass
    source.close()


@pytest.mark.parametrize("kind", [INT, DOUBLE, Decimal(10, 2), BOOLEAN, DATE])
@pytest.mark.parametrize("character", ["\0", "\x01", "\x1c", "\x7f"])
def test_a_control_character_is_no_part_of_a_value(tmp_path: Path, kind: DataType, character: str) -> None:
    text = {"BOOLEAN": "true", "DATE": "2020-01-02"}.get(str(kind), "2")
    (tmp_path / "a.csv").write_text(f"{text},x\n{text}{character},y\n")
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "csv", "csv.header": "false"}
    with pytest.raises(PenstockError, match="DAT-4201"):
        read(table_of({"a": kind, "b": STRING}, options))
    options["on-error"] = "skip"
    assert len(read(table_of({"a": kind, "b": STRING}, options))) == 1


@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_file_without_a_byte_is_damaged_where_files_have_a_footer(
    tmp_path: Path, kind: str, mode: str
) -> None:
    (tmp_path / f"a.{kind}").touch()
    with penstock.connect(settings={"execution.runtime-mode": mode}) as db:
        db.execute(
            f"CREATE TABLE t (a INT) WITH ('connector'='filesystem','path'='{tmp_path}','format'='{kind}')"
        )
        with pytest.raises(PenstockError, match="DAT-4105"):
            db.execute("SELECT * FROM t").fetchall()


def test_parquet_decodes_more_rows_at_once_where_they_are_narrow(tmp_path: Path) -> None:
    def sizes(columns: list[str]) -> list[int]:
        source = open_source(table, columns=columns, batch=65_536)
        taken = drain(source)
        return [batch.num_rows for batch in taken.batches]

    rows = pa.table({"id": list(range(100_000)), "name": ["x" * 1000] * 100_000})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=50_000)
    table = table_of(
        {"id": BIGINT, "name": STRING}, {"connector": "filesystem", "path": str(tmp_path / "a.parquet")}
    )
    assert sizes(["id"]) == [50_000, 50_000]
    # the width of texts is not known at first; and of wide rows no more are decoded than before
    assert max(sizes(["id", "name"])) == 32_768


@pytest.mark.parametrize("at_once", [1 << 31, 200])
def test_parquet_texts_stored_as_dictionaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    # a small bound cuts a batch in pieces, as texts of gigabytes would be
    monkeypatch.setattr(parquet, "_TEXT_BYTES", at_once)
    values = ["", "ünï", None, "x" * 90, "d"]
    rows = pa.table(
        {
            "few": pa.array([values[i % 5] for i in range(9_000)], pa.string()),
            "nothing": pa.array([None] * 9_000, pa.string()),
            # the writer gives the dictionary up in the middle
            "mixed": pa.array([f"{i:030}" if i > 4_000 else "few" for i in range(9_000)], pa.string()),
            "id": pa.array(range(9_000), pa.int64()),
        }
    )
    path = tmp_path / "a.parquet"
    pq.write_table(rows, path, row_group_size=5_000, dictionary_pagesize_limit=1 << 12)
    table = table_of(
        {"few": STRING, "nothing": STRING, "mixed": STRING, "id": BIGINT},
        {"connector": "filesystem", "path": str(path)},
    )
    assert read(table) == rows.to_pylist()


def test_parquet_dictionary_with_an_invalid_text(tmp_path: Path) -> None:
    values = pa.array([b"ok", b"\xff\xfe"] * 50, pa.binary()).view(pa.string())
    pq.write_table(pa.table({"a": values}), tmp_path / "a.parquet")
    with pytest.raises(PenstockError, match=r"DAT-4206.*column a"):
        read(table_of({"a": STRING}, {"connector": "filesystem", "path": str(tmp_path / "a.parquet")}))


@pytest.mark.parametrize(
    ("values", "ascii"), [(["a", None, "", "bc"], True), (["a", "ü"], False), ([None], True), ([], False)]
)
def test_texts_of_ascii_are_known_to_be_valid(values: list[str | None], ascii: bool) -> None:
    column = pa.array(["ö", *values], pa.string())
    assert parquet.is_ascii(column.slice(1)) == ascii
    assert not parquet.is_ascii(pa.array([1]))


def test_texts_that_do_not_follow_each_other_are_not_ascii() -> None:
    ends = pa.py_buffer(np.array([0, 3, 1, 3], np.int32))
    assert not parquet.is_ascii(pa.StringArray.from_buffers(3, ends, pa.py_buffer(b"abc")))


def test_parquet_texts_with_an_invalid_one(tmp_path: Path) -> None:
    values = pa.array([b"ok", b"\xff\xfe"] * 50, pa.binary()).view(pa.string())
    pq.write_table(pa.table({"a": values}), tmp_path / "a.parquet", use_dictionary=False)
    with pytest.raises(PenstockError, match=r"DAT-4206.*column a"):
        read(table_of({"a": STRING}, {"connector": "filesystem", "path": str(tmp_path / "a.parquet")}))


def test_a_parquet_file_with_any_byte_changed_is_read_or_refused(tmp_path: Path) -> None:
    """Among them is an index beyond its dictionary, which the library decodes."""
    path = tmp_path / "a.parquet"
    values = [f"value{i * 7 % 5}" for i in range(300)]
    pq.write_table(pa.table({"a": values}), path, compression="none", write_statistics=False)
    whole, refused = path.read_bytes(), []
    table = table_of({"a": STRING}, {"connector": "filesystem", "path": str(path)})
    # the pages, without the footer
    for at in range(4, whole.index(b"schema")):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            read(table)
        except PenstockError as error:
            refused.append(error.message + str(error.detail))
    assert any("out of bounds" in text for text in refused) and len(refused) > 20
