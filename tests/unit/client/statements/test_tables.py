"""CREATE TABLE .. AS fills a table by a job; CREATE TABLE .. LIKE copies a declaration; both are kept like
any table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.script_check import check_script
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session(
        {"execution.runtime-mode": "streaming", "table.dml-sync": "true"}, catalog_dir=tmp_path / "catalog"
    )
    session.register("t", pa.table({"k": [1, 1, 2], "v": [10, 20, 30]}), stream=True)
    yield session
    session.close()


def test_as_fills_the_table(session: Session, tmp_path: Path) -> None:
    options = f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'csv')"
    session.execute(f"CREATE TABLE copy {options} AS SELECT k, v * 2 AS twice FROM t WHERE v > 10")
    table = session.catalog.table("copy")
    assert [(f.name, str(f.type)) for f in table.schema] == [("k", "BIGINT"), ("twice", "BIGINT")]
    assert session.execute("SELECT * FROM copy").final_rows(PATIENCE_S).to_pylist() == [
        {"k": 1, "twice": 40},
        {"k": 2, "twice": 60},
    ]
    again = session.execute(f"CREATE TABLE IF NOT EXISTS copy {options} AS SELECT 1 AS x")
    assert (again.note, again.job) == ("table copy exists already", None)
    with pytest.raises(PenstockError, match="SQL-1302"):
        session.execute(f"CREATE TABLE copy {options} AS SELECT 1 AS x")


def test_a_query_that_cannot_be_planned_creates_nothing(session: Session) -> None:
    with pytest.raises(PenstockError):
        session.execute(
            "CREATE TABLE copy WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv') AS SELECT k, count(*) FROM t GROUP BY k"
        )
    assert session.catalog.find("copy") is None


def test_like_copies_and_survives(session: Session, tmp_path: Path) -> None:
    session.execute(
        "CREATE TABLE one (a INT, ts TIMESTAMP(3), d AS a + 1, WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')"
    )
    session.execute("CREATE TABLE two (b STRING) WITH ('number-of-rows' = '4') LIKE one")
    session.execute(
        "CREATE TABLE three WITH ('connector' = 'blackhole') LIKE one (EXCLUDING OPTIONS EXCLUDING WATERMARKS)"
    )
    with Reopened(tmp_path) as other:
        two, three = other.catalog.table("two"), other.catalog.table("three")
        assert two.schema.names == ["a", "ts", "d", "b"]
        assert two.options["number-of-rows"] == "4"
        assert two.watermark is not None
        assert three.watermark is None
        assert three.options == {"connector": "blackhole"}


def test_checking_a_script_declares_both() -> None:
    session = Session()
    script = """
    CREATE TABLE a (x INT) WITH ('connector' = 'datagen');
    CREATE TABLE b LIKE a;
    CREATE TABLE c WITH ('connector' = 'print') AS SELECT x FROM b;
    SELECT y FROM c;
    """
    assert [error.code for error in check_script(session, script)] == ["SQL-1047"]
    session.close()


class Reopened:
    """A second session over the same kept catalog."""

    def __init__(self, tmp_path: Path) -> None:
        self.session = Session(catalog_dir=tmp_path / "catalog")

    def __enter__(self) -> Session:
        return self.session

    def __exit__(self, *failure: object) -> None:
        self.session.close()
