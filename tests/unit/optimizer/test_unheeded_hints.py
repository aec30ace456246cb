"""Hints PARALLELISM without an operator that could obey them are noted, with the reason."""

import logging

import pytest

from penstock.client.session import Session

TABLES = (
    "CREATE TABLE ticks (k BIGINT, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '10')",
    "CREATE TABLE facts (k BIGINT, name STRING) WITH ('connector' = 'filesystem', 'path' = '{}')",
)
BACKEND = "the bounded backend computes that part, as its tables are bounded, with all its threads"
NOTED = [
    ("SELECT /*+ PARALLELISM(3) */ k, COUNT(*) FROM ticks GROUP BY k", []),
    (
        "SELECT /*+ PARALLELISM(3) */ COUNT(*) FROM ticks",
        ["the hint PARALLELISM(3) has no effect: without keys to part them all its rows go to one subtask"],
    ),
    (
        "SELECT /*+ PARALLELISM('GROUP BY' = '3') */ k, COUNT(*) FROM facts GROUP BY k",
        [f"the hint PARALLELISM('GROUP BY' = '3') has no effect: {BACKEND}"],
    ),
    (
        "SELECT /*+ PARALLELISM(2) */ t.k FROM ticks AS t JOIN (SELECT /*+ PARALLELISM(3) */ k, COUNT(*) AS n "
        "FROM facts GROUP BY k) AS f ON t.k = f.k",
        [f"the hint PARALLELISM(3) has no effect: {BACKEND}"],
    ),
    (
        "WITH RECURSIVE r AS (SELECT k FROM ticks UNION SELECT /*+ PARALLELISM(2) */ t.v FROM r JOIN ticks AS t "
        "ON r.k = t.k) SELECT * FROM r",
        ["the hint PARALLELISM(2) has no effect: the steps of WITH RECURSIVE run inside of one operator"],
    ),
    (
        "SELECT /*+ PARALLELISM(2) */ k, v + 1 FROM ticks",
        [
            "the hint PARALLELISM(2) has no effect: this SELECT has no join, groups, OVER or DISTINCT; "
            "PARALLELISM('t' = '4') is for reading table t"
        ],
    ),
    (
        "SELECT k FROM ticks AS a WHERE EXISTS (SELECT /*+ PARALLELISM('JOIN' = '2') */ 1 FROM ticks AS b "
        "WHERE a.k = b.v)",
        ["the hint PARALLELISM('JOIN' = '2') has no effect: this SELECT has no join"],
    ),
    ("SELECT /*+ PARALLELISM('JOIN' = '2') */ k FROM ticks AS a WHERE k IN (SELECT v FROM ticks)", []),
    (
        "SELECT k, n FROM (SELECT /*+ PARALLELISM('OVER' = '2') */ k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) "
        "AS n FROM ticks) WHERE n < 2",
        [],
    ),
]


@pytest.mark.parametrize(("query", "notes"), NOTED)
def test_what_is_said(
    query: str, notes: list[str], tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    facts = tmp_path_factory.mktemp("facts") / "facts.csv"
    facts.write_text("1,one\n2,two\n", encoding="utf-8")
    with caplog.at_level(logging.INFO, "penstock.planner"):
        session = Session({"bounded.backend": "duckdb"})
        try:
            for table in TABLES:
                session.execute(table.format(facts))
            session.execute(f"EXPLAIN PHYSICAL {query}")
        finally:
            session.close()
    assert [record.getMessage() for record in caplog.records] == [f"note: {note}" for note in notes]
