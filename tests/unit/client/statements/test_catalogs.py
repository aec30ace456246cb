"""Catalogs and databases: names of one to three parts mean one thing, wherever they are looked for from,
also after a restart.
"""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
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
        "CREATE TABLE broken (a INT",
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


def test_what_can_no_longer_be_run_is_reported_and_takes_nothing_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A view of a table that was dropped, of a file that is gone: DROP VIEW needs a catalog that is open."""
    data = tmp_path / "cities.csv"
    data.write_text("n\n1\n")
    with opened(tmp_path / "kept") as made:
        made.executescript(f"{table('t', 2)} {table('u', 3)} CREATE VIEW v AS SELECT a FROM t;")
        made.executescript(f"CREATE VIEW w AS SELECT a FROM v; CREATE VIEW cities AS SELECT n FROM '{data}';")
        made.execute("DROP TABLE t")
    data.unlink()
    with opened(tmp_path / "kept") as made:
        assert count(made, "u") == 3
        assert told(made, "SELECT * FROM w") == "SQL-1041"
        said = capsys.readouterr().err
        assert [f"CREATE VIEW `{name}`" in said for name in ("v", "w", "cities")] == [True] * 3
        made.execute(table("t", 4))
    # what was left out is still stored, and what it reads is there again
    data.write_text("n\n7\n")
    with opened(tmp_path / "kept") as made:
        assert (count(made, "w"), count(made, "cities"), count(made, "u")) == (4, 1, 3)
        made.executescript("DROP VIEW w; DROP VIEW v; DROP TABLE t")
    with opened(tmp_path / "kept") as made:
        assert listed(made, "SHOW TABLES") == ["u"] and listed(made, "SHOW VIEWS") == ["cities"]
    assert "left out" not in capsys.readouterr().err


def test_a_view_may_read_what_was_created_after_it(tmp_path: Path) -> None:
    with opened(tmp_path / "kept") as made:
        made.executescript(
            f"{table('t', 2)} CREATE VIEW v AS SELECT a FROM t; CREATE VIEW w AS SELECT a FROM v; {table('u', 3)}"
        )
        made.execute("ALTER VIEW v AS SELECT a FROM u")
        made.executescript(f"CREATE DATABASE sales; {table('sales.x', 5)} CREATE VIEW y AS SELECT a FROM t;")
        made.execute("CREATE OR REPLACE VIEW y AS SELECT a FROM sales.x")
    with opened(tmp_path / "kept") as made:
        assert [count(made, name) for name in ("v", "w", "y")] == [3, 3, 5]


def test_two_programs_with_one_catalog_keep_what_each_has_made(tmp_path: Path) -> None:
    with opened(tmp_path) as first, opened(tmp_path) as second:
        first.executescript(f"CREATE DATABASE sales; {table('sales.t', 2)} {table('both', 2)}")
        second.executescript(f"{table('u', 3)} CREATE VIEW v AS SELECT a FROM u;")
        first.execute("CREATE VIEW sales.w AS SELECT a FROM sales.t")
        # neither knows the other's names; who is later leaves what is there
        assert told(second, table("both", 5)) == "SQL-1325"
        # once: the statements after it are not refused for it
        second.execute("CREATE VIEW x AS SELECT a FROM v")
        first.execute("ALTER TABLE sales.t RENAME TO sales.s")
    with opened(tmp_path) as third, opened(tmp_path) as fourth:
        assert [count(third, name) for name in ("sales.s", "u", "v", "x", "both")] == [2, 3, 3, 3, 2]
        third.execute("DROP VIEW x")
        # what another program has dropped may be dropped again, what it has altered not
        fourth.execute("DROP VIEW x")
        third.execute("ALTER VIEW v AS SELECT a + 1 AS a FROM u")
        assert told(fourth, "DROP VIEW v") == "SQL-1325"
        fourth.execute(table("last", 1))
    with opened(tmp_path) as made:
        assert made.execute("SELECT MAX(a) FROM v").fetchall() == [(4,)]
        assert listed(made, "SHOW VIEWS") == ["v"] and count(made, "last") == 1


def test_many_programs_change_one_catalog_at_once(tmp_path: Path) -> None:
    """Reading and replacing the file are one step: none writes what another is about to replace."""

    def create(number: int) -> None:
        with opened(tmp_path) as made:
            for name in range(8):
                made.execute(table(f"t{number}_{name}", 1))

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(create, range(6)))
    with opened(tmp_path) as made:
        assert len(listed(made, "SHOW TABLES")) == 48


def test_a_catalog_file_that_is_moved_away_is_written_anew(tmp_path: Path) -> None:
    with opened(tmp_path) as made:
        made.execute(table("t", 2))
        (tmp_path / "catalog.json").rename(tmp_path / "away")
        made.execute(table("u", 3))
    with opened(tmp_path) as made:
        assert (count(made, "t"), count(made, "u")) == (2, 3)


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
