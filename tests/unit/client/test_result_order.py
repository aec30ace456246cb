"""The order of results that come as a stream: that of DuckDB, also by columns that are not selected. An endless
result is sorted as far as it has come.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing

import duckdb
import pyarrow as pa
import pytest

import penstock
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT
from penstock.client.results.result import Result, Shape
from penstock.client.results.result_stream import TableStream
from penstock.client.session import Session
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.stream_elements import Batch
from penstock.planner.expressions.nodes import Column, SortKey
from tests.harness.length import of_length
from tests.harness.patience import PATIENCE_S

SEEDS = int(of_length("6", "60"))
# the columns of the list, and what they are ordered by; k alone identifies a row
LISTS = ("s", "x + 1 AS y", "s, x", "k", "s AS x")
KEYS = ("{t}x{d}, {t}k", "{t}x + {t}k{d}, {t}k", "{t}s{d} {n}, {t}x, {t}k DESC", "length({t}s){d} {n}, {t}k")
SHAPES = {
    "all": "SELECT {what} FROM t ORDER BY {by}",
    "first": "SELECT {what} FROM t ORDER BY {by} LIMIT 5",
    "middle": "SELECT {what} FROM t ORDER BY {by} LIMIT 4 OFFSET 2",
    "groups": "SELECT s FROM t GROUP BY s ORDER BY COUNT(*){d}, MAX(x) {n}, s",
    "best groups": "SELECT s, SUM(x) AS z FROM t GROUP BY s ORDER BY COUNT(*){d}, s {n} LIMIT 3",
}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with closing(Session({"execution.runtime-mode": "streaming"})) as session:
        yield session


@pytest.mark.parametrize("seed", range(SEEDS))
def test_rows_have_the_order_of_the_batch_answer(session: Session, seed: int) -> None:
    dice = random.Random(seed)
    rows = dice.choice((0, 1, 40))
    t = pa.table(
        {
            "k": pa.array(dice.sample(range(100), rows), pa.int64()),
            "x": pa.array([dice.randint(-3, 3) for _ in range(rows)], pa.int64()),
            "s": pa.array([dice.choice((None, "", "a", "bb", "é")) for _ in range(rows)], pa.string()),
        }
    )
    session.register("t", t)
    with duckdb.connect() as oracle:
        oracle.register("t", t)
        for shape in SHAPES.values():
            descending, nulls = dice.choice(("", " DESC")), dice.choice(("NULLS FIRST", "NULLS LAST"))
            by = dice.choice(KEYS).format(t="t.", d=descending, n=nulls)
            query = shape.format(what=dice.choice(LISTS), by=by, d=descending, n=nulls)
            found = session.execute(query).final_rows(PATIENCE_S)
            expected = oracle.sql(query).to_arrow_table()
            assert found.to_pydict() == expected.to_pydict(), query
    session.execute("DROP TABLE t")


def test_columns_of_the_order_are_in_no_row_and_make_no_change() -> None:
    t = pa.table({"k": ["a", "b", "a", "a", "b", "c"], "x": [5, 3, 9, 1, 7, 8]})
    with penstock.connect(settings={"execution.runtime-mode": "streaming"}) as connection:
        connection.register("t", t)
        query = "SELECT k FROM t GROUP BY k ORDER BY COUNT(*) DESC LIMIT 2"
        cursor = connection.execute(query)
        assert [column[0] for column in cursor.description] == ["k"]
        assert cursor.fetchall() == [("a",), ("b",)]
        state: list[str] = []
        for op, (k,) in connection.execute(query).changes():
            # a count that rises leaves the row as it is
            assert (op == "+I") == (k not in state), (op, k, state)
            state.append(k) if op == "+I" else state.remove(k)
        assert sorted(state) == ["a", "b"]
        assert [row for _, *row in connection.execute(f"SUBSCRIBE {query}").fetchall()] == [["a"], ["b"]]


ENDLESS = """
    CREATE TABLE e (k BIGINT, n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000',
      'fields.k.min' = '1', 'fields.k.max' = '5', 'fields.n.min' = '1', 'fields.n.max' = '1000000000')
"""


@pytest.fixture(scope="module")
def endless() -> Iterator[penstock.Connection]:
    with penstock.connect(settings={"execution.runtime-mode": "streaming"}) as connection:
        connection.execute(ENDLESS)
        yield connection


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT n FROM e ORDER BY n DESC", lambda rows: [-n for (n,) in rows]),
        ("SELECT k, n FROM e ORDER BY k, n", lambda rows: rows),
        ("SELECT n FROM e ORDER BY -n", lambda rows: [-n for (n,) in rows]),
        ("SELECT k, COUNT(*) AS c FROM e GROUP BY k ORDER BY c DESC", lambda rows: [-c for _, c in rows]),
        ("SELECT MAX(n) AS m FROM e GROUP BY k ORDER BY k DESC", None),
    ],
)
def test_an_endless_result_is_sorted_as_far_as_it_has_come(endless, query, ordered) -> None:
    with endless.execute(query) as cursor:
        # a row alone says nothing of its place
        for read in (cursor.fetchone, cursor.__next__, lambda: cursor.fetchmany(3)):
            with pytest.raises(penstock.NotSupportedError, match="CLI-6009"):
                read()
        rows: list[tuple[int, ...]] = []
        while len(rows) < 4:
            rows = cursor.fetchall(timeout=0.2)
        assert all(len(row) == query.partition(" FROM")[0].count(",") + 1 for row in rows)
        if ordered is not None:
            assert ordered(rows) == sorted(ordered(rows))
        more = cursor.fetchall(timeout=0.2)
        assert len(more) >= len(rows) and more != rows
    with endless.execute(query) as cursor:
        op, row = next(cursor.changes())
        assert op == "+I" and len(row) == len(rows[0])


def test_a_stream_that_is_quicker_than_its_reader_ends_no_call_late() -> None:
    clock = ManualClock()
    row = pa.record_batch({"n": pa.array([1], pa.int64())})

    class Unending(TableStream):
        """Has a batch at every call, each of which takes a tenth of a second to read."""

        ended = False

        def next(self, timeout_s: float | None) -> Batch:
            clock.advance(100)
            return Batch(row)

    schema = Schema((Field("n", BIGINT),))
    order = (SortKey(Column(BIGINT, True, index=0, name="n")),)
    result = Result(Shape(schema, finite=False, order=order, streamed=True), Unending(), clock=clock)
    assert result.final_rows(timeout_s=1.0).num_rows == 10


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("SELECT k FROM e ORDER BY k OFFSET 3", "last row"),
        ("SUBSCRIBE SELECT k FROM e ORDER BY n", "as they are made"),
        ("CREATE TABLE o WITH ('connector' = 'blackhole') AS SELECT k FROM e ORDER BY n", "last row"),
        ("CREATE MATERIALIZED VIEW v AS SELECT k FROM e GROUP BY k ORDER BY COUNT(*)", "has no order"),
        ("INSERT INTO hole SELECT k FROM e ORDER BY n", "last row"),
    ],
)
def test_where_nobody_sorts_an_endless_order_is_refused(endless, statement, word) -> None:
    endless.execute("CREATE TABLE IF NOT EXISTS hole (k BIGINT) WITH ('connector' = 'blackhole')")
    with pytest.raises(penstock.Error, match=word) as caught:
        endless.execute(statement)
    assert "SQL-1703" in str(caught.value) and "ORDER BY" in str(caught.value)
