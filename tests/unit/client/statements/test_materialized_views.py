"""Materialized views: whole states while their jobs run, views over views, the end of finite ones, and
going on in another process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.connectors.in_process.materialized_views import MaterializedContents
from tests.harness.length import of_length
from tests.harness.patience import PATIENCE_S, await_that
from tests.streaming.three_acts.change_files import COLUMNS, Changes, declared

ROWS = 100


def rows(session: Session, query: str) -> list[dict[str, Any]]:
    return session.execute(query).final_rows().to_pylist()


def moves(step: int) -> list[str]:
    """A hundred rows that come with the first step, and from then on move from key to key."""
    changes = Changes(step)
    made = [{"id": i, "k": "ab"[i % 2], "v": 0} for i in range(ROWS)]
    if step == 0:
        for row in made:
            changes.note("c", None, row)
        return changes.lines
    for number in range(ROWS):
        before = {**made[number], "k": _key(number, step - 1), "v": step - 1} if step > 1 else made[number]
        changes.note("u", before, {**before, "k": _key(number, step), "v": step})
    return changes.lines


def _key(number: int, step: int) -> str:
    return "abcdefg"[(number * number + step) % 7]


@pytest.mark.longer
@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_every_state_is_whole(tmp_path: Path, parallelism: str) -> None:
    (tmp_path / "t").mkdir()
    settings = {
        "execution.checkpointing.interval": "5 ms",
        "execution.batch.max-rows": "3",
        "parallelism.default": parallelism,
    }
    session = Session({"bounded.backend": "duckdb", **settings})
    try:
        options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/t', 'format' = 'debezium-json', 'source.monitor-interval' = '5 ms'"
        session.execute(
            f"CREATE TABLE t (id INT, k STRING, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({options})"
        )
        session.execute(
            "CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n, MIN(v) AS first, MAX(v) AS last FROM t GROUP BY k"
        )
        session.execute("CREATE MATERIALIZED VIEW w AS SELECT SUM(n) AS n, MIN(first) AS first FROM v")
        for step in range(of_length(2, 5)):
            (tmp_path / "t" / f".{step:03}").write_text(
                "".join(f"{line}\n" for line in moves(step)), encoding="utf-8"
            )
            (tmp_path / "t" / f".{step:03}").rename(tmp_path / "t" / f"{step:03}.json")
            await_that(lambda step=step: _whole(session, step))  # type: ignore[misc]
    finally:
        session.close()


def _whole(session: Session, step: int) -> bool:
    """Whether both views have come to a step; each state on the way there is one of whole changes, read
    once or twice in a query.
    """
    state = rows(
        session, "SELECT SUM(n) AS n, COUNT(DISTINCT k) - COUNT(*) AS twice, MIN(first) AS first FROM v"
    )[0]
    assert step == 0 or (state["n"], state["twice"]) == (ROWS, 0)
    assert rows(session, "SELECT SUM(a.n - b.n) AS zero FROM v AS a JOIN v AS b ON a.k = b.k")[0]["zero"] in (
        0,
        None,
    )
    follower = rows(session, "SELECT n, first FROM w")
    assert step == 0 or follower[0]["n"] == ROWS
    return (state["n"], state["first"]) == (ROWS, step) and follower == [{"n": ROWS, "first": step}]


def test_a_view_over_finite_tables_ends(tmp_path: Path) -> None:
    session = Session({"bounded.backend": "duckdb"})
    try:
        connection = duckdb.connect()
        for name, seed in (("t", 1), ("u", 2)):
            changes = Changes(seed).happen(600)
            session.execute(declared(name, changes.write(tmp_path / name)).strip("\n;"))
            changes.load(connection, name)
        query = "SELECT t.id, t.k, u.v FROM t LEFT JOIN u ON t.id = u.id"
        session.execute(f"CREATE MATERIALIZED VIEW joined (id, k, v) AS {query}")
        session.execute(
            "CREATE MATERIALIZED VIEW counted AS SELECT k, COUNT(*) AS n, SUM(v) AS s FROM joined GROUP BY k"
        )
        for name in ("joined", "counted"):
            job = session.state.views.job(name)
            assert job is not None
            assert job.wait(PATIENCE_S)
        want = sorted(
            connection.execute(f"SELECT k, COUNT(*), SUM(v) FROM ({query}) GROUP BY k").fetchall(), key=str
        )
        for mode in ("automatic", "streaming"):
            session.settings.set("execution.runtime-mode", mode)
            assert (
                sorted((tuple(row.values()) for row in rows(session, "SELECT * FROM counted")), key=str)
                == want
            )
            assert len(rows(session, "SELECT * FROM joined")) == len(connection.execute(query).fetchall())
        changes = rows(session, "SUBSCRIBE TO counted")
        assert sorted(((row["k"], row["n"], row["s"]) for row in changes), key=str) == want
        assert {row["op"] for row in changes} == {"+I"}
        assert rows(session, "SELECT COUNT(*) AS n FROM u JOIN joined ON u.id = joined.id")[0]["n"] > 0
    finally:
        session.close()


def test_it_goes_on_with_the_catalog_and_the_state(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()

    def arrive(name: str, *ids: int) -> None:
        text = "".join(
            f'{{"before": null, "after": {{"id": {i}, "k": "{"ab"[i % 2]}"}}, "op": "c"}}\n' for i in ids
        )
        (tmp_path / "in" / f".{name}").write_text(text, encoding="utf-8")
        (tmp_path / "in" / f".{name}").rename(tmp_path / "in" / name)

    def opened() -> Session:
        settings = {"bounded.backend": "duckdb", "execution.checkpointing.interval": "20 ms"}
        return Session(settings, state_dir=tmp_path / "state", catalog_dir=tmp_path / "catalog")

    arrive("1.json", 1, 2, 3)
    session = opened()
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/in', 'format' = 'debezium-json', 'source.monitor-interval' = '20 ms'"
    session.execute(f"CREATE TABLE t ({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED) WITH ({options})")
    session.execute("CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    session.execute("CREATE MATERIALIZED VIEW w AS SELECT SUM(n) AS total FROM v")
    await_that(lambda: rows(session, "SELECT total FROM w") == [{"total": 3}])
    session.close()
    session = opened()
    assert sum(row["n"] for row in rows(session, "SELECT n FROM v")) == 3, (
        "what the state holds is there before anything new comes"
    )
    arrive("2.json", 4, 5)
    await_that(lambda: rows(session, "SELECT total FROM w") == [{"total": 5}])
    assert sorted(tuple(row.values()) for row in rows(session, "SELECT * FROM v")) == [("a", 2), ("b", 3)]
    session.execute("DROP MATERIALIZED VIEW w")
    session.execute("DROP MATERIALIZED VIEW v")
    session.close()
    assert not list((tmp_path / "state").glob("materialized-view-*"))
    session = opened()
    assert rows(session, "SHOW MATERIALIZED VIEWS") == []
    session.close()


REFUSED = {
    "INSERT INTO v SELECT 1, 2": ("SQL-1094", '"v" is a materialized view: its rows are those of its query'),
    "ALTER TABLE v SET ('name' = 'x')": ("SQL-1303", '"v" is a materialized view, not a table'),
    "DROP TABLE v": ("SQL-1303", '"v" is a materialized view, not a table'),
    "DROP VIEW v": ("SQL-1303", '"v" is a materialized view, not a view'),
    "DROP MATERIALIZED VIEW t": ("SQL-1303", '"t" is a table, not a materialized view'),
    "DROP MATERIALIZED VIEW v": ("SQL-1343", "materialized view v cannot be dropped: w follows it"),
    "CREATE MATERIALIZED VIEW v AS SELECT 1": ("SQL-1302", 'materialized view "v" exists already'),
    "CREATE MATERIALIZED VIEW x AS SELECT a FROM VALUES (1) AS u (a) ORDER BY a": (
        "SQL-1703",
        "a materialized view has no order",
    ),
    "CREATE MATERIALIZED VIEW x (a, a) AS SELECT a, b FROM t": ("SQL-1301", 'view column "a" is given twice'),
    "CREATE MATERIALIZED VIEW x (a) AS SELECT a, b FROM t": (
        "SQL-1046",
        'view "x" names 1 columns, its query returns 2',
    ),
}


def test_what_is_refused() -> None:
    session = Session({"bounded.backend": "duckdb"})
    try:
        session.execute(
            "CREATE TABLE t (a INT, b INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1')"
        )
        session.execute("CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t")
        session.execute("CREATE MATERIALIZED VIEW w AS SELECT a FROM v")
        assert "exists already" in (
            session.execute("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1").note or ""
        )
        for statement, (code, message) in REFUSED.items():
            with pytest.raises(PenstockError) as caught:
                session.execute(statement)
            assert (caught.value.code, caught.value.message) == (code, message)
            assert caught.value.span is not None
        job = session.state.views.job("v")
        assert job is not None
        job.cancel()
        job.wait()
        with pytest.raises(
            PenstockError, match="materialized view v is no longer updated: its job is canceled"
        ):
            session.execute("SELECT * FROM v")
    finally:
        session.close()


def test_a_job_that_fails_says_so_to_who_reads_the_view() -> None:
    session = Session({"bounded.backend": "duckdb"})
    try:
        session.execute(
            "CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'fields.a.min' = '0', 'fields.a.max' = '0')"
        )
        session.execute("CREATE MATERIALIZED VIEW v AS SELECT 1 DIV a AS x FROM t")
        with pytest.raises(PenstockError) as caught:
            await_that(lambda: rows(session, "SELECT * FROM v") is None)
        assert caught.value.code.startswith("RUN-2")
    finally:
        session.close()


def test_a_view_over_tables_that_end_is_waited_for() -> None:
    """A first checkpoint may complete before the table has returned a row: version 1 is empty then."""
    returns, registered = threading.Event(), threading.Event()

    def slow() -> Iterator[dict[str, int]]:
        # its first rows are looked at when it is registered
        assert not registered.is_set() or returns.wait(PATIENCE_S)
        yield from ({"k": number % 3} for number in range(10))

    session = Session({"bounded.backend": "duckdb", "execution.checkpointing.interval": "5 ms"})
    try:
        session.register("slow", slow, stream=False)
        registered.set()
        session.execute("CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n FROM slow GROUP BY k")
        session.execute("CREATE MATERIALIZED VIEW w AS SELECT SUM(n) AS n FROM v")
        contents = session.state.views.tables.contents("v")
        await_that(lambda: contents.standing().version, "a version without rows")
        assert contents.pin(0.0) is None
        # a stream's state is read as it is
        assert MaterializedContents("s", contents.schema).bounded is False
        returns.set()
        assert rows(session, "SELECT COUNT(*) AS c FROM v") == [{"c": 3}]
        assert rows(session, "SELECT n FROM w") == [{"n": 10}]
    finally:
        returns.set()
        session.close()
