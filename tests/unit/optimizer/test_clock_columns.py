"""The current time in nodes that remember rows: each row's own, read when it comes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.generated.queries.generated.data import DELAY_S, SCHEMA
from tests.harness.direct.feeds import Feed, Feeds
from tests.harness.direct.job import DirectJob, planned

LONG_AGO = "DATE '1960-01-01'"  # the clock of these jobs begins in 1970
ROWS = [((i, i % 2, "a", i, None, None), 1) for i in range(6)]
TABLES = {
    "w": Feed(SCHEMA, (tuple(ROWS), ())),
    "t": Feed(SCHEMA, ((), ()), time_column="ts", delay=DELAY_S),
    "u": Feed(SCHEMA, (tuple(ROWS), ()), key=("id",)),
}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    made = Session({"execution.runtime-mode": "streaming"})
    Feeds(TABLES).register(made)
    made.execute(
        "CREATE TABLE stamped (a INT, ts AS CURRENT_TIMESTAMP, WATERMARK FOR ts AS ts)"
        " WITH ('connector' = 'datagen', 'number-of-rows' = '20', 'fields.a.min' = '1', 'fields.a.max' = '3')"
    )
    yield made
    made.close()


def rows(session: Session, query: str) -> list[tuple]:
    return sorted(DirectJob(planned(session, query).graph, Feeds(TABLES)).finish().elements())


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (f"SELECT k, max(CURRENT_DATE) > {LONG_AGO}, count(*) FILTER (WHERE CURRENT_DATE > {LONG_AGO}) FROM w WHERE k=0 GROUP BY k", [(0, True, 3)]),
        ("SELECT max(CURRENT_TIMESTAMP) >= min(PROCTIME()), count(LOCALTIMESTAMP) FROM w", [(True, 6)]),
        ("SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY CURRENT_DATE) FROM w", [(i, 9 if i % 2 else 6) for i in range(6)]),
        ("SELECT id, ROW_NUMBER() OVER (ORDER BY PROCTIME()) FROM w", [(i, i + 1) for i in range(6)]),
        (f"SELECT id, LAG(CURRENT_DATE) OVER (ORDER BY id) > {LONG_AGO} FROM w WHERE id < 3", [(0, None), (1, True), (2, True)]),
        ("SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY CURRENT_DATE, id) AS n FROM w) WHERE n = 1", [(0,), (1,)]),
        (f"SELECT id, CURRENT_DATE > {LONG_AGO} AS y FROM w ORDER BY y, id DESC LIMIT 2", [(4, True), (5, True)]),
        (f"SELECT w.id, x.id FROM w JOIN w AS x ON w.id = x.v AND CURRENT_DATE > {LONG_AGO}", [(i, i) for i in range(6)]),
        (f"SELECT w.id, x.id FROM w LEFT JOIN w AS x ON w.id = x.v AND CURRENT_DATE < {LONG_AGO}", [(i, None) for i in range(6)]),
        (f"SELECT id FROM w LEFT SEMI JOIN w AS x ON w.id = x.v AND x.v > 3 AND CURRENT_DATE > {LONG_AGO}", [(4,), (5,)]),
        (f"SELECT id FROM w LEFT ANTI JOIN w AS x ON w.id = x.v AND x.v > w.k + 2 AND CURRENT_DATE > {LONG_AGO}", [(0,), (1,), (2,), (3,)]),
        (f"SELECT count(*) FROM w, UNNEST(ARRAY[CURRENT_DATE, {LONG_AGO}]) AS d(d) WHERE d = {LONG_AGO}", [(6,)]),
        ("SELECT id, length(concat(CAST(CURRENT_DATE AS STRING), s)), CAST(CURRENT_TIMESTAMP AS STRING) > '19' FROM w WHERE id < 2", [(0, 11, True), (1, 11, True)]),
        ("SELECT id, EXTRACT(YEAR FROM CURRENT_TIMESTAMP) - id < 3000 FROM w WHERE id < 2", [(0, True), (1, True)]),
        (f"SELECT id, CASE WHEN id > 0 THEN CURRENT_DATE END > {LONG_AGO} FROM w WHERE id < 2", [(0, None), (1, True)]),
        (f"SELECT id, COALESCE(IF(id > 0, {LONG_AGO}, NULL), CURRENT_DATE) > {LONG_AGO} FROM w WHERE id < 2", [(0, True), (1, False)]),
    ],
)  # fmt: skip
def test_the_clock_is_read_of_each_row(session: Session, query: str, wanted: list[tuple]) -> None:
    assert rows(session, query) == wanted


def test_a_table_may_go_by_the_current_time(session: Session) -> None:
    query = "SELECT count(*) FROM TUMBLE(TABLE stamped, DESCRIPTOR(ts), INTERVAL '400' DAYS) GROUP BY window_start, window_end"
    assert sum(session.execute(query).final_rows().column(0).to_pylist()) == 20


def test_processing_time_may_be_called_where_it_orders(session: Session) -> None:
    text = str(planned(session, "SELECT ROW_NUMBER() OVER (PARTITION BY k ORDER BY PROCTIME()) FROM w").laid)
    assert "ProcessingTime" in text and "timely=True" in text


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT max(CURRENT_DATE) FROM (SELECT k, max(v) AS v FROM u GROUP BY k) WHERE v > 1", "SQL-1315"),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES CURRENT_DATE AS d PATTERN (A) DEFINE A AS A.k > 0)",
            "SQL-1746",
        ),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.k AS d PATTERN (A) DEFINE A AS CURRENT_DATE > LAST(A.ts))",
            "SQL-1746",
        ),
    ],
)
def test_where_it_has_no_meaning_it_is_refused_before_anything_starts(
    session: Session, query: str, code: str
) -> None:
    with pytest.raises(PenstockError) as caught:
        planned(session, query)
    assert caught.value.code == code
