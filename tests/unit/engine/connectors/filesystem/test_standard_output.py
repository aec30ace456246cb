"""Stdout as a table: every format, changes with their op, and what a pipe cannot have. Stdin as a table of a
command: rows come out while the sender still sends.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.catalog.errors import PenstockError

ROWS = "INSERT INTO o SELECT id, n FROM s"


@pytest.fixture
def connection() -> Iterator[penstock.Connection]:
    with penstock.connect(settings={"bounded.backend": "duckdb", "parallelism.default": "2"}) as opened:
        rows = {"id": [1, 2], "n": ["a,b", None]}
        opened.register("s", pa.table(rows))
        yield opened


def written(connection: penstock.Connection, options: str, query: str = ROWS, key: str = "") -> str:
    texts: list[str] = []
    connection.session.state.print_stream.write = texts.append
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE o (id BIGINT, n STRING{key}) WITH ('connector' = 'filesystem', {options})"
        )
        cursor.execute(query)
    return "".join(texts)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("'path' = '-', 'format' = 'csv'", 'id,n\n1,"a,b"\n2,\n'),
        (
            "'path' = '/dev/stdout', 'format' = 'csv', 'csv.header' = 'false', 'csv.delimiter' = ';'",
            "1;a,b\n2;\n",
        ),
        ("'path' = '-', 'format' = 'json'", '{"id":1,"n":"a,b"}\n{"id":2,"n":null}\n'),
    ],
)
def test_rows_are_lines_of_text(connection: penstock.Connection, options: str, text: str) -> None:
    assert written(connection, options) == text


def test_changes_have_their_op(connection: penstock.Connection) -> None:
    options = "'path' = '-', 'format' = 'csv', 'changelog.mode' = 'retract'"
    grouped = "INSERT INTO o SELECT COUNT(*), n FROM s GROUP BY n"
    lines = written(connection, options, grouped).splitlines()
    assert lines[0] == "op,id,n"
    assert sorted(lines[1:]) == ["+I,1,", '+I,1,"a,b"']


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_binary_formats_go_to_the_bytes_of_stdout(
    connection: penstock.Connection, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw))
    assert written(connection, f"'path' = '-', 'format' = '{kind}'") == ""
    data = pa.py_buffer(raw.getvalue())
    table = pq.read_table(pa.BufferReader(data)) if kind == "parquet" else pa.ipc.open_stream(data).read_all()
    assert table.to_pydict() == {"id": [1, 2], "n": ["a,b", None]}


@pytest.mark.parametrize(
    ("options", "query", "code", "hint"),
    [
        ("'path' = '-', 'format' = 'csv', 'compression' = 'gzip'", ROWS, "SQL-1094", "penstock .. | gzip"),
        ("'path' = '-', 'format' = 'csv', 'csv.encoding' = 'latin-1'", ROWS, "SQL-1094", "iconv"),
        ("'path' = '-', 'format' = 'parquet'", "SELECT * FROM o", "SQL-1047", "path of the file"),
        ("'path' = '-', 'format' = 'csv', 'compression' = 'zstd'", "SELECT * FROM o", "SQL-1047", "gunzip"),
        ("'path' = '-'", ROWS, "SQL-1504", "add 'format'"),
    ],
)
def test_what_a_pipe_cannot_have_is_refused(
    connection: penstock.Connection, options: str, query: str, code: str, hint: str
) -> None:
    with pytest.raises(penstock.Error) as caught:
        written(connection, options, query)
    error = caught.value
    assert isinstance(error, PenstockError)
    assert (error.code, hint in str(error.hint)) == (code, True)


def test_a_command_reads_lines_while_they_are_sent() -> None:
    query = "SELECT id + 1 AS next, what FROM read_csv('-') WHERE id > 1"
    with subprocess.Popen(
        [sys.executable, "-m", "penstock", "--csv", "-c", query],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdin is not None
        assert command.stdout is not None
        command.stdin.write("id,what\n1,tea\n2,milk\n")
        command.stdin.flush()
        assert [command.stdout.readline() for _ in range(2)] == ["next,what\n", "3,milk\n"]
        # it waits for more: the sender has not ended
        command.stdin.write("7,egg\n")
        command.stdin.flush()
        assert command.stdout.readline() == "8,egg\n"
        command.stdin.close()
        assert command.wait() == 0
