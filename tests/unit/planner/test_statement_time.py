"""A bounded statement has one current time: of all rows, in all parts of its plan, on each runtime."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

ROWS = 300
# one row at a time takes longer than the millisecond that the clock has
SETTINGS = {
    "bounded.backend": "duckdb",
    "execution.batch.max-rows": "1",
    "parallelism.default": "2",
    "table.local-time-zone": "Asia/Tokyo",
}
TIMES = "CURRENT_TIMESTAMP AS t, CAST(LOCALTIMESTAMP AS TIMESTAMP_LTZ(6)) AS w, PROCTIME() AS p, CURRENT_DATE AS d"
# patterns are matched by our runtime only, and the clock above them is read there
MATCHED = "u MATCH_RECOGNIZE (ORDER BY at MEASURES A.a AS a ONE ROW PER MATCH PATTERN (A) DEFINE A AS A.a >= 0) AS m"
DATAGEN = f"WITH ('connector' = 'datagen', 'number-of-rows' = '{ROWS}')"


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with closing(Session(SETTINGS)) as made:
        begin = datetime(2024, 1, 1)
        at = pa.array([begin + timedelta(seconds=n) for n in range(ROWS)], pa.timestamp("us"))
        made.register("u", pa.table({"a": range(ROWS), "at": at}))
        made.execute(f"CREATE TABLE r (a BIGINT) {DATAGEN}")
        yield made


def counts(session: Session, relation: str) -> tuple:
    query = (
        "SELECT count(*), count(DISTINCT t), count(DISTINCT d), min(t) = max(w), min(p) = max(t) "
        f"FROM ({relation})"
    )
    (row,) = session.execute(query).final_rows(PATIENCE_S).to_pylist()
    return tuple(row.values())


@pytest.mark.parametrize(
    ("relation", "rows"),
    [
        # a backend runs it whole
        (f"SELECT {TIMES}, a FROM u", ROWS),
        # our runtime above a backend
        (f"SELECT {TIMES}, a FROM {MATCHED}", ROWS),
        # the clock on both sides of what a backend computes
        (f"SELECT {TIMES}, a FROM {MATCHED} UNION ALL SELECT {TIMES}, max(a) FROM u", ROWS + 1),
        (f"SELECT {TIMES}, m.a FROM {MATCHED} JOIN u AS v ON m.a = v.a AND v.at < NOW()", ROWS),
        (f"SELECT {TIMES}, a FROM {MATCHED} WHERE NOW() > TIMESTAMP '2020-01-01 00:00:00'", ROWS),
    ],
)
def test_all_rows_have_the_time_of_the_statement(session: Session, relation: str, rows: int) -> None:
    assert counts(session, relation) == (rows, 1, 1, True, True)


def test_two_statements_have_two_times(session: Session) -> None:
    query = f"SELECT max(t) AS t FROM (SELECT {TIMES}, a FROM {MATCHED})"
    first, second = (session.execute(query).final_rows(PATIENCE_S).to_pylist()[0]["t"] for _ in range(2))
    assert first < second


def test_a_recording_is_a_bounded_table_in_batch_mode_only(session: Session) -> None:
    relation = "SELECT CURRENT_TIMESTAMP AS t, NOW() AS w, NOW() AS p, CURRENT_DATE AS d, a FROM r"
    # read as a stream: the clock is that of each row
    assert counts(session, relation)[1] > 1
    with closing(Session({**SETTINGS, "execution.runtime-mode": "batch"})) as batch:
        batch.execute(f"CREATE TABLE r (a BIGINT) {DATAGEN}")
        assert counts(batch, relation)[:2] == (ROWS, 1)


def test_an_insert_has_one_time_too(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    options = f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json')"
    session.execute(f"CREATE TABLE kept (t TIMESTAMP_LTZ(6), a BIGINT) {options}")
    made = session.execute(f"INSERT INTO kept SELECT CURRENT_TIMESTAMP, a FROM {MATCHED}")
    assert made.job is not None and made.job.wait(PATIENCE_S)
    (row,) = (
        session.execute("SELECT count(*), count(DISTINCT t) FROM kept").final_rows(PATIENCE_S).to_pylist()
    )
    assert tuple(row.values()) == (ROWS, 1)
