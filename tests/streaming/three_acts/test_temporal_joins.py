"""FOR SYSTEM_TIME AS OF in three acts against DuckDB's ASOF JOIN: versioned tables and views, late rows,
NULLs; lookups of bounded tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end
from tests.streaming.three_acts.late_free import database, declare, on_time, rows_of
from tests.streaming.three_acts.test_timed_joins import rows_of_a, submit

ROWS = 3000
SPLITS = {
    "a": rows_of(ROWS, 3, lambda i: 30 if i % 29 == 7 else 0),
    "r": rows_of(ROWS // 3, 5, lambda i: 25 if i % 37 == 9 else -i / 2),
}
ON_TIME = {name: on_time(splits) for name, splits in SPLITS.items()}
ALL = {name: pa.concat_tables(splits) for name, splits in SPLITS.items()}
CITIES = pa.table({"k": ["a", "b", "c", "x"], "city": ["Aachen", "Bonn", "Celle", "Xanten"]})
_R = "(SELECT DISTINCT ON (k, ts) * FROM r WHERE ts IS NOT NULL ORDER BY k, ts, id) AS v"
_MET = f"{_R} ON a.k = v.k AND a.ts >= v.ts"
# By name: our words and DuckDB's.
QUERIES = {
    "inner": (
        "SELECT a.id, v.id, v.v FROM a JOIN r FOR SYSTEM_TIME AS OF a.ts AS v ON a.k = v.k",
        f"SELECT a.id, v.id, v.v FROM a ASOF JOIN {_MET}",
    ),
    "left": (
        "SELECT a.id, v.id, a.ts FROM a LEFT JOIN r AS v FOR SYSTEM_TIME AS OF a.ts ON v.k = a.k",
        f"SELECT a.id, v.id, a.ts FROM a ASOF LEFT JOIN {_MET}",
    ),
    "view": (
        "SELECT a.id, v.v FROM a JOIN last FOR SYSTEM_TIME AS OF ts AS v ON a.k = v.key",
        f"SELECT a.id, v.v FROM a ASOF JOIN {_MET}",
    ),
    "condition": (
        "SELECT a.id, v.id FROM a LEFT JOIN r FOR SYSTEM_TIME AS OF a.ts AS v ON a.k = v.k AND v.v > a.v",
        f"SELECT a.id, CASE WHEN v.v > a.v THEN v.id END FROM a ASOF LEFT JOIN {_MET}",
    ),
    "using": (
        "SELECT k, v.v FROM a JOIN r FOR SYSTEM_TIME AS OF ts AS v USING (k) WHERE a.v < 9",
        f"SELECT a.k, v.v FROM a ASOF JOIN {_MET} WHERE a.v < 9",
    ),
    "windows": (
        "SELECT window_end, SUM(v) FROM TUMBLE(TABLE (SELECT a.ts AS ts, v.v AS v FROM a JOIN r FOR SYSTEM_TIME AS OF a.ts AS v ON a.k = v.k),"
        " DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end",
        f"SELECT time_bucket(INTERVAL '10 seconds', a.ts) + INTERVAL '10 seconds', SUM(v.v) FROM a ASOF JOIN {_MET} GROUP BY 1",
    ),
}
_LAST = "SELECT k AS key, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM r) WHERE n = 1"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session(
        {"execution.runtime-mode": "streaming", "execution.batch.max-rows": "60", "bounded.backend": "duckdb"}
    )
    declare(session, "a", SPLITS["a"], tmp_path)
    declare(session, "r", SPLITS["r"], tmp_path, ", PRIMARY KEY (k) NOT ENFORCED")
    session.execute(f"CREATE VIEW last AS {_LAST}")
    session.register("cities", CITIES)
    yield session
    session.close()


def answer(words: str, tables: dict[str, pa.Table]) -> Counter[tuple[Any, ...]]:
    with database(**tables, cities=CITIES) as connection:
        return Counter(connection.execute(words).fetchall())


def rows(session: Session, text: str) -> Counter[tuple[Any, ...]]:
    found = session.execute(text).final_rows(PATIENCE_S)
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.mark.parametrize("name", QUERIES)
def test_three_acts(session: Session, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.streaming.three_acts.acts.rows_read", rows_of_a)
    text, words = QUERIES[name]
    expected = answer(words, ON_TIME)
    straight = Folded()
    job, channel = submit(session, text, 1, None)
    run_to_end(job, channel, straight)
    assert straight.rows == expected
    assert all(
        operator.state_entries == 0 for operator in job.metrics().operators if operator.name.endswith("join")
    )

    folded = Folded()
    state = tmp_path / "state"
    run_and_stop(*submit(session, text, 2, state), folded, ROWS // 4)
    job, channel = submit(session, text, 3, state)
    run_to_end(job, channel, folded)
    assert folded.rows == expected


@pytest.mark.parametrize("name", [name for name in QUERIES if name != "windows"])
def test_a_bounded_query_is_one_of_the_backend(session: Session, name: str) -> None:
    session.settings.set("execution.runtime-mode", "batch")
    text, words = QUERIES[name]
    assert rows(session, text) == answer(words, ALL)


def test_versions_of_a_bounded_table_are_all_there(session: Session, tmp_path: Path) -> None:
    session.settings.set("execution.runtime-mode", "automatic")
    columns = (
        "id BIGINT, k STRING, v BIGINT, ts TIMESTAMP(6), WATERMARK FOR ts AS ts, PRIMARY KEY (k) NOT ENFORCED"
    )
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/r', 'format' = 'parquet'"
    session.execute(f"CREATE TABLE settled ({columns}) WITH ({options})")
    expected = answer(f"SELECT a.id, v.id FROM a ASOF LEFT JOIN {_MET}", {"a": ON_TIME["a"], "r": ALL["r"]})
    for parallelism in ("1", "2"):
        session.settings.set("parallelism.default", parallelism)
        assert (
            rows(
                session,
                "SELECT a.id, v.id FROM a LEFT JOIN settled FOR SYSTEM_TIME AS OF a.ts AS v ON a.k = v.k",
            )
            == expected
        )


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_lookup_of_a_bounded_table(session: Session, kind: str) -> None:
    stamped = "(SELECT *, PROCTIME() AS p_time FROM a) AS s"
    text = (
        f"SELECT s.id, c.city FROM {stamped} {kind} cities FOR SYSTEM_TIME AS OF s.p_time AS c ON s.k = c.k"
    )
    expected = answer(f"SELECT a.id, c.city FROM a {kind} cities AS c ON a.k = c.k", ALL)
    for parallelism in ("1", "2"):
        session.settings.set("parallelism.default", parallelism)
        assert rows(session, text) == expected
    assert session.execute(text).shape.insert_only


def test_natural_join(session: Session) -> None:
    expected = answer("SELECT k, id, city FROM a JOIN cities USING (k)", ALL)
    assert rows(session, "SELECT k, id, city FROM a NATURAL JOIN cities") == expected
    assert rows(session, "SELECT k, id, city FROM cities NATURAL RIGHT OUTER JOIN a") == answer(
        "SELECT a.k, id, city FROM a LEFT JOIN cities USING (k)", ALL
    )
