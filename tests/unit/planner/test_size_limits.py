"""Short texts that stand for very large plans, types and numbers of windows are refused before anything is
planned, in time.
"""

from __future__ import annotations

import time

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.planner.parser.scanner import MAX_DEPTH
from tests.harness.patience import PATIENCE_S

WITHIN_S = PATIENCE_S
"""Without the limits none of these ends in hours; how long a refusal may take on a busy machine is no
matter.
"""


@pytest.fixture
def session() -> Session:
    session = Session({"bounded.backend": "duckdb"})
    session.execute(
        "CREATE TABLE e (k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen', 'number-of-rows' = '3')"
    )
    return session


def doubled(count: int, item: str, source: str) -> str:
    steps = [f"v{i} AS (SELECT {item} AS a FROM {source.format(f'v{i - 1}')})" for i in range(1, count + 1)]
    return f"WITH v0 AS (SELECT 1 AS a), {', '.join(steps)} SELECT a FROM v{count}"


def nested(depth: int) -> str:
    return "ARRAY<" * depth + "INT" + ">" * depth


REFUSED = {
    "names that double": (doubled(26, "x.a", "{0} AS x JOIN {0} AS y ON x.a = y.a"), "SQL-1016"),
    "rows of rows that double": (doubled(26, "ROW(a, a)", "{0}"), "SQL-1017"),
    "arrays of arrays, by steps": (doubled(MAX_DEPTH + 2, "ARRAY[a]", "{0}"), "SQL-1017"),
    "a type of 3,000 arrays": (f"SELECT CAST(NULL AS {nested(3_000)}) AS x", "SQL-1017"),
    "a column of 3,000 arrays": (
        f"CREATE TABLE t (a {nested(3_000)}) WITH ('connector' = 'blackhole')",
        "SQL-1017",
    ),
    "CUMULATE of 1 ms in 1 day": (
        "SELECT COUNT(*) FROM TABLE(CUMULATE(TABLE e, DESCRIPTOR(ts), INTERVAL '0.001' SECOND, INTERVAL '1' DAY)) GROUP BY window_start, window_end",
        "SQL-1715",
    ),
    "HOP of 1 ms in 1 day": (
        "SELECT k FROM TABLE(HOP(TABLE e, DESCRIPTOR(ts), INTERVAL '0.001' SECOND, INTERVAL '1' DAY))",
        "SQL-1715",
    ),
    "HOP in GROUP BY": (
        "SELECT COUNT(*) FROM e GROUP BY HOP(ts, INTERVAL '0.001' SECOND, INTERVAL '1' DAY)",
        "SQL-1715",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(session: Session, name: str) -> None:
    statement, code = REFUSED[name]
    started = time.monotonic()
    with pytest.raises(PenstockError) as refused:
        session.execute(statement)
    assert refused.value.code == code and refused.value.hint and refused.value.span is not None
    assert time.monotonic() - started < WITHIN_S


def test_views_that_double(session: Session) -> None:
    session.settings.set("table.optimizer.max-plan-nodes", "100")
    session.execute("CREATE VIEW v0 AS SELECT 1 AS a")
    with pytest.raises(PenstockError, match="more than 100 nodes") as refused:
        for i in range(1, 27):
            session.execute(
                f"CREATE VIEW v{i} AS SELECT x.a FROM v{i - 1} AS x JOIN v{i - 1} AS y ON x.a = y.a"
            )
    assert refused.value.hint and "SET 'table.optimizer.max-plan-nodes' = '1000'" in refused.value.hint
    session.settings.set("table.optimizer.max-plan-nodes", "1000")
    assert session.execute("SELECT a FROM v4").final_rows().num_rows == 1


def test_what_is_below_the_limits_works(session: Session) -> None:
    assert session.execute(f"SELECT CAST(NULL AS {nested(MAX_DEPTH)}) AS x").final_rows().num_rows == 1
    session.settings.set("table.exec.window.max-per-row", "4")
    query = "SELECT k FROM TABLE(HOP(TABLE e, DESCRIPTOR(ts), INTERVAL '{}' SECOND, INTERVAL '8' SECOND))"
    assert session.execute(query.format(2)).final_rows().num_rows == 12
    with pytest.raises(PenstockError, match="SQL-1715"):
        session.execute(query.format(1))
