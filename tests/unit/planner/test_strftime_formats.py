"""STRFTIME and STRPTIME: DuckDB's own are the oracle, in both runtimes; formats there are not."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta

import duckdb
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

TIMES = [
    None,
    *(datetime(1999, 12, 25, 23) + timedelta(hours=77, seconds=61, microseconds=3) * n for n in range(60)),
]
FORMATS = (
    "%Y-%m-%d %H:%M:%S",
    "%-d.%-m.%y at %-H:%-M:%-S",
    "%I %p, %-I o''clock, %A %a %B %b",
    "%j %-j %f %g %% %F %T %x %X %c",
    "day ''%d''",
    "",
)
READ = {"%d.%m.%Y %H:%M": "25.12.1999 23:05", "%Y%m%d": "20240229", "T%H h, %d %b %Y": "T07 h, 01 Feb 2024"}


@pytest.mark.parametrize("mode", ["streaming", "automatic"])
def test_texts_and_times_are_those_of_duckdb(mode: str) -> None:
    times = pa.table({"t": pa.array(TIMES, pa.timestamp("us"))})
    columns = ["t", *(f"strftime(t, '{form}') AS a{number}" for number, form in enumerate(FORMATS))]
    columns += ["strftime(CAST(t AS DATE), '%Y/%m') AS b", "strftime('%M', t) AS c"]
    columns += [
        f"strptime('{text}', '{form}') AS d{number}" for number, (form, text) in enumerate(READ.items())
    ]
    query = f"SELECT {', '.join(columns)} FROM times"
    with closing(Session({"execution.runtime-mode": mode, "bounded.backend": "duckdb"})) as session:
        session.register("times", times)
        found = session.execute(query).final_rows(PATIENCE_S).to_pylist()
    with duckdb.connect() as connection:
        connection.register("times", times)
        # letters of C that DuckDB has not; nor does it take an empty format
        theirs = query.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S").replace("(t, '')", "(t, '%%')[:0]")
        expected = connection.execute(theirs).fetchall()
    assert sorted((tuple(row.values()) for row in found), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("call", ["strftime(t, '%U')", "strftime(t, '%')", "strftime(t, CAST(t AS STRING))"])
def test_formats_there_are_not(call: str) -> None:
    with closing(Session({"bounded.backend": "duckdb"})) as session:
        session.register("times", pa.table({"t": pa.array(TIMES, pa.timestamp("us"))}))
        with pytest.raises(PenstockError) as refused:
            session.execute(f"SELECT {call} FROM times")
    assert refused.value.code == "SQL-1103" and refused.value.span is not None and refused.value.hint
