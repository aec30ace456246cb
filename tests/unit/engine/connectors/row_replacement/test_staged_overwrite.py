"""INSERT OVERWRITE of Delta and Iceberg tables: what it replaces, in one commit, and that a table is old or new
whatever fails.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.connectors.delta import target as delta_target
from penstock.engine.connectors.iceberg import replaced_files
from penstock.engine.connectors.iceberg import target as iceberg_target
from penstock.engine.connectors.row_replacement import staged_overwrite
from tests.harness.patience import PATIENCE_S

pytest.importorskip("deltalake", reason="the extra delta is not installed")
Transaction: Any = pytest.importorskip(
    "pyiceberg.table", reason="the extra iceberg is not installed"
).Transaction
OPTIONS = {
    "delta": "'connector' = 'delta', 'table-path' = '{path}/{name}'",
    "iceberg": "'connector' = 'iceberg', 'table-name' = 'db.{name}', 'catalog-type' = 'sql', "
    "'uri' = 'sqlite:///{path}/catalog.db', 'warehouse' = 'file://{path}/warehouse'",
}
ROWS = "(1, DATE '2026-01-01', 1), (2, DATE '2026-01-01', 2), (3, DATE '2026-01-02', 1), (4, NULL, 1)"
NO_NULLS = "SELECT * FROM (VALUES " + ROWS + ") AS r (id, day, hr) WHERE day IS NOT NULL"
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


@pytest.mark.longer
def test_a_table_with_a_key_gets_one_row_a_key(session: Session, tmp_path: Path) -> None:
    """Also of a query that updates its results: the last change of each key is its row."""
    session.execute("CREATE TABLE k (op STRING, PRIMARY KEY (id) NOT ENFORCED) LIKE t")
    session.execute("INSERT OVERWRITE k VALUES (1, 'a', 'x'), (1, 'a', 'x'), (2, 'b', 'y')")
    assert rows(session, "k") == ["1 a x", "2 b y"]
    before = versions(tmp_path)
    session.execute("INSERT OVERWRITE k SELECT id + 1, name, op FROM k")
    assert rows(session, "k") == ["2 a x", "3 b y"] and versions(tmp_path) == before + 1
    session.execute(
        "CREATE TABLE g (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = '6000', "
        "'fields.a.min' = '1', 'fields.a.max' = '20')"
    )
    session.execute("SET 'execution.batch.max-rows' = '500'")
    counted = "SELECT a, '', CAST(COUNT(*) AS STRING) FROM g GROUP BY a"
    session.execute(f"INSERT OVERWRITE k {counted}")
    found = [row.split(" ") for row in rows(session, "k")]
    assert sorted(int(row[0]) for row in found) == [*range(1, 21)]
    assert sum(int(row[2]) for row in found) == 6000
    # its groups come and go: those that are gone at the end are no rows
    session.execute(
        f"INSERT OVERWRITE k SELECT * FROM ({counted}) AS c (id, n, op) WHERE CAST(op AS INT) < 100"
    )
    assert rows(session, "k") == []
    with pytest.raises(PenstockError, match="is NOT NULL, a row has NULL"):
        session.execute("INSERT OVERWRITE k VALUES (CAST(NULL AS INT), 'n', '')")
    session.execute("INSERT INTO k VALUES (1, 'after', ''), (1, 'last', '')")
    assert rows(session, "k") == ["1 last "]


def test_the_last_change_of_a_key_is_kept_of_many(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are looked at in pieces, and files in the order of their numbers."""
    monkeypatch.setattr(staged_overwrite, "_CHANGES", 64)
    monkeypatch.setattr(staged_overwrite, "_BATCH_ROWS", 50)
    table = session.state.catalog.table("t")
    table = replace(table, primary_key=("id",))
    staged = staged_overwrite.StagedOverwrite(table, {}, unopened)
    place = Path(staged.table.options["path"])
    place.mkdir()
    kept: dict[int, str | None] = {}
    random = Random(7)
    for number in (9998, 9999, 10000):
        changes = [(random.choice(("+I", "+U", "-D")), random.randrange(90), str(n)) for n in range(300)]
        kept |= {key: None if op == "-D" else f"{number} {name}" for op, key, name in changes}
        ops, keys, names = zip(*changes, strict=True)
        columns = {
            "op": ops,
            "id": pa.array(keys, pa.int32()),
            "name": [f"{number} {name}" for name in names],
        }
        pq.write_table(pa.table(columns), place / f"part-0000-{number:04d}.parquet", row_group_size=70)
    found = [row for batch in staged._rows() for row in batch.to_pylist()]
    assert {row["id"]: row["name"] for row in found} == {k: v for k, v in kept.items() if v is not None}
    assert len(found) == len({row["id"] for row in found})
    staged.discard()


def test_partitions_of_a_key_are_replaced_where_they_are_part_of_it(session: Session) -> None:
    session.execute("CREATE TABLE k (PRIMARY KEY (id, day, hr) NOT ENFORCED) LIKE p")
    session.execute(f"INSERT OVERWRITE k {NO_NULLS}")
    session.execute("INSERT OVERWRITE k VALUES (7, DATE '2026-01-02', 1), (7, DATE '2026-01-02', 1)")
    assert rows(session, "k") == [*PARTS[:2], "7 2026-01-02 1"]
    session.execute("CREATE TABLE loose (PRIMARY KEY (id, hr) NOT ENFORCED) LIKE p")
    with pytest.raises(PenstockError, match=r"SQL-1601.*day is not in its PRIMARY KEY") as refused:
        session.execute("INSERT OVERWRITE loose VALUES (1, DATE '2026-01-01', 1)")
    # what the hint says, works
    assert "without PARTITIONED BY" in str(refused.value.hint)
    session.execute("CREATE TABLE w (PRIMARY KEY (id, hr) NOT ENFORCED) LIKE whole")
    session.execute("INSERT OVERWRITE w VALUES (1, DATE '2026-01-01', 1)")
    assert rows(session, "loose") == ["1 2026-01-01 1"]


def data_files(tmp_path: Path) -> set[Path]:
    return set(tmp_path.glob("warehouse/**/*.parquet"))


@pytest.mark.longer
def test_iceberg_writes_files_as_rows_come_and_deletes_those_of_a_commit_that_failed(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "delta" in session.state.catalog.table("t").options.values():
        pytest.skip("the library of Delta writes its files")
    # a piece of 250 rows and a rest
    monkeypatch.setattr(replaced_files, "_PIECE_BYTES", 250 * 8)
    monkeypatch.setattr(staged_overwrite, "_BATCH_ROWS", 250)
    written = "INSERT OVERWRITE t SELECT n + {}, 'x' FROM UNNEST(sequence(1, 1000)) AS s (n)"
    session.execute(written.format(0))
    first = data_files(tmp_path)
    assert len(first) >= 4
    errors: list[Exception] = [CommitFailedException("another one came between")]
    commit = Transaction.commit_transaction

    def refuse(transaction: Transaction) -> Any:
        if errors:
            raise errors.pop()
        return commit(transaction)

    monkeypatch.setattr(Transaction, "commit_transaction", refuse)
    # the next try adds the files of the first one
    session.execute(written.format(5))
    assert not errors and len(data_files(tmp_path)) == 2 * len(first)
    assert sum(int(row.split(" ")[0]) for row in rows(session, "t")) == 1000 * 1001 // 2 + 5000
    # no snapshot has files of a commit that another one got ahead of each time, or that was refused before
    before = data_files(tmp_path)
    errors += [CommitFailedException("again") for _ in range(99)]
    with pytest.raises(PenstockError, match="DAT-5313"):
        session.execute(written.format(9))
    assert data_files(tmp_path) == before
    # of another error nobody knows: they stay
    errors[:] = [ValueError("the connection ended")]
    with pytest.raises(PenstockError, match="DAT-5304"):
        session.execute(written.format(9))
    assert len(data_files(tmp_path)) == len(before) + len(first)
    assert len(rows(session, "t")) == 1000


def test_what_a_killed_program_has_left_is_deleted_by_the_next(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = session.state.catalog.table("t")
    alive, dead = (staged_overwrite.StagedOverwrite(table, {}, unopened) for _ in range(2))
    assert dead._lock is not None
    os.close(dead._lock)
    (tmp_path / "penstock-overwrite-link").symlink_to(tmp_path / "warehouse")
    session.execute("INSERT OVERWRITE t VALUES (1, 'a')")
    left = {path.name for path in tmp_path.glob("penstock-overwrite-*")}
    assert left == {alive._path.name, "penstock-overwrite-link"}
    alive.discard()


def unopened() -> Any:
    raise AssertionError("nothing is replaced")
