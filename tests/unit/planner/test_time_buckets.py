"""DATE_BIN and TIME_BUCKET: DuckDB's own time_bucket is the oracle, in both runtimes; what is no width."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta

import duckdb
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

TIMES = [None, *(datetime(1999, 12, 25, 23) + timedelta(hours=7, microseconds=3) * n for n in range(60))]
WIDTHS = {
    "'15' MINUTE": "15 minutes",
    "'7' DAY": "7 days",
    "'1.5' SECOND": "1500 milliseconds",
    "'36' HOUR": "36 hours",
}
ORIGIN = "TIMESTAMP '2003-04-05 06:07:08.9'"


@pytest.mark.parametrize("mode", ["streaming", "automatic"])
def test_buckets_are_those_of_duckdb(mode: str) -> None:
    ours, theirs = ["t"], ["t"]
    for number, (width, name) in enumerate(WIDTHS.items()):
        ours.append(f"time_bucket(INTERVAL {width}, t) AS a{number}")
        ours.append(f"date_bin(INTERVAL {width}, t, {ORIGIN}) AS b{number}")
        ours.append(f"date_bin(INTERVAL {width}, t) AS c{number}")
        origins = ["", f", {ORIGIN}", ", TIMESTAMP '1970-01-01 00:00:00'"]
        theirs += [f"time_bucket(INTERVAL '{name}', t{origin})" for origin in origins]
    times = pa.table({"t": pa.array(TIMES, pa.timestamp("us"))})
    with closing(Session({"execution.runtime-mode": mode, "bounded.backend": "duckdb"})) as session:
        session.register("times", times)
        found = session.execute(f"SELECT {', '.join(ours)} FROM times").final_rows(PATIENCE_S).to_pylist()
    rows = [tuple(row.values()) for row in found]
    with duckdb.connect() as connection:
        connection.register("times", times)
        expected = connection.execute(f"SELECT {', '.join(theirs)} FROM times").fetchall()
    assert sorted(rows, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    "call", ["time_bucket(INTERVAL '1' MONTH, t)", "date_bin(INTERVAL '0' DAY, t)", "date_bin(5, t)"]
)
def test_what_is_no_width_is_refused(call: str) -> None:
    with closing(Session({"bounded.backend": "duckdb"})) as session:
        session.register("times", pa.table({"t": pa.array(TIMES, pa.timestamp("us"))}))
        with pytest.raises(PenstockError) as refused:
            session.execute(f"SELECT {call} FROM times")
    assert refused.value.code == "SQL-1103" and "date_trunc" in str(refused.value.hint)
