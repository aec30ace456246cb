"""The files the corpus stumbles over, and the two ways it runs: statements in a session, words on the
command line.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import shlex
import sqlite3
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.repl.cli import main

_QUIET = {"NO_COLOR": "1", "PENSTOCK_CONFIG": "/nonexistent", "PENSTOCK_HISTORY": "/nonexistent/history"}
_MOVING = (
    (re.compile(r"-[0-9a-f]{11}-[0-9a-f]+-\d+"), "-#"),
    (re.compile(r"@\d+-\d+"), "@#"),
    (re.compile(r"\d+\.\d s\b"), "#.# s"),
    (re.compile(r"\([^()]* rows/s[^()]*\)"), "(# rows/s)"),
    # a job that has not ended after a while is reported, which a slow machine sees and a quick one does not
    (re.compile(r"^job \S+: running\b.*\n", re.MULTILINE), ""),
    # the first test that needs kernels compiles them
    (re.compile(r"^compil(ed|ing) .*kernels.*\n", re.MULTILINE), ""),
)


def make_files(here: Path) -> None:
    """Lay out the sample files in a directory."""
    texts = {
        "good.csv": "id,price,name\n1,2.5,a\n2,3.5,b\n",
        "numbers.csv": "a,b,big,d,s,ts\n1,2147483647,9223372036854775807,123.45,2024-02-30,2024-01-01 00:00:00\n3,1,1,1.0,abc,2024-01-01 00:00:00\n",
        "ragged.csv": "id,price,name\n1,2.5,a\n2,3.5\n3,1.0,b,c\n",
        "text.csv": "id,price,name\n1,2.5,a\nx,1,b\n3,oops,c\n",
        "quote.csv": 'id,price,name\n1,2.5,a\n2,3.5,"b\n',
        "semicolon.csv": "id;price;name\n1;2.5;a\n",
        "header.csv": "ident,price,name\n1,2.5,a\n",
        "headless.csv": "1,2.5,a\n2,3.5,b\n",
        "dates.csv": "id,day\n1,2024-02-28\n2,2024-02-30\n",
        "zones.csv": "id,t\n1,2024-02-28 10:00:00+01:00\n",
        "bad.json": '{"id": 1, "price": 2.5}\n{"id": "x"}\nnope\n[1]\nnull\n{"id": 3}{"id": 4}\n',
        "nope.sql": "SELECT 1 AS a;\n\nSELECT\n  nope\nFROM (VALUES (1)) AS t (a);\n",
        "syntax.sql": "SELECT 1 AS a;\nSELEC 2;\nSELECT 3 3;\n",
        "value.sql": "SELECT 1 AS a;\nCREATE TEMPORARY TABLE n (a INT) WITH ('connector' = 'filesystem', 'path' = 'numbers.csv');\n"
        "SELECT\n  10 DIV (a - 3) AS x\nFROM n;\n",
        "job.sql": "CREATE TEMPORARY TABLE n (a INT) WITH ('connector' = 'filesystem', 'path' = 'numbers.csv', 'source.replay' = 'true');\n"
        "CREATE TEMPORARY TABLE bh (a BIGINT) WITH ('connector' = 'blackhole');\nINSERT INTO bh SELECT 10 DIV (a - 3) FROM n;\n",
        "fine.sql": "CREATE TEMPORARY TABLE n (a INT) WITH ('connector' = 'filesystem', 'path' = 'numbers.csv', 'source.replay' = 'true');\n"
        "CREATE TEMPORARY TABLE bh (a INT) WITH ('connector' = 'blackhole');\nINSERT INTO bh SELECT a FROM n;\n",
        "other.sql": "CREATE TEMPORARY TABLE n (a INT) WITH ('connector' = 'filesystem', 'path' = 'numbers.csv', 'source.replay' = 'true');\n"
        "CREATE TEMPORARY TABLE bh (a BIGINT) WITH ('connector' = 'blackhole');\nINSERT INTO bh SELECT COUNT(*) FROM n;\n",
        "variable.sql": "SELECT '${day}' AS d;\n",
        "a_file": "this is no directory\n",
    }
    for name, text in texts.items():
        (here / name).write_text(text, encoding="utf-8")
    (here / "utf8.csv").write_bytes(b"id,price,name\n1,2.5,a\n2,3.5,\xff\xfe\n")
    (here / "utf8.json").write_bytes(b'{"id": 1, "name": "\xff"}\n')
    (here / "utf8.sql").write_bytes(b"SELECT '\xff' AS a;\n")
    packed = gzip.compress(
        b"id,price,name\n" + b"".join(b"%d,%d.5,%d\n" % (i, i * 7919 % 1000, i * i) for i in range(20_000)),
        mtime=0,
    )
    (here / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    (here / "plain.csv.gz").write_bytes(b"id,price,name\n1,2.5,a\n")
    (here / "long.csv.gz").write_bytes(
        gzip.compress(b"id,price,name\n1,2.5," + b"a" * (65 << 20) + b"\n", 1, mtime=0)
    )
    (here / "text.parquet").write_bytes(b"id,price,name\n1,2.5,a\n")
    pq.write_table(pa.table({"ident": [1], "price": [2.5]}), here / "other.parquet")
    pq.write_table(pa.table({"id": ["x"], "price": [2.5], "name": ["a"]}), here / "types.parquet")
    (here / "empty").mkdir()
    (here / "mixed").mkdir()
    (here / "mixed" / "a.csv").write_text("id,price,name\n1,2.5,a\n", encoding="utf-8")
    (here / "mixed" / "b.parquet").write_bytes(b"PAR1")
    os.mkfifo(here / "pipe.csv")
    with contextlib.closing(sqlite3.connect(here / "facts.db")) as file:
        file.execute("CREATE TABLE facts (id INTEGER, price REAL, name TEXT)")
        file.execute("INSERT INTO facts VALUES (1, 2.5, 'a')")
        file.execute("CREATE TABLE limited (id INTEGER CHECK (id < 100), name TEXT)")
        file.commit()


def run_script(text: str, **settings: str) -> str:
    """Run the statements of a case in a session of its own; the answer is its error, or what the last one
    gave.
    """
    chosen = {
        "restart-strategy.type": "none",
        "bounded.backend": "duckdb",
        "table.dml-sync": "true",
        **settings,
    }
    with penstock.connect(
        settings={key.replace("__", ".").replace("_", "-"): value for key, value in chosen.items()}
    ) as connection:
        told = ""
        for statement in connection.session.parse(text):
            try:
                result = connection.session.run(statement)
                told = (
                    "\n".join(map(str, result.final_rows(300).to_pylist()))
                    if result.has_rows
                    else result.note or ""
                )
            except PenstockError as error:
                return steady(statement.locate(error).render())
        return "accepted: " + steady(told)


def run_words(text: str) -> str:
    """Run a command line in this process (what follows ``<<<`` is its input); the answer is its exit code
    and what it wrote.
    """
    command, _, stdin = text.partition(" <<< ")
    words = shlex.split(command)[1:]
    out, err, source = (
        io.TextIOWrapper(io.BytesIO(given), encoding="utf-8", write_through=True)
        for given in (b"", b"", stdin.strip().encode())
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in (("stdout", out), ("stderr", err), ("stdin", source)):
            patch.setattr(sys, name, stream)
        for name, value in _QUIET.items():
            patch.setenv(name, value)
        try:
            code = main(words)
        except SystemExit as left:
            code = left.code
    written, said = out.buffer.getvalue().decode().strip("\n"), err.buffer.getvalue().decode().strip("\n")
    return "\n".join(part for part in (f"exit {code}", written, steady(said)) if part)


def steady(text: str) -> str:
    """Return a text without what differs from run to run: the directory, job ids, times."""
    text = text.replace(str(Path.cwd()), "{here}")
    for pattern, word in _MOVING:
        text = pattern.sub(word, text)
    return text
