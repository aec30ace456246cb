"""The public compliance suite of PEP 249: ``dbapi-compliance`` on PyPI, from which the suites of other drivers
come. The exceptions are the methods at the end, each with its reason; docs/TESTING.md counts them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest

import penstock
from tests.harness.connections import server_url

dbapi20 = pytest.importorskip("dbapi20")


class TestCompliance(dbapi20.DatabaseAPI20Test):
    """Every test of the suite; a table is a folder of Parquet files."""

    driver = penstock
    connect_kw_args: ClassVar[dict[str, Any]] = {"settings": {"bounded.backend": "duckdb"}}

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)

        def declared(name: str, columns: str) -> str:
            # a table of no files has no rows; without its folder reading it is an error
            Path(directory.name, name).mkdir()
            options = f"'connector' = 'filesystem', 'path' = '{directory.name}/{name}', 'format' = 'parquet'"
            return f"create table {self.table_prefix}{name} ({columns}) with ({options})"

        self.ddl1 = declared("booze", "name varchar(20)")
        self.ddl2 = declared("barflys", "name varchar(20), drink varchar(30)")

    def tearDown(self) -> None:
        """A connection's tables end with it: there is nothing to drop."""

    def test_nextset(self) -> None:
        """The suite asks drivers to write this one. A statement has one result: there is no ``nextset``."""
        connection = self._connect()
        assert not hasattr(connection.cursor(), "nextset")
        connection.close()

    def test_setoutputsize(self) -> None:
        """The suite asks drivers to write this one. It does nothing, with and without a column."""
        connection = self._connect()
        connection.cursor().setoutputsize(1000)
        connection.cursor().setoutputsize(2000, 0)
        connection.close()

    def test_non_idempotent_close(self) -> None:
        """The suite wants an error of the second close, and says itself that reasonable people differ. PEP 249
        asks for none; psycopg and sqlite3 raise none.
        """
        connection = self._connect()
        connection.close()
        connection.close()
        with pytest.raises(penstock.InterfaceError, match="CLI-6002"):
            connection.commit()


class TestServerCompliance(TestCompliance):
    """The same tests over a connection to a server."""

    connect_kw_args: ClassVar[dict[str, Any]] = {"settings": {"bounded.backend": "duckdb"}, "url": None}

    @classmethod
    def setUpClass(cls) -> None:
        cls.connect_kw_args["url"] = server_url()
