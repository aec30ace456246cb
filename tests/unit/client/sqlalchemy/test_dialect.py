"""The SQLAlchemy dialect: what a program declares, inserts, selects and inspects, and what pandas does."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pandas
import pytest

from tests.harness.connections import WAYS, url_of

sa = pytest.importorskip("sqlalchemy")

from penstock.client.sqlalchemy import ARRAY, INTERVAL, MAP, ROW, TIMESTAMP, TINYINT, YEAR_MONTH  # noqa: E402


@pytest.fixture(params=WAYS)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    server = url_of(request.param) or "penstock://"
    # no Spark: the values of a backend are proved elsewhere
    made = sa.create_engine(f"{server}/?table_directory={tmp_path}&set.bounded.backend=duckdb")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield made
    made.dispose()


VALUES: list[tuple[object, object]] = [
    (sa.Boolean(), True),
    (TINYINT(), 7),
    (sa.SmallInteger(), -7),
    (sa.Integer(), 7),
    (sa.BigInteger(), 2**40),
    (sa.REAL(), 1.5),
    (sa.Float(), 0.1),
    (sa.Numeric(10, 2), Decimal("1.25")),
    (sa.String(20), "it's % ? :x \\"),
    (sa.LargeBinary(), b"\0a"),
    (sa.Date(), dt.date(2026, 1, 2)),
    (sa.Time(), dt.time(1, 2, 3, 4)),
    (sa.DateTime(), dt.datetime(2026, 1, 2, 3, 4, 5, 6)),
    (sa.DateTime(timezone=True), dt.datetime(2026, 1, 2, tzinfo=dt.UTC)),
    (sa.Interval(), dt.timedelta(days=-1, seconds=90, microseconds=5)),
    (ARRAY(sa.Integer()), [1, None, 3]),
    (sa.ARRAY(sa.String(), dimensions=2), [["a"], ["b", "c"]]),
    (MAP(sa.String(), sa.Integer()), {"k": 1}),
    (ROW(("x", sa.Integer()), ("y z", sa.Date())), {"x": 1, "y z": dt.date(2026, 1, 2)}),
    (ARRAY(MAP(sa.String(), sa.Numeric(5, 2))), [{"k": Decimal("1.50")}]),
    (sa.JSON(), {"a": [1, None]}),
    (sa.Uuid(), uuid.UUID(int=7)),
    (sa.Enum("red", "green", name="colour"), "green"),
]


def test_values_of_every_type_come_back(engine: sa.Engine) -> None:
    """By one INSERT of one row, by one of many rows, and as literals."""
    columns = [sa.Column(f"c{number}", kind) for number, (kind, _) in enumerate(VALUES)]
    table = sa.Table("v", sa.MetaData(), sa.Column("id", sa.Integer), *columns)
    row = {f"c{number}": value for number, (_, value) in enumerate(VALUES)}
    nulls = dict.fromkeys(row)
    with engine.connect() as connection:
        table.create(connection)
        assert connection.execute(table.insert(), {"id": 1} | row).rowcount == 1
        many = [{"id": 2} | row, {"id": 3} | nulls, {"id": 4} | row]
        assert connection.execute(table.insert(), many).rowcount == 3
        rows = connection.execute(sa.select(table).order_by(table.c.id)).all()
        literals = sa.select(*(sa.cast(sa.literal(value, kind), kind) for kind, value in VALUES[:15]))
        text = str(literals.compile(engine, compile_kwargs={"literal_binds": True}))
        constants = connection.exec_driver_sql(text).one()
    assert [tuple(found[1:]) for found in rows] == [
        tuple(row.values()),
        tuple(row.values()),
        # JSON keeps None as the JSON value null, here as elsewhere
        tuple(nulls.values()),
        tuple(row.values()),
    ]
    assert tuple(constants) == tuple(value for _, value in VALUES[:15])


def test_rows_without_a_common_type_are_inserted_one_by_one(engine: sa.Engine) -> None:
    table = sa.Table("t", sa.MetaData(), sa.Column("a", sa.String))
    with engine.connect() as connection:
        table.create(connection)
        connection.execute(sa.text("INSERT INTO t VALUES (:a)"), [{"a": "1"}, {"a": "2"}])
        connection.execute(
            table.insert().values(a=sa.func.upper(sa.bindparam("v"))), [{"v": "x"}, {"v": None}]
        )
        connection.execute(table.insert().values([{"a": "m"}, {"a": "n"}]))
        assert connection.scalars(sa.select(table.c.a).order_by(table.c.a)).all() == [
            None,
            "1",
            "2",
            "X",
            "m",
            "n",
        ]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (sa.Integer(), "INTEGER"),
        (TINYINT(), "TINYINT"),
        (sa.Float(), "DOUBLE"),
        (sa.Float(24), "FLOAT"),
        (sa.REAL(), "FLOAT"),
        (sa.Double(), "DOUBLE"),
        (sa.Numeric(), "DECIMAL(38, 18)"),
        (sa.Numeric(8), "DECIMAL(8, 0)"),
        (sa.Text(), "STRING"),
        (sa.CHAR(3), "STRING"),
        (sa.LargeBinary(), "BYTES"),
        (sa.DateTime(), "TIMESTAMP(6)"),
        (TIMESTAMP(timezone=True, precision=3), "TIMESTAMP_LTZ(3)"),
        (sa.Interval(), "INTERVAL DAY TO SECOND"),
        (YEAR_MONTH(), "INTERVAL YEAR TO MONTH"),
        (sa.ARRAY(sa.Integer(), dimensions=2), "ARRAY<ARRAY<INTEGER>>"),
        (MAP(sa.String(), ROW(("a b", INTERVAL()))), "MAP<STRING, ROW<`a b` INTERVAL DAY TO SECOND>>"),
    ],
)
def test_types_compile(engine: sa.Engine, kind: object, text: str) -> None:
    assert kind.compile(engine.dialect) == text  # type: ignore[attr-defined]


def test_queries_compile_and_run(engine: sa.Engine) -> None:
    table = sa.Table(
        "order",
        sa.MetaData(),
        sa.Column("Group", sa.Integer, primary_key=True),
        sa.Column("next", sa.Integer, sa.Computed("`Group` + 1")),
        sa.Column("tags", ARRAY(sa.String)),
        sa.Column("facts", MAP(sa.String, sa.Integer)),
        sa.Column("place", ROW(("town", sa.String))),
    )
    group = table.c.Group
    with engine.connect() as connection:
        table.create(connection)
        rows = [
            {"Group": n, "tags": [f"t{n}"], "facts": {"n": n}, "place": {"town": f"x{n}"}} for n in range(5)
        ]
        connection.execute(table.insert(), rows)

        def scalars(query: sa.Select[tuple[object]]) -> list[object]:
            return list(connection.scalars(query))

        assert scalars(sa.select(group).order_by(group.desc()).limit(2).offset(1)) == [3, 2]
        assert scalars(sa.select(group).order_by(group).offset(3)) == [3, 4]
        assert scalars(sa.select(group).where(group.in_([1, 9]))) == [1]
        assert scalars(sa.select(group).where(group.in_([]))) == []
        assert len(scalars(sa.select(group).where(group.not_in([])))) == 5
        assert scalars(sa.select(table.c.next).where(table.c.tags[1] == "t2")) == [3]
        assert scalars(sa.select(table.c.place["town"]).where(table.c.facts["n"] == 4)) == ["x4"]
        assert scalars(sa.select(group).where(table.c.place["town"].ilike("X4"))) == [4]
        assert scalars(sa.select(group).where(table.c.place["town"].regexp_match("[x]4"))) == [4]
        assert scalars(sa.select(sa.func.count()).select_from(table)) == [5]
        assert scalars(sa.select(sa.literal(7) / 2)) == [3.5]
        with pytest.raises(KeyError, match="there is town"):
            table.c.place["city"]


def test_the_inspector_reads_the_catalog(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        for statement in (
            "CREATE DATABASE d2",
            "CREATE CATALOG c2 WITH ('type' = 'memory')",
            "CREATE TABLE d2.t (id INT, r ROW<`a b` ARRAY<INT>> NOT NULL, ts TIMESTAMP_LTZ(3),"
            " WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED)"
            " WITH ('connector' = 'datagen')",
            "CREATE VIEW d2.v AS SELECT id FROM d2.t",
            "CREATE TEMPORARY TABLE here (a INT) WITH ('connector' = 'datagen')",
        ):
            connection.exec_driver_sql(statement)
        found = sa.inspect(connection)
        assert found.default_schema_name == "default_database"
        assert found.get_schema_names() == ["default_database", "d2", "system", "c2.default_database"]
        assert (found.get_table_names("d2"), found.get_view_names("d2")) == (["t"], ["v"])
        assert (found.get_table_names(), found.get_temp_table_names()) == ([], ["here"])
        assert found.get_view_definition("v", "d2") == "SELECT id FROM d2.t"
        assert (
            found.has_table("T", schema="d2") and not found.has_table("t") and not found.has_table("t", "d9")
        )
        assert found.has_schema("d2") and not found.has_schema("d9")
        table = sa.Table("t", sa.MetaData(), autoload_with=connection, schema="default_catalog.d2")
        assert [(column.name, repr(column.type), column.nullable) for column in table.columns] == [
            ("id", "INTEGER()", False),
            ("r", "ROW(('a b', ARRAY(INTEGER())))", False),
            ("ts", "TIMESTAMP(timezone=True, precision=3)", True),
        ]
        assert [column.name for column in table.primary_key] == ["id"]
        assert found.get_foreign_keys("t", "d2") == found.get_indexes("t", "d2") == []
        with pytest.raises(sa.exc.NoSuchTableError, match=r"d2\.x"):
            found.get_columns("x", "d2")


@pytest.mark.parametrize("options", [{}, {"stream_results": True}, {"yield_per": 1000}])
def test_rows_of_an_endless_query_come_at_once(engine: sa.Engine, options: dict[str, object]) -> None:
    """A buffer of 1000 rows would be full after 50 s."""
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE g (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '20',"
            " 'fields.a.kind' = 'sequence', 'fields.a.start' = '1')"
        )
        with connection.execute(sa.text("SELECT a FROM g").execution_options(**options)) as result:
            rows = iter(result)
            assert [next(rows).a for _ in range(3)] == [1, 2, 3]


def test_pandas_writes_and_reads_a_frame_without_a_warning(engine: sa.Engine) -> None:
    frame = pandas.DataFrame({"a": range(2000), "b": [f"x{n}" for n in range(2000)], "c": [1.5, None] * 1000})
    assert frame.to_sql("frame", engine) == 2000
    assert frame.to_sql("frame", engine, if_exists="replace", index=False) == 2000
    assert frame.head(10).to_sql("frame", engine, if_exists="append", index=False, method="multi") == 10
    count = pandas.read_sql("SELECT count(*) AS n FROM frame", engine)
    assert count.n[0] == 2010
    read = pandas.read_sql_table("frame", engine).sort_values("a", kind="stable").drop_duplicates()
    pandas.testing.assert_frame_equal(read.reset_index(drop=True), frame, check_dtype=False)
    some = pandas.read_sql(
        sa.text("SELECT a FROM frame WHERE a >= :n ORDER BY a"), engine, params={"n": 1998}
    )
    assert list(some.a) == [1998, 1999]


LEFT_OUT: list[tuple[Callable[[], list[object]], str]] = [
    (lambda: [sa.Column("a", sa.Integer, unique=True)], "UNIQUE"),
    (lambda: [sa.Column("a", sa.Integer), sa.Index("i", "a", unique=True)], "UNIQUE"),
    (lambda: [sa.Column("a", sa.Integer), sa.CheckConstraint("a > 0")], "CHECK"),
    (lambda: [sa.Column("a", sa.Integer, sa.CheckConstraint("a > 0"))], "CHECK"),
    (lambda: [sa.Column("a", sa.Integer), sa.Column("b", sa.Integer, sa.ForeignKey("t.a"))], "FOREIGN KEY"),
]


@pytest.mark.parametrize(("parts", "kind"), LEFT_OUT)
def test_a_warning_says_what_is_not_enforced(
    engine: sa.Engine, parts: Callable[[], list[object]], kind: str
) -> None:
    table = sa.Table("t", sa.MetaData(), *parts())  # type: ignore[arg-type]
    with pytest.warns(sa.exc.SAWarning, match=f"does not enforce {kind} constraints: the one of table t"):
        table.create(engine)
    assert sa.inspect(engine).has_table("t")


def test_default_values_of_the_server_are_refused(engine: sa.Engine) -> None:
    table = sa.Table("t", sa.MetaData(), sa.Column("a", sa.Integer, server_default="1"))
    with pytest.raises(sa.exc.CompileError, match="no server_default"):
        table.create(engine)


def test_declarations_have_options(engine: sa.Engine) -> None:
    table = sa.Table(
        "clicks",
        sa.MetaData(),
        sa.Column("ts", TIMESTAMP(precision=3)),
        sa.Column("day", sa.String),
        penstock_with={"connector": "filesystem", "path": "it's", "format": "csv"},
        penstock_watermark="ts AS ts - INTERVAL '5' SECOND",
        penstock_partitioned_by="day",
    )
    with engine.connect() as connection:
        table.create(connection)
        (text,) = connection.exec_driver_sql("SHOW CREATE TABLE clicks").one()
    assert "WATERMARK FOR `ts` AS ts - INTERVAL '5' SECOND" in text
    assert "PARTITIONED BY (`day`)" in text and "'path' = 'it''s'" in text


def test_a_url_has_a_catalog_a_script_and_settings(tmp_path: Path) -> None:
    script = tmp_path / "tables.sql"
    script.write_text("CREATE VIEW v AS SELECT 1 AS a;\nCREATE VIEW w AS SELECT a + 1 AS b FROM v;\n")
    url = f"penstock:///{tmp_path / 'catalog'}?script={script}&set.table.local-time-zone=Europe/Rome"
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT b FROM w")) == 2
        zone = connection.exec_driver_sql("SET 'table.local-time-zone'").one()
        assert "Europe/Rome" in zone
        # nothing to commit, and nothing that is rolled back
        connection.commit()
        connection.rollback()
    assert engine.dialect.get_isolation_level_values(None) == ["AUTOCOMMIT"]
    with engine.connect() as connection:
        assert engine.dialect.do_ping(connection.connection.dbapi_connection)
        assert sa.inspect(connection).get_view_names() == ["v", "w"]
    engine.dispose()
    # a directory in the URL's path keeps the views, the script's too
    with sa.create_engine(f"penstock:///{tmp_path / 'catalog'}").connect() as connection:
        assert connection.scalar(sa.text("SELECT b FROM w")) == 2
        connection.engine.dispose()
    with pytest.raises(sa.exc.ArgumentError, match='did you mean "catalog"'):
        sa.create_engine("penstock:///?catalogue=x").connect()
    with pytest.raises(sa.exc.OperationalError, match="CLI-6241"):
        sa.create_engine("penstock://127.0.0.1:1/").connect()
    with pytest.raises(sa.exc.CompileError, match="table t names no connector: pass penstock_with="):
        sa.Table("t", sa.MetaData(), sa.Column("a", sa.Integer)).create(sa.create_engine("penstock://"))


def test_errors_are_sqlalchemys(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        with pytest.raises(sa.exc.ProgrammingError, match="SQL-1041"):
            connection.execute(sa.text("SELECT * FROM nowhere"))
        with pytest.raises(sa.exc.CompileError, match="row locks"):
            connection.execute(sa.select(sa.literal(1)).with_for_update())
        raw = connection.connection.dbapi_connection
        raw.close()
        with pytest.raises(sa.exc.InterfaceError) as raised:
            connection.execute(sa.text("SELECT 1"))
        assert raised.value.connection_invalidated


def test_sqlalchemy_is_loaded_by_its_dialect_only() -> None:
    code = "import sys, penstock.client.connection; sys.exit('sqlalchemy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
