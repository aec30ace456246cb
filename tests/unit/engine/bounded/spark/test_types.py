"""Every type of Spark as a column of a table: read, written back where Spark stores it, or refused for
itself alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.types import Foreign
from penstock.client.connection import Connection
from penstock.client.dbapi_errors import Error
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.sessions import SESSIONS
from penstock.engine.bounded.spark.tables import type_here

NOON, DAY = dt.datetime(2026, 3, 29, 12, 0, 0, 123456), dt.timedelta(days=1)
LTZ = "TIMESTAMP_LTZ(6)"
INSTANT = NOON.replace(tzinfo=dt.UTC)
KINDS: dict[str, tuple[str, str, str, Any]] = {
    # column: Spark's type, the type here, a value as Spark writes it, as it is read here
    "c_by": ("TINYINT", "TINYINT", "-7Y", -7),
    "c_sh": ("SMALLINT", "SMALLINT", "7S", 7),
    "c_nt": ("INT", "INT", "7", 7),
    "c_lo": ("BIGINT", "BIGINT", "7", 7),
    "c_fl": ("FLOAT", "FLOAT", "0.5F", 0.5),
    "c_do": ("DOUBLE", "DOUBLE", "0.1D", 0.1),
    "c_de": ("DECIMAL(38, 9)", "DECIMAL(38, 9)", "1.5BD", Decimal("1.500000000")),
    "c_bo": ("BOOLEAN", "BOOLEAN", "true", True),
    "c_bi": ("BINARY", "BINARY", "X'00FF'", b"\x00\xff"),
    "c_st": ("STRING", "STRING", "'é'", "é"),
    "c_ch": ("CHAR(3)", "STRING", "'ab'", "ab "),
    "c_va": ("VARCHAR(3)", "STRING", "'ab'", "ab"),
    "c_co": ("STRING COLLATE UTF8_LCASE", "STRING", "'Ab'", "Ab"),
    "c_da": ("DATE", "DATE", "date'1582-10-04'", dt.date(1582, 10, 4)),
    "c_ti": ("TIME", "TIME", "time'12:00:00.123456'", NOON.time()),
    "c_ts": ("TIMESTAMP", LTZ, f"timestamp'{NOON}'", INSTANT),
    "c_tn": ("TIMESTAMP_NTZ", "TIMESTAMP(6)", f"timestamp_ntz'{NOON}'", NOON),
    "c_dy": ("INTERVAL DAY TO SECOND", "INTERVAL DAY TO SECOND", "interval '1 00:00:00' day to second", DAY),
    "c_ym": ("INTERVAL YEAR TO MONTH", "INTERVAL YEAR TO MONTH", "interval '-1-2' year to month", -14),
    "c_vo": ("VOID", "NULL", "null", None),
    "c_at": ("ARRAY<TIMESTAMP>", f"ARRAY<{LTZ}>", f"array(timestamp'{NOON}')", [INSTANT]),
    "c_an": ("ARRAY<TIME>", "ARRAY<TIME>", "array(time'12:00:00.123456')", [NOON.time()]),
    "c_ad": (
        "ARRAY<INTERVAL DAY TO SECOND>",
        "ARRAY<INTERVAL DAY TO SECOND>",
        "array(interval '1 00:00:00' day to second)",
        [DAY],
    ),
    "c_am": (
        "ARRAY<INTERVAL YEAR TO MONTH>",
        "ARRAY<INTERVAL YEAR TO MONTH>",
        "array(interval '0-3' year to month, null)",
        [3, None],
    ),
    "c_rt": (
        "STRUCT<a: TIMESTAMP, `b c`: TIME>",
        f"ROW<a {LTZ}, b c TIME>",
        f"struct(timestamp'{NOON}', null)",
        {"a": INSTANT, "b c": None},
    ),
    "c_mt": (
        "MAP<STRING, TIMESTAMP>",
        f"MAP<STRING, {LTZ}>",
        f"map('k', timestamp'{NOON}')",
        [("k", INSTANT)],
    ),
    "c_mm": (
        "MAP<STRING, INTERVAL YEAR TO MONTH>",
        "MAP<STRING, INTERVAL YEAR TO MONTH>",
        "map('k', interval '0-3' year to month)",
        [("k", 3)],
    ),
}
ONLY_READ: dict[str, tuple[str, str, str, Any]] = {
    # narrower in Spark than here, which Spark does not cut a value for
    "c_ta": ("TIME(3)", "TIME", "cast('12:00:00.123' as TIME(3))", dt.time(12, 0, 0, 123000)),
    "c_di": ("INTERVAL DAY", "INTERVAL DAY TO SECOND", "interval '1' day", DAY),
    "c_hi": ("INTERVAL HOUR TO SECOND", "INTERVAL DAY TO SECOND", "interval '24:00:00' hour to second", DAY),
    "c_yi": ("INTERVAL YEAR", "INTERVAL YEAR TO MONTH", "interval '2' year", 24),
    "c_mi": ("INTERVAL MONTH", "INTERVAL YEAR TO MONTH", "interval '2' month", 2),
    "c_vr": ("VARIANT", "STRING", """parse_json('{"a":1}')""", '{"a":1}'),
    "c_av": ("ARRAY<VARIANT>", "ARRAY<STRING>", "array(parse_json('1'), null)", ["1", None]),
    "c_rc": ("STRUCT<a: STRING COLLATE UTF8_LCASE>", "ROW<a STRING>", "struct('Ab')", {"a": "Ab"}),
}
FOREIGN = {"c_gm": "GEOMETRY(4326)", "c_gg": "GEOGRAPHY(4326)", "c_ag": "ARRAY<GEOMETRY(4326)>"}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    session = SESSIONS.new("UTC")
    session.sql(f"CREATE DATABASE kinds LOCATION '{tmp_path_factory.mktemp('kinds')}'")
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in {**KINDS, **ONLY_READ}.items())
    session.sql(
        f"CREATE TABLE kinds.every ({columns}, {', '.join(f'{name} {kind}' for name, kind in FOREIGN.items())}) USING parquet"
    )
    values = ", ".join(value for _, _, value, _ in {**KINDS, **ONLY_READ}.values())
    session.sql(f"INSERT INTO kinds.every SELECT {values}{', null' * len(FOREIGN)}")
    session.sql(
        f"CREATE TABLE kinds.back ({', '.join(f'{name} {kind}' for name, (kind, *_) in KINDS.items())}, c_gm GEOMETRY(4326)) USING parquet"
    )
    session.sql("CREATE VIEW kinds.odd AS SELECT id, make_interval(1) AS i FROM range(2)")
    yield session
    session.sql("DROP DATABASE kinds CASCADE")


@pytest.fixture
def conn() -> Iterator[Connection]:
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as made:
        made.execute("CREATE CATALOG lake WITH ('type' = 'spark')")
        made.execute("USE lake.kinds")
        yield made


def rows(conn: Connection, sql: str) -> list[tuple[Any, ...]]:
    return conn.execute(sql).fetchall()


def told(conn: Connection, sql: str) -> str:
    with pytest.raises(Error) as caught:
        conn.execute(sql).fetchall()
    return str(caught.value)


def test_no_type_of_pyspark_is_forgotten() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    made = {
        "ArrayType": (types.LongType(),),
        "MapType": (types.LongType(), types.LongType()),
        "CharType": (1,),
        "VarcharType": (1,),
    }
    made |= {"GeometryType": (4326,), "GeographyType": (4326,)}
    bases = {base for kind in vars(types).values() if isinstance(kind, type) for base in kind.__mro__[1:]} - {
        types.LongType
    }
    kinds = {
        name: kind
        for name, kind in vars(types).items()
        if isinstance(kind, type) and issubclass(kind, types.DataType) and kind not in bases
    }
    kinds["LongType"], kinds["StringType"] = types.LongType, types.StringType
    del kinds["StructField"]
    foreign = [
        name for name, kind in kinds.items() if isinstance(type_here(kind(*made.get(name, ()))), Foreign)
    ]
    assert (
        sorted(foreign) == ["CalendarIntervalType", "GeographyType", "GeometryType", "UserDefinedType"]
        and len(kinds) > 20
    )


@pytest.mark.spark
def test_each_type_has_a_like_here_or_its_own_name(conn: Connection, spark: Any) -> None:
    wanted = {name: kind for name, (_, kind, _, _) in {**KINDS, **ONLY_READ}.items()} | FOREIGN
    assert {row[0]: row[1] for row in rows(conn, "DESCRIBE every")} == wanted


@pytest.mark.spark
def test_each_value_is_read_as_it_is_and_the_same_when_written_back(conn: Connection, spark: Any) -> None:
    read = ", ".join([*KINDS, *ONLY_READ])
    (row,) = rows(conn, f"SELECT {read} FROM every")
    wanted = {name: value for name, (*_, value) in {**KINDS, **ONLY_READ}.items()}
    assert dict(zip(wanted, row, strict=True)) == wanted
    names = ", ".join(KINDS)
    conn.execute(f"INSERT INTO back ({names}) SELECT {names} FROM every")
    texts = ", ".join(f"CAST({name} AS STRING)" for name in KINDS)
    assert (
        spark.sql(f"SELECT {texts} FROM kinds.back").collect()
        == spark.sql(f"SELECT {texts} FROM kinds.every").collect()
    )
    assert rows(conn, f"SELECT {names} FROM back") == [row[: len(KINDS)]]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT c_gm FROM every",
        "SELECT * FROM every",
        "SELECT c_nt FROM every WHERE c_ag IS NULL",
        "SELECT every.* FROM every",
    ],
)
@pytest.mark.spark
def test_a_column_without_a_like_is_refused_where_it_is_read(
    conn: Connection, spark: Any, query: str
) -> None:
    message = told(conn, query)
    assert "SQL-1207" in message and "GEOMETRY(4326)" in message and "leave it out" in message


@pytest.mark.spark
def test_the_other_columns_of_its_table_are_usable(conn: Connection, spark: Any) -> None:
    assert (
        rows(conn, "SELECT COUNT(*) FROM every")
        == rows(conn, "SELECT COUNT(*) FROM odd WHERE id = 0")
        == [(1,)]
    )
    assert rows(conn, "SELECT o.id, e.c_ts FROM odd AS o JOIN every AS e ON o.id + 6 = e.c_nt") == [
        (1, INSTANT)
    ]
    assert "INTERVAL" in told(conn, "SELECT i FROM odd")


@pytest.mark.spark
def test_a_table_declared_here(conn: Connection, spark: Any) -> None:
    place = "default_catalog.default_database.one"
    conn.execute(
        f"CREATE TABLE {place} (c_ts TIMESTAMP_LTZ, c_at ARRAY<TIMESTAMP_LTZ>, c_gm BYTES) WITH ('connector'='spark', 'table-name'='kinds.every')"
    )
    assert rows(conn, f"SELECT c_ts, c_at FROM {place}") == [(INSTANT, [INSTANT])]
    assert "DAT-4706" in told(conn, f"SELECT c_gm FROM {place}")


@pytest.mark.spark
def test_a_table_with_a_time_is_explained_and_spark_alone_drops_it(conn: Connection, spark: Any) -> None:
    spark.sql("CREATE TABLE kinds.timed (t TIMESTAMP, r STRUCT<t: TIMESTAMP>) USING parquet")
    assert "t_0" in str(rows(conn, "EXPLAIN SELECT t, r FROM timed"))
    assert "SQL-1358" in told(conn, "DROP TABLE timed")


@pytest.mark.spark
def test_a_collation_of_spark_does_not_reach_our_comparisons(conn: Connection, spark: Any) -> None:
    assert rows(conn, "SELECT COUNT(*) FROM every WHERE c_co = 'AB'") == [(0,)]
    # as Spark's own rule says
    assert spark.sql("SELECT COUNT(*) FROM kinds.every WHERE c_co = 'AB'").collect()[0][0] == 1
