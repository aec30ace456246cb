"""Lookup joins: what a table has for each row's key as it passes, however it is asked, remembered, and
whoever dies in between.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import penstock
from penstock.client.connection import Connection
from penstock.engine.job.job import Job
from tests.harness.patience import PATIENCE_S, await_that
from tests.streaming.databases.places import Place

DIM = "CREATE TABLE dim (k BIGINT, g STRING, name STRING, ok BOOLEAN)"
ROWS = 300
HOW = {
    "none": {},
    "in turn": {"lookup.async": "false"},
    "unordered": {"lookup.output-mode": "allow_unordered", "lookup.capacity": "3"},
    "partial": {"lookup.cache": "PARTIAL", "lookup.partial-cache.max-rows": "5"},
    "hits only": {"lookup.cache": "PARTIAL", "lookup.partial-cache.cache-missing-key": "false"},
    "full": {"lookup.cache": "FULL"},
}


def filled(place: Place) -> None:
    truth = ("1", "0") if place.kind == "sqlite" else ("TRUE", "FALSE")
    rows = ", ".join(
        f"({k}, '{'ab'[k % 2]}', 'n{k}-{i}', {truth[k % 2]})"
        for k in range(0, 20, 2)
        for i in range(1 + k % 3)
    )
    kinds = "k BIGINT, g VARCHAR(9), name VARCHAR(9), ok BOOLEAN"
    place.run(
        f"CREATE TABLE dim ({kinds})", f"INSERT INTO dim VALUES {rows}, (NULL, 'a', 'nobody', {truth[0]})"
    )


def opened(
    place: Place, more: str = "", options: dict[str, str] | None = None, **settings: str
) -> Connection:
    made = penstock.connect(
        settings={"execution.batch.max-rows": "40", "table.dml-sync": "false", **settings}
    )
    made.execute(
        f"{DIM} {place.options('dim', **{key.replace('.', '__'): value for key, value in (options or {}).items()})}"
    )
    made.execute(
        "CREATE TABLE l (id INT, r INT, k AS NULLIF(r, 25), p AS PROCTIME()) WITH ('connector' = 'datagen', "
        f"'number-of-rows' = '{ROWS}', {more}'fields.id.kind' = 'sequence', 'fields.id.start' = '1', "
        "'fields.r.min' = '0', 'fields.r.max' = '25', 'seed' = '5')"
    )
    return made


JOINS = {
    "inner": "JOIN dim {as_of} AS d ON l.k = d.k",
    "left": "LEFT JOIN dim {as_of} AS d ON l.k = d.k",
    "two keys": "LEFT JOIN dim {as_of} AS d ON l.k = d.k AND d.g = CASE WHEN l.id % 2 = 0 THEN 'a' ELSE 'b' END",
    "residual": "LEFT JOIN dim {as_of} AS d ON l.k = d.k AND d.ok AND CHAR_LENGTH(d.name) < l.id",
}


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What each join with the table as it stands has."""
    place = Place("sqlite", tmp_path_factory.mktemp("joined"))
    filled(place)
    with opened(place) as made:
        return {name: rows_of(made, join.format(as_of="")) for name, join in JOINS.items()}


def rows_of(made: Connection, join: str) -> list[str]:
    return sorted(map(str, made.execute("SELECT l.id, l.k, d.name, d.g FROM l " + join).fetchall()))


@pytest.mark.parametrize(
    ("kind", "how"),
    [*(("sqlite", how) for how in HOW), ("duckdb", "none"), ("duckdb", "full"), ("postgres", "none")],
)
def test_it_is_the_join_with_the_table(
    kind: str, how: str, joined: dict[str, list[str]], tmp_path: Path
) -> None:
    """Every join on every database, and on one of them however it is asked: what stands before the
    database is the same for all.
    """
    place = Place(kind, tmp_path)
    filled(place)
    with opened(place, options=HOW[how], **{"parallelism.default": "2" if how == "partial" else "1"}) as made:
        for name in JOINS if how == "none" else ("left", "two keys"):
            found = rows_of(made, JOINS[name].format(as_of="FOR SYSTEM_TIME AS OF l.p"))
            assert found == joined[name]
            assert len(found) > 50


def test_order_is_kept_and_each_key_is_asked_for_once(place: Place) -> None:
    filled(place)
    with opened(place, options={"lookup.cache": "PARTIAL", "lookup.async": "false"}) as made:
        cursor = made.execute(
            "SELECT l.id FROM l LEFT JOIN dim FOR SYSTEM_TIME AS OF l.p AS d ON l.k = d.k AND d.name LIKE '%-0'"
        )
        ids = [row[0] for row in cursor.fetchall()]
        job = cursor.job
        assert job is not None
        counters = next(o.counters for o in job.metrics().operators if "lookup" in o.name)
    assert len(ids) == ROWS
    assert ids == sorted(ids)
    assert counters["lookup_requests"] <= -(-ROWS // 40) + 2
    assert counters["lookup_hits"] > 50, counters
    assert counters["lookup_misses"] == 25, counters


def test_a_cache_forgets_in_time(place: Place) -> None:
    place.run(
        "CREATE TABLE dim (k BIGINT, g VARCHAR(9), name VARCHAR(9), ok BOOLEAN)",
        "INSERT INTO dim VALUES (1, 'a', 'old', NULL)",
    )
    options = {"lookup.cache": "PARTIAL", "lookup.partial-cache.expire-after-write": "50 ms"}
    with opened(place, options=options) as made:
        made.execute(
            "CREATE TABLE ones (k INT, p AS PROCTIME()) WITH ('connector' = 'datagen', 'rows-per-second' = '50', "
            "'fields.k.min' = '1', 'fields.k.max' = '1')"
        )
        cursor = made.execute(
            "SELECT d.name FROM ones AS l JOIN dim FOR SYSTEM_TIME AS OF l.p AS d ON l.k = d.k"
        )
        assert cursor.fetchone() == ("old",)
        place.run("UPDATE dim SET name = 'new'")
        deadline = time.monotonic() + PATIENCE_S
        while cursor.fetchone() != ("new",):
            assert time.monotonic() < deadline
        cursor.cancel()


def test_a_hint_says_how_one_query_looks_up(place: Place) -> None:
    filled(place)
    hint = "/*+ LOOKUP('table' = 'd', 'async' = 'true', 'output-mode' = 'allow_unordered', 'capacity' = '7', 'timeout' = '10 s') */"
    with opened(place) as made:
        query = "d.name FROM l JOIN dim FOR SYSTEM_TIME AS OF l.p AS d ON l.k = d.k"
        assert "allow_unordered" in str(made.execute(f"EXPLAIN SELECT {hint} {query}").fetchall())
        assert len(made.execute(f"SELECT {hint} {query}").fetchall()) == len(
            made.execute(f"SELECT {query}").fetchall()
        )
        again = hint.replace(
            "'timeout' = '10 s'",
            "'retry-predicate' = 'lookup_miss', 'retry-strategy' = 'fixed_delay', 'fixed-delay' = '1 ms', 'max-attempts' = '2'",
        )
        cursor = made.execute(f"SELECT {again} {query}")
        cursor.fetchall()
        assert cursor.job is not None and cursor.job.wait(PATIENCE_S)
        assert (
            next(o.counters for o in cursor.job.metrics().operators if "lookup" in o.name)["lookup_retries"]
            > 0
        )


def waiting(job: Job) -> int:
    return sum(operator.state_entries for operator in job.metrics().operators if "lookup" in operator.name)


def test_rows_under_way_are_state(tmp_path: Path) -> None:
    """A job is stopped while answers are under way, which never come; the next one asks again, and no row
    is lost or given twice.
    """
    place = Place("sqlite", tmp_path)
    filled(place)
    out, state = tmp_path / "out", tmp_path / "state"
    sink = f"CREATE TABLE o (id INT, name STRING) WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'json')"
    insert = "INSERT INTO o SELECT l.id, d.name FROM l LEFT JOIN dim FOR SYSTEM_TIME AS OF l.p AS d ON l.k = d.k AND d.name LIKE '%-0'"
    slow = {"lookup.retry-predicate": "lookup_miss", "lookup.fixed-delay": "1 h", "lookup.connections": "1"}
    settings = {
        "execution.checkpointing.dir": str(state),
        "execution.checkpointing.interval": "1 h",
        "pipeline.name": "j",
    }
    with opened(place, "'rows-per-second' = '400', ", slow, **settings) as made:
        made.execute(sink)
        job = made.execute(insert).job
        assert job is not None
        await_that(lambda: waiting(job) >= 50, "50 questions")
        made.execute(f"STOP JOB '{job.job_id}' WITH SAVEPOINT '{tmp_path / 'saved'}'").fetchall()
    saved = next((tmp_path / "saved").iterdir())
    slow["lookup.fixed-delay"] = "1 ms"
    with opened(
        place,
        "",
        slow,
        **settings
        | {
            "execution.checkpointing.dir": str(tmp_path / "other"),
            "execution.state-recovery.path": str(saved),
        },
    ) as made:
        made.execute(sink)
        job = made.execute(insert).job
        assert job is not None
        job.wait(PATIENCE_S)
        made.execute("SET 'execution.state-recovery.path' = ''")
        ids = sorted(row[0] for row in made.execute("SELECT id FROM o").fetchall())
    assert ids == list(range(1, ROWS + 1)), len(ids)


def test_the_end_waits_for_answers_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    """All rows have come and their answers have not: other tasks of the slot go on, and the job can be
    cancelled.
    """
    place = Place("sqlite", tmp_path)
    filled(place)
    never = {"lookup.retry-predicate": "lookup_miss", "lookup.fixed-delay": "1 h"}
    with opened(place, options=never) as made:
        made.execute(
            f"CREATE TABLE o (id INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'o'}', 'format' = 'json')"
        )
        made.execute("CREATE TABLE ids (id INT) WITH ('connector' = 'blackhole')")
        insert = "INSERT INTO o SELECT l.id FROM l JOIN dim FOR SYSTEM_TIME AS OF l.p AS d ON l.k = d.k"
        job = made.execute(
            f"EXECUTE STATEMENT SET BEGIN {insert}; INSERT INTO ids SELECT COUNT(*) FROM l GROUP BY r; END"
        ).job
        assert job is not None
        await_that(
            lambda: waiting(job) >= ROWS and written(job) > 0,
            lambda: f"{waiting(job)} questions, {written(job)} written: more of them",
        )
        time.sleep(0.05)
        began = time.monotonic()
        job.cancel()
        job.wait(PATIENCE_S)
        assert time.monotonic() - began < PATIENCE_S


def written(job: Job) -> int:
    return sum(operator.rows_in for operator in job.metrics().operators if operator.name == "sink ids")


def test_the_database_is_away(place: Place) -> None:
    place.url, place.path = "postgresql://127.0.0.1:1/none", place.path + ".gone"
    with (
        opened(place, options={"lookup.max-retries": "1"}, **{"restart-strategy.type": "none"}) as made,
        pytest.raises(penstock.Error, match="DAT-4701"),
    ):
        made.execute("SELECT d.name FROM l JOIN dim FOR SYSTEM_TIME AS OF l.p AS d ON l.k = d.k").fetchall()


BAD = {
    "ON l.k = d.k + 1": "SQL-1728",
    "ON l.k > d.k": "SQL-1728",
}


@pytest.mark.parametrize("condition", BAD)
def test_what_cannot_be_asked_is_refused(tmp_path: Path, condition: str) -> None:
    with opened(Place("sqlite", tmp_path)) as made, pytest.raises(penstock.Error, match=BAD[condition]):
        made.execute(f"SELECT d.name FROM l JOIN dim FOR SYSTEM_TIME AS OF l.p AS d {condition}")


def test_rows_that_are_taken_back_are_refused(tmp_path: Path) -> None:
    query = "SELECT c.n, d.name FROM (SELECT k, COUNT(*) AS n FROM l GROUP BY k) AS c JOIN dim FOR SYSTEM_TIME AS OF PROCTIME() AS d ON c.k = d.k"
    with opened(Place("sqlite", tmp_path)) as made, pytest.raises(penstock.Error, match="SQL-1322"):
        made.execute(query)
