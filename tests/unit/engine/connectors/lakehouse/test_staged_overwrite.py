"""INSERT OVERWRITE of Delta and Iceberg tables: what it replaces, in one commit, and that a table is old or new
whatever fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.connectors.delta import target as delta_target
from penstock.engine.connectors.iceberg import target as iceberg_target
from tests.harness.patience import PATIENCE_S

pytest.importorskip("deltalake", reason="the extra delta is not installed")
pytest.importorskip("pyiceberg", reason="the extra iceberg is not installed")
OPTIONS = {
    "delta": "'connector' = 'delta', 'table-path' = '{path}/{name}'",
    "iceberg": "'connector' = 'iceberg', 'table-name' = 'db.{name}', 'catalog-type' = 'sql', "
    "'uri' = 'sqlite:///{path}/catalog.db', 'warehouse' = 'file://{path}/warehouse'",
}
ROWS = "(1, DATE '2026-01-01', 1), (2, DATE '2026-01-01', 2), (3, DATE '2026-01-02', 1), (4, NULL, 1)"
PARTS = ["1 2026-01-01 1", "2 2026-01-01 2", "3 2026-01-02 1", "4 None 1"]
STATEMENTS = [
    ("INSERT OVERWRITE p PARTITION (day = '2026-01-01', hr = 1) SELECT id + 10 FROM p",
     ["11 2026-01-01 1", "12 2026-01-01 1", "13 2026-01-01 1", "14 2026-01-01 1", *PARTS[1:]]),
    ("INSERT OVERWRITE p PARTITION (day = '2026-01-01', hr = 1) SELECT id FROM p WHERE id > 9", PARTS[1:]),
    ("INSERT OVERWRITE p PARTITION (day = '2026-01-01', hr) SELECT id * 5, hr FROM p WHERE id IN (2, 3)",
     ["10 2026-01-01 2", "15 2026-01-01 1", *PARTS[2:]]),
    ("INSERT OVERWRITE p SELECT id + 1, day, hr FROM p WHERE day IS NULL", [*PARTS[:3], "5 None 1"]),
    ("INSERT OVERWRITE p SELECT id, day, hr FROM p WHERE id > 9", PARTS),
]  # fmt: skip


class CommitFailedError(Exception):
    """As the library's: another commit came between."""


class CommitFailedException(Exception):
    """As the library's: another commit came between."""


@pytest.fixture(params=["delta", "iceberg"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb", "parallelism.default": "2"})
    flat, parts = (OPTIONS[request.param].format(path=tmp_path, name=name) for name in "tp")
    session.execute(f"CREATE TABLE t (id INT, name STRING) WITH ({flat})")
    session.execute(f"CREATE TABLE p (id INT, day DATE, hr INT) PARTITIONED BY (day, hr) WITH ({parts})")
    session.execute(f"CREATE TABLE whole (id INT, day DATE, hr INT) WITH ({parts})")
    yield session
    session.close()


def rows(session: Session, table: str) -> list[str]:
    found = session.execute(f"SELECT * FROM {table}").final_rows(PATIENCE_S).to_pylist()
    return sorted(" ".join(map(str, row.values())) for row in found)


def versions(tmp_path: Path) -> int:
    """Return how many versions or snapshots the tables have."""
    logs = len(list(tmp_path.glob("*/_delta_log/*.json")))
    return logs or len(list(tmp_path.rglob("snap-*.avro")))


@pytest.mark.longer
def test_a_whole_table_in_one_commit(session: Session, tmp_path: Path) -> None:
    # a table that is not there yet
    session.execute("INSERT OVERWRITE t VALUES (1, 'a'), (2, 'b')")
    assert rows(session, "t") == ["1 a", "2 b"]
    before = versions(tmp_path)
    session.execute("INSERT OVERWRITE t SELECT id + 10, name FROM t UNION ALL SELECT 7, 'c'")
    assert rows(session, "t") == ["11 a", "12 b", "7 c"]
    assert versions(tmp_path) == before + 1
    session.execute("INSERT INTO t VALUES (9, 'd')")
    assert rows(session, "t") == ["11 a", "12 b", "7 c", "9 d"]
    session.execute("INSERT OVERWRITE t SELECT * FROM t WHERE id > 99")
    assert rows(session, "t") == []


@pytest.mark.longer
def test_partitions(session: Session, tmp_path: Path) -> None:
    session.execute("INSERT INTO p VALUES (0, NULL, NULL)")
    for statement, expected in STATEMENTS:
        # by the table that declares no partitions all rows are replaced
        session.execute(f"INSERT OVERWRITE whole VALUES {ROWS}")
        assert rows(session, "p") == sorted(PARTS)
        before = versions(tmp_path)
        session.execute(statement)
        assert rows(session, "p") == sorted(expected), statement
        assert versions(tmp_path) == before + (expected != PARTS)


@pytest.mark.longer
def test_a_failure_leaves_the_old_rows_and_a_commit_is_done_once(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.execute("INSERT OVERWRITE t VALUES (1, 'a')")
    with pytest.raises(PenstockError):
        session.execute("INSERT OVERWRITE t SELECT 1 DIV (id - 1), name FROM t")
    met: list[str] = []

    def fail(at: str, error: Exception) -> None:
        def failing(point: str) -> None:
            met.append(point)
            if point == at and met.count(at) == 1:
                raise error

        met.clear()
        for module in (delta_target, iceberg_target):
            monkeypatch.setattr(module, "failpoint", failing)

    fail("L1", OSError("no space"))
    with pytest.raises(PenstockError):
        session.execute("INSERT OVERWRITE t SELECT id + 1, name FROM t")
    assert rows(session, "t") == ["1 a"]
    kinds = (CommitFailedError, CommitFailedException)
    kind = kinds[
        "'connector' = 'iceberg'" in session.execute("SHOW CREATE TABLE t").final_rows(9)[0][0].as_py()
    ]
    before = versions(tmp_path)
    # the outcome of the first try is not known
    fail("L2", kind("lost"))
    session.execute("INSERT OVERWRITE t SELECT id + 1, name FROM t")
    assert met == ["L1", "L2"]
    assert rows(session, "t") == ["2 a"]
    assert versions(tmp_path) == before + 1


def test_a_table_with_a_key_is_refused(session: Session) -> None:
    session.execute("CREATE TABLE k (PRIMARY KEY (id) NOT ENFORCED) LIKE t")
    with pytest.raises(PenstockError, match=r"SQL-1601.*are merged") as refused:
        session.execute("INSERT OVERWRITE k VALUES (1, 'a')")
    assert "without PRIMARY KEY" in str(refused.value.hint)


def test_on_spark_it_is_refused(session: Session) -> None:
    """Executors of another machine would write where the client does not look."""
    session.execute("SET 'deployment' = 'spark'")
    with pytest.raises(PenstockError, match="temporary files of this machine") as caught:
        session.execute("INSERT OVERWRITE t VALUES (1, 'a')")
    assert caught.value.code == "SQL-1601" and "'processes'" in str(caught.value.hint)
