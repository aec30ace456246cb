"""Stock clients against a server: psql, psycopg, asyncpg, SQLAlchemy, pandas, polars, and recorded queries of
tools.
"""

import asyncio
import io
import shutil
import subprocess
from datetime import date
from decimal import Decimal

import asyncpg
import pandas
import polars
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.types import TypeInfo

from tests.unit.client.server.postgres.recorded_queries import RECORDED

ROWS = "(VALUES (1, 'a'), (2, 'b'), (3, CAST(NULL AS STRING))) AS x (k, name)"
DECLARED = [
    "CREATE TABLE t (k BIGINT NOT NULL, name STRING, d DECIMAL(10, 2), a ARRAY<INT>, ts TIMESTAMP(3), "
    "PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'datagen', 'number-of-rows' = '1')",
    f"CREATE VIEW v AS SELECT * FROM {ROWS}",
]


@pytest.fixture
def connection(address):
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in DECLARED:
            connection.execute(statement)
        yield connection


def psql(server, *commands, setup=DECLARED):
    if (program := shutil.which("psql")) is None:
        pytest.skip("psql is not installed")
    to = f"host=127.0.0.1 port={server.port} user=me dbname=me"
    arguments = [part for command in (*setup, *commands) for part in ("-c", command)]
    done = subprocess.run([program, "-X", to, *arguments], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_psql_describes_what_there_is(server):
    shown = psql(
        server, r"\d", r"\d t", r"\d+ v", r"\dt", r"\dv", r"\dn", r"\l", r"\df", r"\du", r"\d+ t", r"\di"
    )
    assert "ERROR" not in shown
    for line in (
        "default_database | t    | table | me",
        "default_database | v    | view  | me",
        " d      | numeric(10,2)",
        " a      | integer[]",
        " ts     | timestamp(3) without time zone",
        '"t_pkey" PRIMARY KEY, btree (k)',
        "View definition:",
        "default_catalog | me    | UTF8",
        "List of functions",
    ):
        assert line in shown, line


def test_psql_reads_rows_errors_and_copies(server):
    shown = psql(
        server,
        "SELECT * FROM v ORDER BY k",
        "SELECT nothing FROM v",
        "COPY (SELECT * FROM v ORDER BY k) TO STDOUT CSV HEADER",
    )
    assert " 1 | a\n 2 | b\n 3 | \n(3 rows)" in shown
    assert "LINE 1: SELECT nothing FROM v\n               ^" in shown and "[SQL-1042]" in shown
    assert "k,name\n1,a\n2,b\n3,\n" in shown


def test_psql_reads_an_endless_result_by_fetch_count(server):
    generated = "CREATE TABLE g (k BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '12')"
    script = "\\set FETCH_COUNT 5\nSELECT k IS NULL AS n FROM g;\n"
    program = shutil.which("psql")
    if program is None:
        pytest.skip("psql is not installed")
    to = f"host=127.0.0.1 port={server.port} user=me dbname=me"
    done = subprocess.run(
        [program, "-X", "-t", "-A", to, "-c", generated, "-f", "-"],
        input=script, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["CREATE", "TABLE", *["f"] * 12]


def test_psycopg_sends_values_and_reads_them(connection):
    row = connection.execute(
        "SELECT %s + 1, %s, CAST(%s AS DATE), name FROM v WHERE k = %s", (1, "x", date(2024, 1, 1), 2)
    ).fetchone()
    assert row == (2, "x", date(2024, 1, 1), "b")
    cursor = connection.cursor(binary=True)
    assert cursor.execute("SELECT 1.50, ARRAY(1, 2), X'00FF'").fetchone() == (
        Decimal("1.50"),
        [1, 2],
        b"\0\xff",
    )
    names = [
        connection.execute("SELECT name FROM v WHERE k = %s", (k,), prepare=True).fetchone()
        for k in (1, 2, 3)
    ]
    assert names == [("a",), ("b",), (None,)]


def test_tags_of_statements_that_change_rows(connection, tmp_path):
    connection.execute(
        f"CREATE TABLE f (k INT, name STRING) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/f', 'format' = 'csv')"
    )
    connection.execute("INSERT INTO f SELECT CAST(k AS INT), name FROM v")
    tags = [
        connection.execute(statement, values).statusmessage
        for statement, values in (
            ("UPDATE f SET name = 'x' WHERE k < 3", None),
            ("UPDATE f SET name = %s WHERE k = %s", ("y", 2)),
            ("MERGE INTO f USING v ON f.k = v.k + 1 WHEN NOT MATCHED BY SOURCE THEN UPDATE SET k = 9", None),
            ("DELETE FROM f WHERE name IS NULL", None),
            ("DELETE FROM f WHERE name IS NULL", None),
        )
    ]
    assert tags == ["UPDATE 2", "UPDATE 1", "MERGE 1", "DELETE 1", "DELETE 0"]
    assert sorted(connection.execute("SELECT k, name FROM f").fetchall()) == [(2, "y"), (9, "x")]


def test_psycopg_cursors_and_copies(connection):
    with connection.transaction(), connection.cursor("c") as cursor:
        cursor.execute("SELECT k FROM v ORDER BY k")
        assert (cursor.fetchmany(2), cursor.fetchall()) == ([(1,), (2,)], [(3,)])
    assert list(connection.cursor().stream("SELECT k FROM v ORDER BY k")) == [(1,), (2,), (3,)]
    with connection.cursor().copy("COPY (SELECT * FROM v ORDER BY k) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["int4", "text"])
        assert list(copy.rows()) == [(1, "a"), (2, "b"), (3, None)]
    assert TypeInfo.fetch(connection, "text").oid == 25


def test_psycopg_sees_transactions(address):
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert connection.info.transaction_status.name == "INTRANS"
        connection.commit()
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("SELECT nothing")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        assert connection.execute("SELECT 2").fetchone() == (2,)


async def asyncpg_session(port):
    connection = await asyncpg.connect(host="127.0.0.1", port=port, user="me", database="me")
    for statement in DECLARED:
        await connection.execute(statement)
    found = [await connection.fetchval("SELECT name FROM v WHERE k = $1", 2)]
    # int4[] is no type that it knows: it asks pg_catalog
    found.append(await connection.fetchval("SELECT ARRAY(1, 2)"))
    async with connection.transaction():
        cursor = await connection.cursor("SELECT k FROM v ORDER BY k")
        found.append([row["k"] for row in await cursor.fetch(2)])
    copied = io.BytesIO()
    found.append(await connection.copy_from_query("SELECT k FROM v ORDER BY k", output=copied, format="csv"))
    await connection.close()
    return [*found, copied.getvalue()]


def test_asyncpg(server):
    assert asyncio.run(asyncpg_session(server.port)) == ["b", [1, 2], [1, 2], "COPY 3", b"1\n2\n3\n"]


@pytest.fixture
def engine(server):
    engine = sa.create_engine(
        f"postgresql+psycopg://me@127.0.0.1:{server.port}/me", poolclass=sa.pool.StaticPool
    )
    with engine.connect() as connection:
        for statement in DECLARED:
            connection.execute(sa.text(statement))
        connection.commit()
    yield engine
    engine.dispose()


def test_sqlalchemy_inspects_and_queries(engine):
    inspector = sa.inspect(engine)
    assert (inspector.get_table_names(), inspector.get_view_names()) == (["t"], ["v"])
    columns = {
        column["name"]: (str(column["type"]), column["nullable"]) for column in inspector.get_columns("t")
    }
    assert columns == {
        "k": ("BIGINT", False),
        "name": ("TEXT", True),
        "d": ("NUMERIC(10, 2)", True),
        "a": ("ARRAY", True),
        "ts": ("TIMESTAMP", True),
    }
    assert inspector.get_pk_constraint("t")["constrained_columns"] == ["k"]
    assert inspector.get_foreign_keys("t") == inspector.get_indexes("t") == []
    view = sa.Table("v", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        assert connection.execute(sa.select(view.c.name).where(view.c.k == 2)).scalar() == "b"


def test_pandas_and_polars_read_frames(engine):
    sql = "SELECT * FROM v ORDER BY k"
    frame = pandas.read_sql(sql, engine)
    assert frame["k"].tolist() == [1, 2, 3] and frame["name"].tolist()[:2] == ["a", "b"]
    assert len(pandas.read_sql_table("v", engine)) == 3
    assert polars.read_database(sql, engine).rows() == [(1, "a"), (2, "b"), (3, None)]


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_queries_are_answered(connection, name):
    assert connection.execute(RECORDED[name]).description is not None


def test_recorded_queries_find_what_there_is(connection):
    def rows(name):
        return connection.execute(RECORDED[name]).fetchall()

    assert ("default_catalog", "default_database", "t", "TABLE", None, "") in rows("jdbc tables")
    assert rows("jdbc primary keys") == [("default_catalog", "default_database", "t", "k", 1, "t_pkey")]
    assert ("name", "text") in rows("grafana columns")
    assert ("t",) in rows("grafana tables")
    assert {row[0] for row in rows("dbeaver columns")} == {"t"}


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT 't'::regclass::oid = oid FROM pg_class WHERE relname = 't'", True),
        ("SELECT attrelid::regclass FROM pg_attribute WHERE attname = 'ts'", "t"),
        ("SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attname = 'd'", "numeric(10,2)"),
        ("SELECT count(*) FROM pg_class WHERE pg_table_is_visible(oid) AND relname = 'v'", 1),
        ("SELECT current_schema()", "default_database"),
        ("SELECT current_user", "me"),
        (
            "SELECT relname FROM pg_class WHERE relname OPERATOR(pg_catalog.~) '^(v)$' COLLATE pg_catalog.default",
            "v",
        ),
        (
            "SELECT is_nullable FROM information_schema.columns WHERE column_name = 'k' AND table_name = 't'",
            "NO",
        ),
    ],
)
def test_the_catalog(connection, sql, found):
    assert connection.execute(sql).fetchone() == (found,)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM pg_class, read_csv('/etc/passwd')",
        "SELECT * FROM pg_class, 'some.csv'",
        "SELECT pg_backend_pid(), getenv('HOME')",
        "SELECT * FROM pg_class, v",
    ],
)
def test_catalog_queries_reach_nothing_else(connection, sql):
    with pytest.raises(psycopg.Error) as error:
        connection.execute(sql)
    assert "CLI-6267" in str(error.value)


def test_the_catalog_follows_changes(connection):
    count = "SELECT count(*) FROM pg_class WHERE relname = 'later'"
    assert connection.execute(count).fetchone() == (0,)
    connection.execute("CREATE VIEW later AS SELECT 1 AS a")
    assert connection.execute(count).fetchone() == (1,)
