"""Catalogs and databases: names of one to three parts mean one thing, wherever they are looked for from,
also after a restart.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import INT
from penstock.client.connection import Connection
from penstock.client.session import Session

COUNTING = "WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '%d')"


def opened(catalog: Path | None = None) -> Connection:
    return penstock.connect(settings={"execution.runtime-mode": "streaming"}, catalog=catalog)


def table(name: str, rows: int) -> str:
    return f"CREATE TABLE {name} (a INT) {COUNTING % (rows, rows)};"


def count(made: Connection, name: str) -> int:
    rows = made.execute(f"SELECT COUNT(*) FROM {name}").fetchall()
    return int(rows[0][0])


def listed(made: Connection, statement: str) -> list[str]:
    return [row[0] for row in made.execute(statement).fetchall()]


def told(made: Connection, statement: str) -> str:
    with pytest.raises(penstock.Error) as caught:
        made.execute(statement).fetchall()
    return caught.value.code


def test_names_are_looked_for_from_where_one_is() -> None:
    with opened() as made:
        made.executescript(
            f"CREATE DATABASE sales; CREATE CATALOG other WITH ('type' = 'memory'); {table('t', 1)} {table('sales.t', 2)}"
        )
        made.executescript(table("other.default_database.t", 3))
        assert [
            count(made, name)
            for name in ("t", "sales.t", "default_catalog.sales.t", "other.default_database.t")
        ] == [1, 2, 2, 3]
        made.execute("USE sales")
        assert [count(made, name) for name in ("t", "default_database.t", "SALES.T")] == [2, 1, 2]
        made.execute("USE CATALOG other")
        assert count(made, "t") == 3
        assert listed(made, "SHOW TABLES") == ["t"]
        assert listed(made, "SHOW DATABASES") == ["default_database"]
        assert listed(made, "SHOW CATALOGS") == ["default_catalog", "other"]
        assert told(made, "SELECT * FROM sales.t") == "SQL-1351"
        made.execute("USE default_catalog.default_database")
        assert made.execute("SELECT t.a FROM sales.t WHERE t.a > 1").fetchall() == [(2,)]


def test_a_column_is_found_by_what_from_wrote_before_its_table() -> None:
    with opened() as made:
        made.executescript(f"CREATE DATABASE sales; {table('sales.t', 2)} {table('u', 3)}")
        for text in (
            "SELECT sales.t.a FROM sales.t WHERE SALES.T.A > 0",
            "SELECT default_catalog.sales.t.a FROM default_catalog.sales.t WHERE sales.t.a > 0",
            "SELECT sales.t.a FROM sales.t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = sales.t.a)",
            "SELECT sales.t.a FROM sales.t JOIN u ON u.a = sales.t.a",
        ):
            assert sorted(made.execute(text).fetchall(timeout=60)) == [(1,), (2,)], text
        assert told(made, "SELECT sales.t.b FROM sales.t") == "SQL-1042"
        # an alias hides the name, and a table of another place is none of this query's
        assert told(made, "SELECT sales.t.a FROM sales.t AS x") == "SQL-1044"
        assert told(made, "SELECT other.t.a FROM sales.t") == "SQL-1044"


def test_the_hint_names_a_table_of_another_place() -> None:
    """What it says is what a query may write there."""
    with opened() as made:
        made.executescript(
            f"CREATE DATABASE sales; CREATE CATALOG other WITH ('type' = 'memory'); {table('t', 2)}"
        )
        for place, written in (
            ("sales", "default_database.t"),
            ("CATALOG other", "default_catalog.default_database.t"),
        ):
            made.execute(f"USE {place}")
            with pytest.raises(penstock.Error) as refused:
                made.execute("SELECT * FROM t")
            assert refused.value.hint == f'did you mean "{written}"?'
            assert count(made, written) == 2


def test_the_current_place_is_shown() -> None:
    with opened() as made:
        made.executescript("CREATE DATABASE sales; USE sales")
        assert listed(made, "SHOW CURRENT DATABASE") == ["sales"]
        assert listed(made, "SHOW CURRENT CATALOG") == ["default_catalog"]


def test_materialized_views_of_another_database_are_listed() -> None:
    with opened() as made:
        made.executescript(f"CREATE DATABASE sales; {table('sales.t', 2)} USE sales")
        made.execute("CREATE MATERIALIZED VIEW m AS SELECT COUNT(*) AS n FROM t")
        made.execute("USE default_database")
        assert listed(made, "SHOW MATERIALIZED VIEWS") == []
        assert len(listed(made, "SHOW MATERIALIZED VIEWS IN sales")) == 1


def test_a_view_reads_where_it_was_created() -> None:
    with opened() as made:
        made.executescript(
            f"CREATE DATABASE sales; USE sales; {table('t', 2)} CREATE VIEW v AS SELECT a FROM t; USE default_database; {table('t', 5)}"
        )
        assert count(made, "sales.v") == 2
        made.execute("ALTER TABLE sales.t RENAME TO sales.u")
        assert told(made, "SELECT * FROM sales.v") == "SQL-1041"


def test_a_stored_catalog_keeps_its_places(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with opened(tmp_path / "kept") as made:
        made.executescript(
            f"CREATE DATABASE sales; USE sales; {table('t', 2)} CREATE VIEW v AS SELECT a FROM t;"
        )
        made.execute("CREATE VIEW default_database.w AS SELECT a FROM t")
        made.executescript(
            f"CREATE CATALOG lake WITH ('type' = 'file', 'path' = '{lake}'); CREATE DATABASE lake.raw; {table('lake.raw.x', 4)}"
        )
    with opened(tmp_path / "kept") as made:
        assert [count(made, name) for name in ("sales.v", "w", "lake.raw.x")] == [2, 2, 4]
    with opened() as made:
        made.execute(f"CREATE CATALOG sea WITH ('type' = 'file', 'path' = '{lake}')")
        assert count(made, "sea.raw.x") == 4
        made.execute("DROP CATALOG sea")
        assert told(made, "SELECT * FROM sea.raw.x") == "SQL-1351"


def test_a_catalog_that_cannot_be_opened_is_not_there(tmp_path: Path) -> None:
    """A damaged file leaves the session as it was: what is created after that is still kept."""
    (tmp_path / "lake").mkdir()
    statements = [
        "CREATE TABLE t (a INT) WITH ('connector' = 'blackhole')",
        "CREATE TABLE broken (a INT) WITH ('connector' = 'nothing')",
    ]
    (tmp_path / "lake" / "catalog.json").write_text(json.dumps({"format": 1, "statements": statements}))
    with opened(tmp_path / "kept") as made:
        assert (
            told(made, f"CREATE CATALOG lake WITH ('type' = 'file', 'path' = '{tmp_path / 'lake'}')")
            == "SQL-1357"
        )
        assert listed(made, "SHOW CATALOGS") == ["default_catalog"]
        made.execute("CREATE DATABASE sales")
        made.execute(table("sales.t", 2))
    with opened(tmp_path / "kept") as made:
        assert count(made, "sales.t") == 2
    assert json.loads((tmp_path / "lake" / "catalog.json").read_text())["statements"] == statements


def test_mistakes() -> None:
    with opened() as made:
        made.executescript(f"CREATE DATABASE sales; {table('sales.t', 1)}")
        for statement, code in {
            "CREATE DATABASE sales": "SQL-1352",
            "CREATE DATABASE nowhere.sales": "SQL-1351",
            "DROP DATABASE sales": "SQL-1355",
            "DROP DATABASE default_database": "SQL-1356",
            "DROP CATALOG default_catalog": "SQL-1356",
            "CREATE CATALOG c WITH ('type' = 'memry')": "SQL-1354",
            "CREATE CATALOG c WITH ('type' = 'file')": "SQL-1503",
            "CREATE CATALOG c WITH ('type' = 'memory', 'path' = 'x')": "SQL-1502",
            "USE nowhere": "SQL-1351",
            "SELECT * FROM a.b.c.d": "SQL-1353",
            "CREATE TABLE `a.b` (a INT) WITH ('connector' = 'blackhole')": "SQL-1353",
        }.items():
            assert told(made, statement) == code, statement
        made.execute("CREATE DATABASE IF NOT EXISTS sales")
        made.execute("DROP DATABASE sales CASCADE")
        made.execute("DROP DATABASE IF EXISTS sales")


def test_names_of_another_place() -> None:
    with penstock.connect() as made:
        made.execute("CREATE CATALOG scratch WITH ('type' = 'memory')")
        made.execute("CREATE DATABASE scratch.raw")
        made.execute("CREATE TABLE scratch.raw.t (a INT) WITH ('connector' = 'blackhole')")
        made.execute("CREATE VIEW scratch.raw.v AS SELECT 1 AS x")
        for word in ("IN", "FROM"):
            assert made.execute(f"SHOW DATABASES {word} scratch").fetchall() == [
                ("default_database", None),
                ("raw", None),
            ]
            assert made.execute(f"SHOW TABLES {word} scratch.raw LIKE 't%'").fetchall() == [
                ("t", "blackhole", "bounded", "no")
            ]
            assert made.execute(f"SHOW VIEWS {word} scratch.raw").fetchall() == [("v", "SELECT 1 AS x")]
        assert made.execute("SHOW TABLES").fetchall() == []
        assert made.execute("SHOW DATABASES IN default_catalog").fetchall() == [
            ("default_database", "yes"),
            ("system", None),
        ]
        for sql, code in (
            ("SHOW DATABASES IN scrath", "SQL-1351"),
            ("SHOW TABLES IN scratch.nope", "SQL-1351"),
            ("SHOW JOBS IN scratch", "SQL-1001"),
        ):
            with pytest.raises(penstock.Error, match=code):
                made.execute(sql)


class Lake:
    """A catalog of another system, with one table."""

    system, name, default_database = "Spark", "spark_catalog", "shop"

    def databases(self) -> list[str]:
        return ["shop"]

    def tables(self, database: str) -> list[str]:
        return ["orders"]

    def table(self, full_name: str, database: str, name: str) -> CatalogTable | None:
        columns = Schema((Field("id", INT),))
        return CatalogTable(full_name, columns, columns, {"connector": "spark"}) if name == "orders" else None


@pytest.mark.parametrize(
    ("statement", "marked"),
    [
        ("DROP TABLE lake.shop.orders", "lake.shop.orders"),
        ("DROP TABLE IF EXISTS lake.shop.orders", "lake.shop.orders"),
        ("ALTER TABLE lake.shop.orders RENAME TO older", "lake.shop.orders"),
        ("ALTER TABLE lake.shop.orders DROP id", "lake.shop.orders"),
        ("CREATE TABLE lake.shop.orders (id INT)", "lake.shop.orders"),
        ("CREATE VIEW lake.shop.v AS SELECT 1 AS a", "lake.shop.v"),
        ("CREATE TABLE lake.shop.x AS SELECT 1 AS a", "lake.shop.x"),
        ("CREATE MATERIALIZED VIEW lake.shop.x AS SELECT 1 AS a", "lake.shop.x"),
        ("CREATE DATABASE lake.other", "lake.other"),
        ("DROP DATABASE lake.shop CASCADE", "lake.shop"),
    ],
)
def test_what_is_of_another_system_is_changed_in_it(statement: str, marked: str) -> None:
    with contextlib.closing(Session()) as session:
        session.catalog.databases.add_external("lake", {"type": "spark"}, Lake(), False, None)
        with pytest.raises(PenstockError, match="belongs to Spark") as caught:
            session.execute(statement)
        error = caught.value
        assert error.code == "SQL-1358" and error.span is not None, "the name is underlined"
        assert statement[error.span.start : error.span.end] == marked
        assert error.hint is not None and "run the statement in Spark" in error.hint
        assert "spark_catalog" in error.hint, "by the name that Spark knows"
        # nothing was changed, and a name that is not there is none
        assert session.catalog.find("lake.shop.orders") is not None
        session.execute("DROP TABLE IF EXISTS lake.shop.nothing")
