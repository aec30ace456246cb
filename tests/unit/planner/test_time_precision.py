"""CAST to TIMESTAMP(p), TIMESTAMP_LTZ(p) and TIME(p) cuts the finer digits off, alike on every runtime."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, time
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
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


MOMENT, EARLY = datetime(2026, 1, 1, 0, 0, 0, 142857), datetime(1969, 12, 31, 23, 59, 59, 999999)
INNER = pa.struct([("z", pa.list_(pa.timestamp("us", "UTC")))])
NESTED = pa.table(
    {
        "i": range(4),
        "a": pa.array([[MOMENT, None, EARLY], None, [], [None]], pa.list_(pa.timestamp("us"))),
        "r": pa.array(
            [
                {"n": 1, "t": time(1, 2, 3, 456789), "q": {"z": [MOMENT, EARLY]}},
                None,
                {"n": None, "t": None, "q": None},
                {"n": 2, "t": time(23, 59, 59, 999999), "q": {"z": None}},
            ],
            pa.struct([("n", pa.int32()), ("t", pa.time64("us")), ("q", INNER)]),
        ),
        "m": pa.array(
            [[(MOMENT, EARLY)], None, [], [(EARLY, None)]], pa.map_(pa.timestamp("us"), pa.timestamp("us"))
        ),
    }
)
ROW = "ROW<n INT, t TIME(0), q ROW<z ARRAY<TIMESTAMP_LTZ(1)>>>"
CUTS = {
    "CAST(a AS ARRAY<TIMESTAMP(3)>)": [
        "[2026-01-01 00:00:00.142, null, 1969-12-31 23:59:59.999]",
        None,
        "[]",
        "[null]",
    ],
    f"CAST(r AS {ROW})": [
        "{1, 01:02:03, {[2026-01-01 00:00:00.1, 1969-12-31 23:59:59.9]}}",
        None,
        "{null, null, null}",
        "{2, 23:59:59, {null}}",
    ],
    "TRY_CAST(m AS MAP<TIMESTAMP(0), TIMESTAMP(2)>)": [
        "{2026-01-01 00:00:00 -> 1969-12-31 23:59:59.99}",
        None,
        "{}",
        "{1969-12-31 23:59:59 -> null}",
    ],
    # within functions of its own and beside columns
    "transform(a, x -> transform(array(x, element_at(a, -1)), y -> CAST(array(x, y) AS ARRAY<TIMESTAMP(0)>)))[1]": [
        "[[2026-01-01 00:00:00, 2026-01-01 00:00:00], [2026-01-01 00:00:00, 1969-12-31 23:59:59]]",
        None,
        None,
        "[[null, null], [null, null]]",
    ],
}


@pytest.mark.parametrize(
    "runtime", ["ours", "duckdb", pytest.param("spark", marks=pytest.mark.spark)], ids=list(RUNTIMES)
)
def test_times_inside_nested_values_are_cut(runtime: str) -> None:
    if runtime == "spark":
        try:
            find_java()
        except PenstockError as error:
            pytest.skip(error.message)
    items = ", ".join(f"CAST({text} AS STRING) AS c{i}" for i, text in enumerate(CUTS))
    with closing(Session(RUNTIMES[runtime])) as session:
        session.register("nested", NESTED)
        query = f"SELECT i, {items} FROM nested"
        found = sorted(session.execute(query).final_rows(PATIENCE_S).to_pylist(), key=lambda row: row["i"])
    for i, (text, expected) in enumerate(CUTS.items()):
        assert [row[f"c{i}"] for row in found] == expected, text


@pytest.mark.parametrize("runtime", ["ours", "duckdb"])
def test_columns_of_a_table_take_no_finer_digits(runtime: str, tmp_path: Path) -> None:
    declared = f"i INT, a TIMESTAMP(3), b TIMESTAMP_LTZ(0), c TIME(0), d TIME, e ARRAY<TIMESTAMP(1)>, r {ROW}"
    given = pa.table({"i": [1], "ts": pa.array([MOMENT]), "tm": pa.array([time(1, 2, 3, 456789)])})
    rest = "CAST(NULL AS BIGINT), TIME '01:02:03.9', NULL"
    moment = f"TIMESTAMP '{MOMENT}'"
    with closing(Session(RUNTIMES[runtime])) as session:
        session.register("given", given)
        session.execute(
            f"CREATE TABLE taken ({declared}, p TIMESTAMP(0)) PARTITIONED BY (p) WITH "
            f"('connector' = 'filesystem', 'path' = '{tmp_path / 'taken'}', 'format' = 'parquet')"
        )
        shown = str(session.execute("SHOW CREATE TABLE taken").final_rows(PATIENCE_S).to_pylist())
        assert "TIME(0)" in shown and "`d` TIME," in shown
        for statement in (
            f"INSERT INTO taken SELECT i, ts, ts, tm, tm, array(ts), ROW({rest}), ts FROM given",
            f"INSERT INTO taken SELECT i, ts, ts, tm, tm, array(ts), ROW({rest}), ts FROM given WHERE i > 1",
            f"INSERT INTO taken VALUES (1, {moment}, {moment}, TIME '01:02:03.456789', "
            f"TIME '01:02:03.456789', ARRAY[{moment}], ROW({rest}), {moment})",
        ):
            session.execute(statement).final_rows(PATIENCE_S)
        rows = session.execute("SELECT CAST(ROW(a, b, c, d, e, r, p) AS STRING) AS s FROM taken").final_rows(
            PATIENCE_S
        )
    assert {row["s"] for row in rows.to_pylist()} == {
        "{2026-01-01 00:00:00.142, 2026-01-01 00:00:00, 01:02:03, 01:02:03.456789, [2026-01-01 00:00:00.1], "
        "{null, 01:02:03, null}, 2026-01-01 00:00:00}"
    }


def test_the_table_api_and_computed_columns_cut(tmp_path: Path) -> None:
    path = tmp_path / "stamps"
    with closing(penstock.connect(settings={"execution.runtime-mode": "streaming"})) as connection:
        connection.register("nested", NESTED)
        cursor = connection.cursor()
        cursor.execute(
            f"CREATE TABLE stamps (t TIME(0), x ARRAY<TIMESTAMP(3)>) WITH "
            f"('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')"
        )
        cursor.execute(
            f"CREATE TABLE computed (t TIME, u AS CAST(t AS TIME(0)), v AS CAST(ARRAY[t] AS ARRAY<TIME(1)>)) WITH "
            f"('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')"
        )
        first = connection.table("nested").where("i = 0")
        cast = first.select(
            x=penstock.col("r.t").cast("TIME(1)"), y=penstock.col("a").cast("ARRAY<TIMESTAMP(0)>")
        )
        assert "AS TIME(1))" in cast.to_sql()
        assert cast.execute().fetchall() == [
            (time(1, 2, 3, 400000), [MOMENT.replace(microsecond=0), None, EARLY.replace(microsecond=0)])
        ]
        first.select("r.t", "a").insert_into("stamps")
        assert cursor.execute("SELECT t, CAST(x AS STRING) FROM stamps").fetchall() == [
            (time(1, 2, 3), "[2026-01-01 00:00:00.142, null, 1969-12-31 23:59:59.999]")
        ]
        cursor.executescript(
            "DROP TABLE stamps; CREATE TEMPORARY VIEW given AS SELECT TIME '23:59:59.987654' AS t"
        )
        cursor.execute("INSERT INTO computed SELECT t FROM given")
        assert cursor.execute("SELECT u, v FROM computed WHERE t > TIME '02:00:00'").fetchall() == [
            (time(23, 59, 59), [time(23, 59, 59, 900000)])
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
