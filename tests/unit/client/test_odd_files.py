"""The same odd files give the same rows whoever reads them: our runtime, DuckDB, Spark; and bad records go
where the table says.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pytest

import penstock

ODD_CSV = (
    "\ufeffid,text,number,share,flag,day,at,moment\n"
    "1,plain,7,0.5,true,2024-01-05,2024-01-05 10:00:00,2024-01-05 10:00:00\n"
    "2,,,,,,,\n"
    '3,"",8,1.25,FALSE,2024-1-5,2024-01-05T10:00:00.5,2024-01-05T10:00:00+02:00\n'
    '4,"a,""b"" c",+9, .5,yes,2024-01-05 23:59:59,2024-01-05 10:00,2024-01-05 10:00:00Z\n'
    "5,  spaces  ,010,1.005,0, 2024-01-05 ,2024-01-05,2024-01-05 10:00:00-0530\n"
    "\n"
    "6,é漢字😀,-0,999.99,n,0001-01-01,0001-01-01 00:00:00,2024-02-29 00:00:00\n"
    "7,NULL,2147483647,1e2,T,9999-12-31,2024-12-31 23:59:59.999999,2024-01-05 10:00:00.25Z\n"
)
COLUMNS = "id INT, text STRING, number INT, share DECIMAL(5, 2), flag BOOLEAN, day DATE, at TIMESTAMP(6), moment TIMESTAMP_LTZ(6)"
FOUR_O_CLOCK = datetime.datetime(2024, 1, 5, 10, tzinfo=datetime.UTC)
ODD_ROWS = [
    (
        1,
        "plain",
        7,
        Decimal("0.50"),
        True,
        datetime.date(2024, 1, 5),
        datetime.datetime(2024, 1, 5, 10),
        FOUR_O_CLOCK,
    ),
    (2, *[None] * 7),
    (
        3,
        "",
        8,
        Decimal("1.25"),
        False,
        datetime.date(2024, 1, 5),
        datetime.datetime(2024, 1, 5, 10, 0, 0, 500_000),
        FOUR_O_CLOCK.replace(hour=8),
    ),
    (
        4,
        'a,"b" c',
        9,
        Decimal("0.50"),
        True,
        datetime.date(2024, 1, 5),
        datetime.datetime(2024, 1, 5, 10),
        FOUR_O_CLOCK,
    ),
    (
        5,
        "  spaces  ",
        10,
        Decimal("1.01"),
        False,
        datetime.date(2024, 1, 5),
        datetime.datetime(2024, 1, 5),
        FOUR_O_CLOCK.replace(hour=15, minute=30),
    ),
    (
        6,
        "é漢字😀",
        0,
        Decimal("999.99"),
        False,
        datetime.date(1, 1, 1),
        datetime.datetime(1, 1, 1),
        datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC),
    ),
    (
        7,
        "NULL",
        2147483647,
        Decimal("100.00"),
        True,
        datetime.date(9999, 12, 31),
        datetime.datetime(2024, 12, 31, 23, 59, 59, 999_999),
        FOUR_O_CLOCK.replace(microsecond=250_000),
    ),
]
NULLS_CSV = 'id,text,number\n1,NA,1\n2,"NA",2\n3,"",NA\n4,,4\n5,na,5\n'
NULLS_ROWS = [(1, None, 1), (2, "NA", 2), (3, "", None), (4, None, 4), (5, "na", 5)]
BAD = {
    "csv": 'id,price,name\n1,2.5,a\nx,1,b\n3,4.0,"q\n4,oops,d\n5,6\n6,7,g,h\n7,8,i\n',
    "json": '{"id": 1, "price": 2.5, "name": "a"}\n{"id": "x"}\nnope\n[1]\nnull\n{"id": 7, "price": 8, "name": "i"}\n',
}
BAD_ROWS = [(1, 2.5, "a"), (7, 8.0, "i")]
ERRORS = {
    "csv": [
        (1, "id", "'x' is not a valid INT"),
        (2, None, "a quoted value does not end"),
        (3, "price", "'oops' is not a valid DOUBLE"),
        (4, None, "2 values where the file has 3 columns"),
        (5, None, "4 values where the file has 3 columns"),
    ],
    "json": [
        (1, "id", '"x" is not a valid INT'),
        (2, None, "not JSON: expecting value at character 1"),
        (3, None, "an array is where a line must contain one object"),
        (4, None, "null is where a line must contain one object"),
    ],
}
READERS = ["streaming", "duckdb", pytest.param("spark", marks=pytest.mark.spark)]


def connect(reader: str) -> penstock.Connection:
    mode = "streaming" if reader == "streaming" else "batch"
    return penstock.connect(
        settings={
            "execution.runtime-mode": mode,
            "bounded.backend": "spark" if reader == "spark" else "duckdb",
        }
    )


def declare(connection: penstock.Connection, path: Path, columns: str, **options: str) -> None:
    given = {"connector": "filesystem", "path": str(path), **options}
    words = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    connection.execute(f"CREATE TABLE t ({columns}) WITH ({words})")


@pytest.mark.parametrize("reader", READERS)
def test_odd_values_of_csv(reader: str, tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text(ODD_CSV, encoding="utf-8")
    (tmp_path / "nulls.csv").write_text(NULLS_CSV, encoding="utf-8")
    with connect(reader) as connection:
        declare(connection, tmp_path / "odd.csv", COLUMNS)
        assert sorted(connection.execute("SELECT * FROM t").fetchall()) == ODD_ROWS
        connection.execute("DROP TABLE t")
        declare(
            connection,
            tmp_path / "nulls.csv",
            "id INT, text STRING, number INT",
            **{"csv.null-literal": "NA"},
        )
        assert sorted(connection.execute("SELECT * FROM t").fetchall()) == NULLS_ROWS


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", list(BAD))
def test_bad_records_by_policy(reader: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / f"bad.{kind}").write_text(BAD[kind], encoding="utf-8")
    columns = "id INT, price DOUBLE, name STRING"
    with connect(reader) as connection:
        declare(connection, tmp_path / f"bad.{kind}", columns)
        with pytest.raises(penstock.DataError, match=r"row 2 .* is not a valid INT") as caught:
            connection.execute("SELECT * FROM t").fetchall()
        assert caught.value.code == "DAT-4201"
        connection.execute("ALTER TABLE t SET ('on-error' = 'skip')")
        assert sorted(connection.execute("SELECT * FROM t").fetchall()) == BAD_ROWS
        connection.execute("ALTER TABLE t SET ('on-error' = 'table')")
        assert sorted(connection.execute("SELECT * FROM t").fetchall()) == BAD_ROWS
        rows = connection.execute("SELECT `position`, `column`, error FROM t$errors").fetchall()
        assert sorted(rows) == ERRORS[kind]


def test_errors_are_forgotten_with_their_table(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(BAD["csv"], encoding="utf-8")
    with connect("streaming") as connection:
        for _ in range(2):
            declare(
                connection, tmp_path / "bad.csv", "id INT, price DOUBLE, name STRING", **{"on-error": "table"}
            )
            assert connection.execute("SELECT * FROM t$errors").fetchall() == []
            connection.execute("SELECT COUNT(*) AS n FROM t").fetchall()
            assert connection.execute("SELECT COUNT(*) AS n FROM t$errors").fetchall() == [(5,)]
            connection.execute("DROP TABLE t")


def test_a_line_of_null_does_not_end_the_process(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("null\n nullx\n{}\n", encoding="utf-8")
    with connect("streaming") as connection:
        declare(connection, tmp_path / "a.json", "id INT", **{"on-error": "skip"})
        assert connection.execute("SELECT * FROM t").fetchall() == [(None,)]


def test_a_date_python_has_no_object_for() -> None:
    with connect("streaming") as connection:
        cursor = connection.execute("SELECT DATE '9999-12-31' + INTERVAL '1' DAY AS d")
        with pytest.raises(penstock.DataError, match="years 1 to 9999"):
            cursor.fetchall()
        assert (
            connection.execute("SELECT DATE '9999-12-31' + INTERVAL '1' DAY AS d")
            .fetch_arrow_table()
            .num_rows
            == 1
        )
