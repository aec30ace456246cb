"""Python functions in SQL: the same answer on our runtime, on DuckDB and on Spark; every mistake told in
the program's words.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.client.connection import Connection
from penstock.engine.bounded.spark.java_runtime import find_java
from tests.unit.client import program_functions as program

ROWS = pa.table({"a": [1, 2, None, 4, 5], "s": ["x", "yy", None, "zzzz", "ünï"]})
MODES = {
    "ours": {"execution.runtime-mode": "streaming", "parallelism.default": "2"},
    "duckdb": {"bounded.backend": "duckdb"},
}
QUERIES = {
    "SELECT a, weigh(a, s), tell(a) FROM t WHERE weigh(a, s) > 2": [
        (2, 4.0, "<5>"),
        (4, 8.0, "<2>"),
        (5, 8.0, "<2>"),
    ],
    "SELECT tell(a), SUM(weigh(a, 'ab')) FROM t GROUP BY tell(a)": [
        ("<10>", 3.0),
        ("<2>", 13.0),
        ("<5>", 4.0),
        (None, None),
    ],
    "SELECT DISTINCT seven() FROM t": [(7,)],
    "SELECT tell(a) FROM t WHERE a > 100": [],
    "SELECT CASE WHEN a > 3 THEN tell(a - 3) ELSE 'small' END FROM t": [
        ("<10>",),
        ("<5>",),
        ("small",),
        ("small",),
        ("small",),
    ],
}


def connection(**settings: str) -> Connection:
    made = penstock.connect(settings=settings)
    made.register("t", ROWS)
    for function in (
        program.weigh,
        program.tell,
        program.seven,
        program.shortened,
        program.worded,
        program.wavering,
    ):
        made.create_function(function)
    return made


def answer(made: Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(
        made.execute(query).fetchall(), key=lambda row: [(value is None, str(value)) for value in row]
    )


@pytest.fixture(scope="module")
def ours() -> Iterator[Connection]:
    with connection(**MODES["ours"]) as made:
        yield made


@pytest.mark.parametrize("mode", list(MODES))
def test_one_answer(mode: str) -> None:
    with connection(**MODES[mode]) as made:
        for query, expected in QUERIES.items():
            assert answer(made, query) == expected, query


@pytest.mark.spark
def test_one_answer_on_spark() -> None:
    try:
        find_java()
    except penstock.Error as error:
        pytest.skip(error.message)
    with connection() as made:
        for query, expected in QUERIES.items():
            assert answer(made, query) == expected, query
        with pytest.raises(penstock.Error) as caught:
            made.execute("SELECT tell(a - 1) FROM t").fetchall()
    assert (caught.value.code, caught.value.message) == (
        "RUN-2010",
        "Python function tell: ZeroDivisionError: integer division or modulo by zero",
    )


MISTAKES = {
    "SELECT tell(a - 1) FROM t": ("RUN-2010", "ZeroDivisionError", "in tell"),
    "SELECT shortened(a) FROM t": ("RUN-2011", "returned 1 values for", "declared to return BIGINT"),
    "SELECT worded(a) FROM t": (
        "RUN-2011",
        "returned string values that are no int64",
        "declared to return BIGINT",
    ),
    "SELECT tell(s, a) FROM t": ("SQL-1102", "tell takes 1 argument, not 2", "write tell(BIGINT)"),
    "SELECT tell(TRUE) FROM t": ("SQL-1103", "argument 1 is BOOLEAN, wanted BIGINT", "CAST(.. AS BIGINT)"),
    "SELECT tel(a) FROM t": ("SQL-1101", "there is no function tel", '"tell"'),
    "SELECT tell(DISTINCT a) FROM t": ("SQL-1105", "DISTINCT goes with aggregate functions", ""),
    "SELECT wavering(n) FROM (SELECT COUNT(*) AS n FROM t)": (
        "SQL-1315",
        "wavering may return another value",
        "deterministic",
    ),
    "SELECT SUM(wavering(n)) FROM (SELECT COUNT(*) AS n FROM t GROUP BY a)": (
        "SQL-1315",
        "wavering may return another value",
        "deterministic",
    ),
    "SELECT n FROM (SELECT COUNT(*) AS n FROM t) JOIN t AS u ON u.a < wavering(n)": (
        "SQL-1315",
        "wavering may return another value",
        "deterministic",
    ),
    "SELECT COUNT(*) FILTER (WHERE wavering(n) > 1) FROM (SELECT COUNT(*) AS n FROM t)": (
        "SQL-1315",
        "wavering may",
        "deterministic",
    ),
}


@pytest.mark.parametrize("query", list(MISTAKES))
def test_mistakes(ours: Connection, query: str) -> None:
    code, message, hint = MISTAKES[query]
    with pytest.raises(penstock.Error) as caught:
        ours.execute(query).fetchall()
    assert caught.value.code == code
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.span is not None


def test_the_row_that_did_it_is_told(ours: Connection) -> None:
    with pytest.raises(penstock.Error) as caught:
        ours.execute("SELECT tell(a - 4) FROM t").fetchall()
    assert "row: a = 4" in (caught.value.detail or "")


def test_statements(tmp_path: Path) -> None:
    with penstock.connect(settings=MODES["ours"], catalog=tmp_path) as made:
        made.register("t", ROWS)
        made.execute("CREATE FUNCTION heavy AS 'tests.unit.client.program_functions.weigh' LANGUAGE PYTHON")
        made.execute("CREATE TEMPORARY FUNCTION told AS 'tests.unit.client.program_functions.tell'")
        assert answer(made, "SELECT heavy(a, s) FROM t WHERE a = 1") == [(2.0,)]
        assert ("heavy", "python scalar") in made.execute("SHOW FUNCTIONS LIKE 'hea%'").fetchall()
        assert (
            told_in(made, "CREATE FUNCTION heavy AS 'tests.unit.client.program_functions.weigh'")
            == "SQL-1330"
        )
        made.execute("CREATE OR REPLACE FUNCTION heavy AS 'tests.unit.client.program_functions.weigh'")
        made.execute("CREATE FUNCTION IF NOT EXISTS heavy AS 'no.where'")
        made.execute("DROP FUNCTION IF EXISTS nothing")
        made.execute("DROP FUNCTION told")
        assert told_in(made, "DROP FUNCTION told") == "SQL-1331"
        assert (
            told_in(made, "CREATE FUNCTION upper AS 'tests.unit.client.program_functions.weigh'")
            == "SQL-1330"
        )
        assert told_in(made, "CREATE FUNCTION f AS 'no.such.thing'") == "SQL-1333"
        assert (
            told_in(made, "CREATE FUNCTION f AS 'tests.unit.client.program_functions.weigth'") == "SQL-1333"
        )
        assert told_in(made, "CREATE FUNCTION f AS 'tests.unit.client.program_functions.plain'") == "SQL-1334"
        assert told_in(made, "CREATE FUNCTION f AS 'os; import sys'") == "SQL-1333"
        assert told_in(made, "CREATE FUNCTION f AS 'a.b' LANGUAGE JAVA") == "SQL-1336"


def test_a_stored_catalog_imports_only_what_is_allowed(tmp_path: Path) -> None:
    with penstock.connect(catalog=tmp_path) as made:
        made.execute("CREATE FUNCTION heavy AS 'tests.unit.client.program_functions.weigh' LANGUAGE PYTHON")
    with penstock.connect(settings=MODES["ours"], catalog=tmp_path) as made:
        made.register("t", ROWS)
        assert told_in(made, "SELECT heavy(a, s) FROM t") == "SQL-1335"
        made.execute("SET 'python.modules' = 'tests.unit.client'")
        assert answer(made, "SELECT heavy(a, s) FROM t WHERE a = 1") == [(2.0,)]


def told_in(made: Connection, statement: str) -> str:
    with pytest.raises(penstock.Error) as caught:
        made.execute(statement).fetchall()
    return caught.value.code


def test_declarations_are_checked() -> None:
    for declare in (
        lambda: penstock.udf("BIGINT", "INT"),
        lambda: penstock.udf(["BIGINT"], "INT", mode="pandas"),
        lambda: penstock.udf(["BIGNIT"], "INT"),
        lambda: connection().create_function(program.plain),  # type: ignore[arg-type]
    ):
        with pytest.raises(penstock.Error):
            declare()
