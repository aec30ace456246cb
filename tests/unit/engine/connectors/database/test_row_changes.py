"""UPDATE and DELETE of a SQLite file: values of another type are refused, and no file is made."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session


def test_values_of_another_type_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with closing(Session({})) as session:
        session.execute(
            f"CREATE TABLE t (n INT, b STRING) WITH ('connector' = 'sqlite', 'path' = '{path}', "
            "'table-name' = 'T')"
        )
        with pytest.raises(PenstockError, match="DAT-4701"):
            session.execute("DELETE FROM t")
        assert not path.exists()
        file = sqlite3.connect(path, isolation_level=None)
        file.execute("CREATE TABLE T (N INTEGER, b)")
        file.execute("INSERT INTO T VALUES (1, 'a'), (2, 5), ('three', 'c')")
        with pytest.raises(PenstockError, match="DAT-4704"):
            session.execute("DELETE FROM t WHERE n > 1")
        # a column that the statement does not read may hold anything
        assert session.execute("UPDATE t SET n = 7 WHERE b = '5'").rowcount == 1
        assert file.execute("SELECT N FROM T").fetchall() == [(1,), (7,), ("three",)]
        file.close()
