"""Tables of databases as bounded tables: every type, what is left out there, what is refused and in which
words.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

import penstock
from penstock.client.connection import Connection
from tests.streaming.databases.places import SECRET, Place

COLUMNS = (
    "id INT, b BOOLEAN, t SMALLINT, n BIGINT, f DOUBLE, d DECIMAL(12, 3), s STRING, y BYTES, day DATE, moment TIMESTAMP(6), z TIMESTAMP_LTZ(6), "
    "PRIMARY KEY (id) NOT ENFORCED"
)
_THEIRS = {
    "sqlite": "id INTEGER PRIMARY KEY, b INT, t INT, n INT, f REAL, d TEXT, s TEXT, y BLOB, day TEXT, moment TEXT, z TEXT",
    "duckdb": "id INT PRIMARY KEY, b BOOLEAN, t SMALLINT, n BIGINT, f DOUBLE, d DECIMAL(12, 3), s VARCHAR, y BLOB, "
    "day DATE, moment TIMESTAMP, z TIMESTAMPTZ",
    "postgres": "id INT PRIMARY KEY, b BOOLEAN, t SMALLINT, n BIGINT, f FLOAT8, d NUMERIC(12, 3), s TEXT, y BYTEA, "
    "day DATE, moment TIMESTAMP, z TIMESTAMPTZ",
}
_BYTES = {"sqlite": "x'00ff'", "duckdb": "'\\x00\\xFF'::BLOB", "postgres": "'\\x00ff'::bytea"}
FULL = (
    7,
    True,
    -3,
    2**40,
    1.5,
    Decimal("12.345"),
    "ä 'quoted' \"too\"",
    b"\x00\xff",
    dt.date(2024, 2, 29),
    dt.datetime(2024, 2, 29, 12, 0, 0, 123456),
    dt.datetime(1969, 12, 31, 23, 59, 59, 5, tzinfo=dt.UTC),
)


def opened(**settings: str) -> Connection:
    return penstock.connect(settings={"bounded.backend": "duckdb", **settings})


def filled(place: Place) -> None:
    truth = "1" if place.kind == "sqlite" else "TRUE"
    row = (
        f"7, {truth}, -3, {2**40}, 1.5, '12.345', 'ä ''quoted'' \"too\"', {_BYTES[place.kind]}, '2024-02-29'"
    )
    times = "'2024-02-29 12:00:00.123456', '1969-12-31 23:59:59.000005+00:00'"
    place.run(
        f"CREATE TABLE facts ({_THEIRS[place.kind]})",
        f"INSERT INTO facts VALUES ({row}, {times})",
        f"INSERT INTO facts VALUES (8{', NULL' * 10})",
    )


@pytest.mark.parametrize("mode", ["automatic", "streaming"])
def test_every_type_is_read_as_it_is(place: Place, mode: str) -> None:
    filled(place)
    with opened(**{"execution.runtime-mode": mode}) as made:
        made.execute(f"CREATE TABLE facts ({COLUMNS}) {place.options('facts')}")
        rows = made.execute("SELECT * FROM facts ORDER BY id").fetchall()
        assert [tuple(row) for row in rows] == [FULL, (8, *[None] * 10)]
        assert made.execute("SELECT COUNT(*) FROM facts").fetchall() == [(2,)]


def test_columns_and_rows_are_left_out_there(place: Place) -> None:
    filled(place)
    with opened() as made:
        made.execute(f"CREATE TABLE facts ({COLUMNS}) {place.options('facts')}")
        told = "\n".join(
            row[0]
            for row in made.execute(
                "EXPLAIN SELECT s FROM facts WHERE id >= 7 AND s IS NOT NULL AND f < 2"
            ).fetchall()
        )
        sent = told[told.index("on copy:") :]
        assert '"id" >= 7' in sent
        assert '"s" IS NOT NULL' in sent
        assert '"f" <' not in sent, "NaN is not the same everywhere"
        assert '"day"' not in sent
        assert made.execute("SELECT s FROM facts WHERE id >= 7 AND s IS NOT NULL AND f < 2").fetchall() == [
            (FULL[6],)
        ]


def test_it_is_joined_and_aggregated_on_a_backend(place: Place) -> None:
    place.run(
        "CREATE TABLE dim (k INT, name VARCHAR(9))",
        "INSERT INTO dim VALUES (1, 'one'), (2, 'two'), (2, 'zwei')",
    )
    with opened() as made:
        made.execute(f"CREATE TABLE dim (k INT, name STRING) {place.options('dim')}")
        found = made.execute(
            "SELECT k, COUNT(*), MAX(name) FROM dim WHERE k > 0 GROUP BY k ORDER BY k"
        ).fetchall()
        assert found == [(1, 1, "one"), (2, 2, "zwei")]
        made.execute(
            "CREATE TABLE s (k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3', 'fields.k.kind' = 'sequence', 'fields.k.start' = '1')"
        )
        assert sorted(
            made.execute("SELECT s.k, d.name FROM s LEFT JOIN dim AS d ON s.k = d.k").fetchall(), key=str
        ) == [
            (1, "one"),
            (2, "two"),
            (2, "zwei"),
            (3, None),
        ]


@pytest.mark.parametrize(
    ("columns", "table", "code", "hint"),
    [
        ("id INT", "fact", "DAT-4702", "facts"),
        ("idd INT", "facts", "DAT-4703", "id"),
        ("n INT", "facts", "DAT-4706", "BIGINT"),
        ("s INT", "facts", "DAT-4706", "STRING"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(
    place: Place, columns: str, table: str, code: str, hint: str
) -> None:
    filled(place)
    if place.kind == "sqlite" and code == "DAT-4706":
        code, hint = "DAT-4704", "STRING"
    with opened() as made:
        made.execute(f"CREATE TABLE t ({columns}) {place.options(table)}")
        with pytest.raises(penstock.Error) as caught:
            made.execute("SELECT * FROM t").fetchall()
    assert code in str(caught.value)
    assert hint in str(caught.value)


def test_a_database_that_is_not_there(place: Place) -> None:
    place.url = "postgresql://nobody:" + SECRET + "@127.0.0.1:1/none"
    place.path += ".other"
    with opened() as made:
        made.execute(f"CREATE TABLE t (id INT) {place.options('facts')}")
        with pytest.raises(penstock.Error, match="DAT-4701") as caught:
            made.execute("SELECT * FROM t").fetchall()
        shown = str(made.execute("SHOW CREATE TABLE t").fetchall())
    assert SECRET not in str(caught.value) + shown


def test_passwords_are_shown_nowhere(tmp_path: object) -> None:
    place = Place("postgres", tmp_path)  # type: ignore[arg-type]
    place.run("CREATE TABLE facts (id INT)")
    with opened() as made:
        made.execute(
            f"CREATE TABLE t (id INT) {place.options('nothing', username='postgres', password=SECRET)}"
        )
        told = [
            str(made.execute(text).fetchall())
            for text in ("SHOW CREATE TABLE t", "DESCRIBE EXTENDED t", "SHOW TABLES")
        ]
        for text in ("SELECT * FROM t", "EXPLAIN SELECT * FROM t"):
            with pytest.raises(penstock.Error) as caught:
                made.execute(text).fetchall()
            told.append(str(caught.value))
    assert all(SECRET not in text for text in told)
