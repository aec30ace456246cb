"""CAST to TIMESTAMP(p), TIMESTAMP_LTZ(p) and TIME(p) cuts the finer digits off, alike on every runtime."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.bounded.spark.java_runtime import find_java
from tests.harness.patience import PATIENCE_S

TEXTS = [
    None,
    "2026-01-01 00:00:00.142857",
    "1969-12-31 23:59:59.999999",
    "0001-01-01 00:00:00.000001",
    "9999-12-31 23:59:59.999999",
    # the hour that Berlin has twice
    "2024-10-27 02:30:15.123456",
]
RUNTIMES = {
    "ours": {"execution.runtime-mode": "streaming"},
    "duckdb": {"bounded.backend": "duckdb"},
    "spark": {"bounded.backend": "spark"},
}


def _cut(text: str, digits: int) -> str:
    """Return a time as its text has it with so many digits, without zeros at the end."""
    whole, fraction = text.split(".")
    kept = fraction[:digits].rstrip("0")
    return f"{whole}.{kept}" if kept else whole


@pytest.mark.parametrize(
    "runtime", ["ours", "duckdb", pytest.param("spark", marks=pytest.mark.spark)], ids=list(RUNTIMES)
)
def test_finer_digits_are_cut_off(runtime: str) -> None:
    if runtime == "spark":
        try:
            find_java()
        except PenstockError as error:
            pytest.skip(error.message)
    texts = pa.table({"i": range(len(TEXTS)), "s": TEXTS})
    items = [
        f"{column} AS {name}{p}"
        for p in range(7)
        for name, column in {
            "a": f"CAST(CAST(s AS TIMESTAMP({p})) AS STRING)",
            "b": f"CAST(CAST(s AS TIMESTAMP_LTZ({p})) AS STRING)",
            "c": f"CAST((s::TIMESTAMP)::TIMESTAMP({p}) AS STRING)",
            "d": f"CAST(TRY_CAST(substr(s, 12) AS TIME({p})) AS STRING)",
        }.items()
    ]
    settings = {**RUNTIMES[runtime], "table.local-time-zone": "Europe/Berlin"}
    with closing(Session(settings)) as session:
        session.register("texts", texts)
        found = session.execute(f"SELECT i, {', '.join(items)} FROM texts").final_rows(PATIENCE_S)
    rows = sorted((tuple(row.values()) for row in found.to_pylist()), key=lambda row: row[0])
    assert rows == [
        (
            number,
            *(None if text is None else _cut(text, p)[begin:] for p in range(7) for begin in (0, 0, 0, 11)),
        )
        for number, text in enumerate(TEXTS)
    ]


@pytest.mark.parametrize("value", ["a", "a + INTERVAL '1' SECOND", "DATE '2024-01-01'"])
def test_what_is_as_coarse_is_not_computed_anew(value: str) -> None:
    with closing(Session({"bounded.backend": "duckdb"})) as session:
        session.execute("CREATE TABLE t (a TIMESTAMP(3)) WITH ('connector' = 'datagen')")
        plan = session.execute(f"EXPLAIN SELECT CAST({value} AS TIMESTAMP(4)) FROM t").final_rows()
    assert str(plan.to_pylist()).upper().count("TIMESTAMPADD") == 0


@pytest.mark.parametrize("name", ["CURRENT_TIMESTAMP", "LOCALTIMESTAMP"])
def test_the_time_now_has_so_many_digits(name: str) -> None:
    query = f"SELECT length(CAST({name}(0) AS STRING)), {name}(2) <= {name}"
    with closing(Session({"bounded.backend": "duckdb"})) as session:
        assert [tuple(row.values()) for row in session.execute(query).final_rows(PATIENCE_S).to_pylist()] == [
            (19, True)
        ]
