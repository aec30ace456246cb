"""An Iceberg catalog as one of ours: its tables are listed, described, created, written, read and dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from tests.unit.engine.connectors.iceberg.iceberg_files import catalog_options, loaded, there


def opened(path: Path) -> penstock.Connection:
    connection = penstock.connect(settings={"table.dml-sync": "true"})
    options = ", ".join(f"'{key}' = '{value}'" for key, value in catalog_options(path).items())
    connection.execute(f"CREATE CATALOG ice WITH ('type' = 'iceberg', {options})")
    return connection


def test_tables_of_a_catalog(tmp_path: Path) -> None:
    with opened(tmp_path) as connection:
        connection.execute(
            "CREATE TABLE ice.db.t (k BIGINT, v STRING, PRIMARY KEY (k) NOT ENFORCED) PARTITIONED BY (v)"
        )
        assert "db" in str(connection.execute("SHOW DATABASES IN ice").fetchall())
        listed = connection.execute("SHOW TABLES IN ice.db").fetchall()
        assert listed == [("t", "iceberg", "bounded", "no")]
        assert "BIGINT" in str(connection.execute("DESCRIBE ice.db.t").fetchall())
        # the key is the table's own: rows are replaced by it
        connection.execute("INSERT INTO ice.db.t VALUES (1, 'a'), (2, 'b')")
        connection.execute("INSERT INTO ice.db.T VALUES (1, 'new')")
        assert connection.execute("SELECT * FROM ice.db.t ORDER BY k").fetchall() == [(1, "new"), (2, "b")]
        assert there(tmp_path) == [(1, "new"), (2, "b")]
        assert [field.name for field in loaded(tmp_path).spec().fields] == ["v"]
        connection.execute("CREATE TABLE IF NOT EXISTS ice.db.t (k BIGINT)")
        with pytest.raises(PenstockError, match="SQL-1302"):
            connection.execute("CREATE TABLE ice.db.t (k BIGINT)")
        with pytest.raises(PenstockError, match="SQL-1041"):
            connection.execute("SELECT * FROM ice.db.tt")
        connection.execute("DROP TABLE ice.db.t")
        connection.execute("DROP TABLE IF EXISTS ice.db.t")
        assert connection.execute("SHOW TABLES IN ice.db").fetchall() == []


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE TABLE ice.db.t (k BIGINT) WITH ('scan.mode' = 'full')", "SQL-1358"),
        ("CREATE TABLE ice.db.t (k TIME)", "SQL-1509"),
        ("CREATE TABLE ice.db.t AS SELECT 1 AS k", "then INSERT INTO ice.db.t SELECT"),
        ("CREATE VIEW ice.db.v AS SELECT 1 AS k", "SQL-1358"),
        ("CREATE CATALOG c WITH ('type' = 'iceberg')", "SQL-1503"),
        ("CREATE CATALOG c WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop')", "SQL-1505"),
        ("CREATE CATALOG c WITH ('type' = 'iceberg', 'catalog-type' = 'sql', 'path' = 'x')", "SQL-1502"),
    ],
)
def test_what_cannot_be(tmp_path: Path, statement: str, code: str) -> None:
    with opened(tmp_path) as connection, pytest.raises(PenstockError, match=code):
        connection.execute(statement)
