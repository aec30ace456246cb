"""Csv files as people have them: each is read as it is meant, by our runtime and by DuckDB alike, or refused
with what mends it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock

TEA = [(1, "tea"), (2, "mug")]
PRICED = [(1, "tea", 4.5), (3, "pot", 30.0)]
WIDE = range(200)
READ: dict[str, tuple[bytes, list[tuple[Any, ...]]]] = {
    "semicolons": (b"id;name\n1;tea\n2;mug\n", TEA),
    "tabs": (b"id\tname\n1\ttea\n2\tmug\n", TEA),
    "bars": (b"id|name\n1|tea\n2|mug\n", TEA),
    "byte order mark": (b"\xef\xbb\xbfid,name\n1,tea\n2,mug\n", TEA),
    "CRLF": (b"id,name\r\n1,tea\r\n2,mug\r\n", TEA),
    "CRLF, and LF in quotes": (b'id,name\r\n1,"tea\ngreen"\r\n2,mug\r\n', [(1, "tea\ngreen"), (2, "mug")]),
    "no line end at the end": (b"id,name\n1,tea\n2,mug", TEA),
    "CRLF, and no line end at the end": (b"id,name\r\n1,tea\r\n2,mug", TEA),
    "blank lines": (b"id,name\n\n1,tea\n\n\n2,mug\n\n", TEA),
    "gz": (gzip.compress(b"id,name\n1,tea\n2,mug\n"), TEA),
    "zst": (pa.compress(b"id,name\n1,tea\n2,mug\n", codec="zstd", asbytes=True), TEA),
    "a line end in quotes": (b'id,name\n1,"tea\ngreen"\n2,mug\n', [(1, "tea\ngreen"), (2, "mug")]),
    "single quotes": (b"id,name\n1,'tea, green'\n2,'mug'\n", [(1, "tea, green"), (2, "mug")]),
    "a quote in a value": (b'id,name\n1,5" disk\n2,mug\n', [(1, '5" disk'), (2, "mug")]),
    "no header": (b"1,tea\n2,mug\n", TEA),
    "nothing but texts": (b"item,customer\ntea,ana\nmug,ben\n", [("tea", "ana"), ("mug", "ben")]),
    "a header alone": (b"id,name,price\n", []),
    "a header without its line end": (b"id,name,price", []),
    "a delimiter at the end of all lines": (
        b"id,name,\n1,tea,\n2,mug,\n",
        [(1, "tea", None), (2, "mug", None)],
    ),
    "a column without a name": (b"id,,name\n1,2,x\n", [(1, 2, "x")]),
    "one column": (b"n\n1\n2\n", [(1,), (2,)]),
    "one column of texts with commas": (b"note\nhello, world\nbye\n", [("hello, world",), ("bye",)]),
    "200 columns": (
        f"{','.join(f'c{n}' for n in WIDE)}\n{','.join(str(n) for n in WIDE)}\n".encode(),
        [tuple(WIDE)],
    ),
    # values of several kinds, and what only a person reads: texts, none of them changed
    "mixed types": (b"id,v\n1,5\n2,x\n", [(1, "5"), (2, "x")]),
    "leading zeros": (b"zip,n\n01234,1\n", [("01234", 1)]),
    "dates of Europe": (b"id,day\n1,31.01.2026\n", [(1, "31.01.2026")]),
    "dates of two readings": (b"id,day\n1,01/02/2026\n", [(1, "01/02/2026")]),
    "thousands": (b'id,price\n1,"1,234.50"\n', [(1, "1,234.50")]),
    "decimal commas": (b"id;price\n1;4,50\n", [(1, "4,50")]),
}
REFUSED: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "DAT-4120", "declare the columns"),
    "blank lines alone": (b"\n\n", "DAT-4120", "declare the columns"),
    "latin-1": ("id,name\n1,thé\n".encode("latin-1"), "DAT-4125", "encoding => 'windows-1252'"),
    "UTF-16": ("id,name\n1,tea\n".encode("utf-16"), "DAT-4125", "encoding => 'utf-16'"),
    "compressed under another name": (gzip.compress(b"id\n1\n"), "DAT-4121", "compression => 'gzip'"),
    "JSON": (b'{"id": 1}\n{"id": 2}\n', "DAT-4121", "read_json("),
    "a web page": (b"<!DOCTYPE html>\n<html></html>\n", "DAT-4121", "download it again"),
    "binary": (b"id,name\n1,t\0a\n", "DAT-4121", "'format' = .."),
    "lines above the header": (b"# exported\nid,name\n1,tea\n2,mug\n", "DAT-4122", "tail -n +2"),
    "a line of Excel": (b"sep=;\nid;name\n1;tea\n", "DAT-4122", "tail -n +2"),
    "carriage returns alone": (b"id,name\r1,tea\r", "DAT-4122", "tr '\\r' '\\n'"),
    "line ends of both kinds": (b"id,name\r\n1,tea\n2,mug\r\n", "DAT-4122", "tr -d '\\r'"),
    "a delimiter at the end of records": (b"id,name\n1,tea,\n2,mug,\n", "DAT-4122", "sed 's/,$//'"),
    "a backslash before a quote": (b'id,name\n1,"say \\"hi\\""\n2,mug\n', "DAT-4122", "sed "),
    "a column twice": (b"id,id\n1,2\n", "DAT-4208", "rename"),
    "a record that is short": (
        b"id,name,price\n1,tea,4.5\n2,mug\n3,pot,30\n",
        "DAT-4201",
        "ignore_errors => TRUE",
    ),
    "a record that is long": (
        b"id,name,price\n1,tea,4.5\n2,mug,1,x\n3,pot,30\n",
        "DAT-4201",
        "ignore_errors => TRUE",
    ),
    "a quote that does not end": (b'id,name\n1,"tea\n2,mug\n', "DAT-4201", "ignore_errors => TRUE"),
}
READERS = ["", " /*+ OPTIONS('source.replay' = 'true') */"]


@pytest.fixture(scope="module")
def connection() -> Iterator[penstock.Connection]:
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as connection:
        yield connection


def path_of(directory: Path, about: str, data: bytes) -> Path:
    ends = {"gz": ".csv.gz", "zst": ".csv.zst"}
    path = directory / f"odd{ends.get(about, '.csv')}"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("reader", READERS, ids=["bounded", "stream"])
@pytest.mark.parametrize("about", READ)
def test_it_is_read_as_it_is_meant(
    connection: penstock.Connection, tmp_path: Path, about: str, reader: str
) -> None:
    data, rows = READ[about]
    path = path_of(tmp_path, about, data)
    assert connection.execute(f"SELECT * FROM '{path}'{reader}").fetchall() == rows


@pytest.mark.parametrize("reader", READERS, ids=["bounded", "stream"])
@pytest.mark.parametrize("about", REFUSED)
def test_it_is_refused_with_what_mends_it(
    connection: penstock.Connection, tmp_path: Path, about: str, reader: str
) -> None:
    data, code, hint = REFUSED[about]
    path = path_of(tmp_path, about, data)
    with pytest.raises(penstock.Error) as caught:
        connection.execute(f"SELECT * FROM '{path}'{reader}").fetchall()
    assert (caught.value.code, hint in str(caught.value.hint)) == (code, True), caught.value.hint
    # a temporary file of ours is nobody's
    assert "penstock-sample" not in str(caught.value)


@pytest.mark.parametrize("reader", READERS, ids=["bounded", "stream"])
def test_records_of_a_wrong_width_are_left_out_where_the_query_says_so(
    connection: penstock.Connection, tmp_path: Path, reader: str
) -> None:
    for about in ("a record that is short", "a record that is long"):
        path = path_of(tmp_path, about, REFUSED[about][0])
        replay = ", replay => true" if reader else ""
        query = f"SELECT * FROM read_csv('{path}', ignore_errors => true{replay})"
        assert connection.execute(query).fetchall() == PRICED


def test_carriage_returns_alone_are_refused_in_a_stream_with_declared_columns(
    connection: penstock.Connection, tmp_path: Path
) -> None:
    path = path_of(tmp_path, "", REFUSED["carriage returns alone"][0])
    with pytest.raises(penstock.Error, match="carriage return alone") as caught:
        connection.execute(
            f"SELECT * FROM read_csv('{path}', columns => 'id INT, name STRING', replay => true)"
        ).fetchall()
    assert caught.value.code == "DAT-4202"


@pytest.mark.parametrize(
    ("value", "kind", "hint"),
    [
        ("1,234.50", "DOUBLE", "REPLACE(x, ',', '')"),
        ("4,50", "DECIMAL(10, 2)", "REPLACE(x, ',', '.')"),
        ("1.234,50", "DOUBLE", "REPLACE(REPLACE(x, '.', ''), ',', '.')"),
        ("31.01.2026", "DATE", "TO_DATE(x, 'dd.MM.yyyy')"),
        ("1/31/2026 10:00", "TIMESTAMP", "TO_TIMESTAMP(x, "),
        ("n/a", "DOUBLE", "nullstr => 'n/a' of read_csv"),
        ("about 3", "DOUBLE", "TRY_CAST"),
    ],
)
def test_a_cast_that_fails_says_how_such_a_text_is_read(
    connection: penstock.Connection, value: str, kind: str, hint: str
) -> None:
    with pytest.raises(penstock.Error) as caught:
        connection.execute(f"SELECT CAST(x AS {kind}) FROM (VALUES ('{value}')) AS v (x)").fetchall()
    assert (caught.value.code, hint in str(caught.value.hint)) == ("RUN-2003", True), caught.value.hint


def test_the_hint_of_a_missing_value_leads_to_the_answer(
    connection: penstock.Connection, tmp_path: Path
) -> None:
    path = tmp_path / "delays.csv"
    path.write_text("delay\n3\nNA\n5\n")
    with pytest.raises(penstock.Error) as caught:
        connection.execute(f"SELECT AVG(delay) FROM '{path}'").fetchall()
    assert "nullstr => 'NA'" in str(caught.value.hint)
    assert connection.execute(f"SELECT AVG(delay) FROM read_csv('{path}', nullstr => 'NA')").fetchall() == [
        (4.0,)
    ]


def test_a_file_that_is_there_with_a_further_suffix_is_proposed(
    connection: penstock.Connection, tmp_path: Path
) -> None:
    (tmp_path / "delays.csv.gz").write_bytes(gzip.compress(b"delay\n3\n"))
    with pytest.raises(penstock.Error) as caught:
        connection.execute(f"SELECT * FROM '{tmp_path}/delays.csv'")
    assert caught.value.hint == 'did you mean "delays.csv.gz"?'
