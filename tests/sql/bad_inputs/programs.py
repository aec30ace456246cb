"""The client used wrongly, a case each: what it says, and as which exception of PEP 249."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import penstock
from penstock import col, lit

CLICKS = pa.table(
    {"user": ["a", "b"], "n": [1, 2], "at": [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2)]}
)
ENDLESS = "CREATE TEMPORARY TABLE e (a INT) WITH ('connector' = 'datagen')"


def _closed(connection: Any) -> Any:
    cursor = connection.cursor()
    cursor.close()
    return cursor


def _endless(connection: Any) -> Any:
    connection.execute(ENDLESS)
    return connection.execute("SELECT a FROM e")


def _breaking() -> Iterator[dict[str, int]]:
    yield {"k": 1}
    raise KeyError("k")


def _uneven() -> Iterator[tuple[int, ...]]:
    yield (1, 2)
    yield (1,)


def _reread(connection: Any) -> None:
    connection.register("once", iter([{"k": 1}]))
    connection.execute("SELECT * FROM once").fetchall()
    connection.execute("SELECT * FROM once").fetchall()


def _after(connection: Any, register: Callable[[], Any], sql: str) -> None:
    connection.register("late", register)
    connection.execute(sql).fetchall()


def _over_view(connection: Any) -> None:
    connection.execute("CREATE VIEW v AS SELECT 1 AS x")
    connection.execute("DROP TABLE v")


CASES: dict[str, Callable[[Any], Any]] = {
    "connect to a server": lambda c: penstock.connect("penstock://host:1"),
    "connect with an unknown setting": lambda c: penstock.connect(settings={"paralelism.default": "2"}),
    "fetch before execute": lambda c: c.cursor().fetchone(),
    "fetch from a statement without rows": lambda c: c.execute("SET 'parallelism.default' = '1'").fetchall(),
    "execute on a closed cursor": lambda c: _closed(c).execute("SELECT 1 AS x"),
    "fetch from a closed cursor": lambda c: _closed(c).fetchall(),
    "cursor of a closed connection": lambda c: (c.close(), c.cursor()),
    "register on a closed connection": lambda c: (c.close(), c.register("t", CLICKS)),
    "nothing to execute": lambda c: c.execute("  -- nothing"),
    "two statements in one execute": lambda c: c.execute("SELECT 1 AS x; SELECT 2 AS x"),
    "too few parameters": lambda c: c.execute("SELECT ? + ? AS x", (1,)),
    "too many parameters": lambda c: c.execute("SELECT ? AS x", (1, 2)),
    "parameters for a statement that takes none": lambda c: c.execute("SHOW TABLES", (1,)),
    "a parameter of a strange type": lambda c: c.execute("SELECT ? AS x", (object,)),
    "a text for the parameters": lambda c: c.execute("SELECT ? AS x", "a"),
    "a mapping for the parameters": lambda c: c.execute("SELECT ? AS x", {"a": 1}),
    "executemany of a query": lambda c: c.cursor().executemany("SELECT ? AS x", [(1,), (2,)]),
    "fetchall of an endless result": lambda c: _endless(c).fetchall(),
    "fetch_arrow_table of an endless result": lambda c: _endless(c).fetch_arrow_table(),
    "rollback": lambda c: c.rollback(),
    "a date Python has no object for": lambda c: c.execute(
        "SELECT DATE '9999-12-31' + INTERVAL '1' DAY AS d"
    ).fetchall(),
    "register a number": lambda c: c.register("t", 5),
    "register nothing": lambda c: c.register("t", []),
    "register under no name": lambda c: c.register("", CLICKS),
    "register over a table": lambda c: (c.execute(ENDLESS), c.register("e", CLICKS)),
    "register rows of many shapes": lambda c: c.register("t", [(1, 2), (1,)]),
    "register rows of mixed types": lambda c: c.register("t", [{"a": 1}, {"a": "x"}]),
    "an unknown time column": lambda c: c.register("t", CLICKS, time_column="att"),
    "a time column that is no time": lambda c: c.register("t", CLICKS, time_column="n"),
    "a delay without a time column": lambda c: c.register("t", CLICKS, delay="5 s"),
    "a delay that is none": lambda c: c.register("t", CLICKS, time_column="at", delay="soon"),
    "an iterable read twice": _reread,
    "an iterable that raises": lambda c: _after(c, _breaking, "SELECT k FROM late"),
    "an iterable that raises under an aggregate": lambda c: _after(
        c, _breaking, "SELECT k, COUNT(*) AS n FROM late GROUP BY k"
    ),
    "an iterable whose rows change shape": lambda c: _after(c, _uneven, "SELECT * FROM late"),
    "a division by zero while fetching": lambda c: (
        c.register("t", CLICKS, stream=True),
        c.execute("SELECT 1 DIV (n - 2) AS x FROM t").fetchall(),
    ),
    "open an unknown table": lambda c: (c.register("clicks", CLICKS), c.table("click")),
    "filter by an unknown column": lambda c: (
        c.register("clicks", CLICKS),
        c.table("clicks").filter(col("users") == 1),
    ),
    "filter by what is no condition": lambda c: (
        c.register("clicks", CLICKS),
        c.table("clicks").filter(col("n") + 1),
    ),
    "compare unlike types": lambda c: (
        c.register("clicks", CLICKS),
        c.table("clicks").filter(col("n") == lit(datetime.date(2024, 1, 1))),
    ),
    "select nothing": lambda c: (c.register("clicks", CLICKS), c.table("clicks").select()),
    "an aggregate of an ungrouped column": lambda c: (
        c.register("clicks", CLICKS),
        c.table("clicks").group_by("user").select(col("n")),
    ),
    "insert into an unknown table": lambda c: (
        c.register("clicks", CLICKS),
        c.table("clicks").insert_into("nowhere"),
    ),
    "insert the wrong columns": lambda c: (
        c.register("clicks", CLICKS),
        c.execute("CREATE TEMPORARY TABLE bh (user STRING) WITH ('connector' = 'blackhole')"),
        c.table("clicks").insert_into("bh"),
    ),
    "drop a view as a table": _over_view,
    "a catalog that is a file": lambda c: penstock.connect(catalog=Path("a_file")),
}


def run_program(name: str) -> str:
    """Run one case; the answer is the exception's class and text."""
    with penstock.connect(
        settings={"restart-strategy.type": "none", "bounded.backend": "duckdb"}
    ) as connection:
        try:
            outcome = CASES[name](connection)
        except penstock.Error as error:
            return f"{type(error).__name__} {error.sqlstate}\n{error}"
    return f"accepted: {type(outcome).__name__}"
