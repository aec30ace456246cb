"""DuckDB's statements PIVOT and UNPIVOT as jobs: the rows are DuckDB's in three acts, over inserts and over rows
that are updated.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end
from tests.streaming.three_acts.test_emit import INPUT, ROWS, SCHEMA, SPLITS, rows_of_e, session, submit

__all__ = ["session"]
QUERIES = {
    "pivot": "PIVOT e ON k IN (0, 1, NULL AS none) USING sum(v) AS total, count(*) GROUP BY d",
    "pivot of groups that are updated": (
        "PIVOT (SELECT k, d, max(v) AS v FROM e GROUP BY k, d) ON k IN (0, 1, 4), d IN (0.25, 0.5, 1.25) USING sum(v)"
    ),
    "unpivot": "UNPIVOT (SELECT d, k, v FROM e) ON COLUMNS(* EXCLUDE (d)) INTO NAME n VALUE x",
    "unpivot of groups that are updated": (
        "SELECT n, count(*) AS c, sum(x) AS s FROM (UNPIVOT (SELECT k, max(v) AS hi, min(v) AS lo FROM e GROUP BY k) "
        "ON hi, lo INTO NAME n VALUE x) AS r GROUP BY n"
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_those_of_duckdb_in_three_acts(
    session: Session, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.streaming.three_acts.acts.rows_read", rows_of_e)
    text, straight, stopped = QUERIES[name], Folded(), Folded()
    connection = duckdb.connect()
    columns = zip(*(row for split in INPUT for row in split), strict=True)
    connection.register(
        "e", pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)
    )
    expected = Counter(connection.execute(text).fetchall())
    run_to_end(*submit(session, text, 1, None), straight)
    assert straight.rows == expected
    run_and_stop(*submit(session, text, 2, tmp_path), stopped, ROWS * SPLITS // 3)
    run_to_end(*submit(session, text, 3, tmp_path), stopped)
    assert stopped.rows == expected
