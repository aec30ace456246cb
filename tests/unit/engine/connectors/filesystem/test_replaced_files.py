"""UPDATE, DELETE and MERGE of files: the rows of the statements, and files that are all old or all new."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.client.session import Session
from penstock.engine.connectors.filesystem import overwrite, staged_files
from penstock.engine.connectors.filesystem.overwrite import ReplacementDirectory
from penstock.engine.connectors.filesystem.staged_files import share_staging
from tests.harness.patience import PATIENCE_S

DAYS = (
    "(1, 'a', DATE '2026-01-01'), (2, NULL, NULL), (3, 'c', DATE '2026-01-02'), (4, 'd', DATE '2026-01-02')"
)


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb", "parallelism.default": "2"})
    yield session
    session.close()


def declare(session: Session, path: Path, kind: str, more: str = "", name: str = "t") -> None:
    session.execute(
        f"CREATE TABLE {name} (id INT, n STRING, day DATE) {more} "
        f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{kind}')"
    )


def rows(session: Session) -> list[str]:
    found = session.execute("SELECT * FROM t").final_rows(PATIENCE_S).to_pylist()
    return sorted(" ".join(map(str, row.values())) for row in found)


@pytest.mark.parametrize(
    ("kind", "partitions"),
    [
        ("csv", ""),
        ("parquet", "PARTITIONED BY (day)"),
        *(
            pytest.param(kind, partitions, marks=pytest.mark.at_length)
            for kind in ("csv", "json", "parquet", "arrow")
            for partitions in ("", "PARTITIONED BY (day)")
        ),
    ],
)
def test_rows_are_changed(session: Session, tmp_path: Path, kind: str, partitions: str) -> None:
    declare(session, tmp_path / "t", kind, partitions)
    session.execute(f"INSERT INTO t VALUES {DAYS}")
    assert session.execute("UPDATE t SET day = DATE '2026-01-05', n = 'x' WHERE id = 3").rowcount == 1
    assert session.execute("DELETE FROM t WHERE n IN ('a', NULL)").rowcount == 1
    merged = session.execute(
        "MERGE INTO t USING (VALUES (2, 'two'), (9, 'new')) AS s (id, n) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"
    )
    assert (merged.rowcount, merged.note) == (2, "1 row updated, 1 inserted")
    assert rows(session) == ["2 two None", "3 x 2026-01-05", "4 d 2026-01-02", "9 new None"]
    # files that are replaced are gone, and the table goes on
    assert not (tmp_path / "t" / "day=2026-01-01").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    session.execute("INSERT INTO t VALUES (5, 'e', NULL)")
    session.execute("DELETE FROM t WHERE id <> 5")
    assert rows(session) == ["5 e None"]


@pytest.mark.parametrize("step", ["write", "exchange"])
def test_a_failure_leaves_the_old_files(
    session: Session, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(session, tmp_path / "t", "csv", "PARTITIONED BY (day)")
    session.execute(f"INSERT INTO t VALUES {DAYS}")
    before = rows(session)

    def fail(*arguments: Any) -> Any:
        raise OSError(28, "no space left")

    place, name = (ReplacementDirectory, "_publish") if step == "write" else (overwrite, "exchange")
    monkeypatch.setattr(place, name, fail)
    with pytest.raises(PenstockError, match="DAT-4603"):
        session.execute("UPDATE t SET n = 'x'")
    monkeypatch.undo()
    assert rows(session) == before and [path.name for path in tmp_path.iterdir()] == ["t"]


class Died(BaseException):
    """The end of a process."""


@pytest.mark.parametrize(("step", "values"), [("before", ["a", "None"]), ("behind", ["x", "x"])])
def test_a_program_that_dies_at_the_exchange(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, values: list[str]
) -> None:
    declare(session, tmp_path / "t", "csv")
    session.execute("INSERT INTO t VALUES (1, 'a', NULL), (2, NULL, NULL)")
    put = overwrite._put

    def dies(staged: Path, target: Path) -> None:
        if step == "behind":
            put(staged, target)
        raise Died

    def leaves(directory: ReplacementDirectory) -> None:
        # a process that dies deletes nothing, and its lock is free
        if directory._lock is not None:
            os.close(directory._lock)
            directory._lock = None

    with monkeypatch.context() as patched, pytest.raises(Died):
        # the version is read by another one, which finds no writer
        patched.setattr(overwrite, "_put", dies)
        patched.setattr(ReplacementDirectory, "discard", leaves)
        session.execute("UPDATE t SET n = 'x'")
    assert rows(session) == [f"{number} {value} None" for number, value in enumerate(values, 1)]
    session.execute("UPDATE t SET n = 'y'")
    assert rows(session) == ["1 y None", "2 y None"]
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_what_another_writer_adds_is_not_lost(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(session, tmp_path / "t", "csv")
    session.execute(f"INSERT INTO t VALUES {DAYS}")
    publish = ReplacementDirectory.publish

    def between(directory: ReplacementDirectory) -> None:
        (tmp_path / "t" / "more.csv").write_text("id,n,day\n8,added,\n")
        publish(directory)

    declare(session, tmp_path / "t" / "*.csv", "csv", name="part")
    for statement in ("DELETE FROM t", "INSERT OVERWRITE t SELECT id + 1, n, day FROM part"):
        before = set(rows(session))
        monkeypatch.setattr(ReplacementDirectory, "publish", between)
        with pytest.raises(PenstockError, match="DAT-4618"):
            session.execute(statement)
        monkeypatch.undo()
        assert set(rows(session)) == {*before, "8 added None"}
    declare(session, tmp_path / "nowhere", "csv", name="nowhere")
    with pytest.raises(PenstockError, match="DAT-4101"):
        session.execute("DELETE FROM nowhere")
    assert not (tmp_path / "nowhere").exists()
    # a job that writes to the table
    writer = share_staging(tmp_path / "t")
    with pytest.raises(PenstockError, match="DAT-4617"):
        session.execute("DELETE FROM t")
    os.close(writer)
    assert session.execute("DELETE FROM t").rowcount == 5


def test_two_statements_that_replace_one_directory(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second has opened the directory of the lock when the first replaces it, and a job begins to write."""
    declare(session, tmp_path / "t", "csv")
    session.execute(f"INSERT INTO t VALUES {DAYS}")
    table = session.catalog.table("t")
    assert isinstance(table, CatalogTable)
    first, second = ReplacementDirectory(table, {}), ReplacementDirectory(table, {})
    is_alone, writers = staged_files._is_alone, []

    def between(descriptor: int) -> bool:
        monkeypatch.undo()
        first.publish()
        writers.append(share_staging(tmp_path / "t"))
        return is_alone(descriptor)

    monkeypatch.setattr(staged_files, "_is_alone", between)
    monkeypatch.setattr(overwrite, "_ATTEMPTS", 2)
    with pytest.raises(PenstockError, match="DAT-4617"):
        second.publish()
    for writer in writers:
        os.close(writer)
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_columns_that_are_not_declared_are_not_lost(session: Session, tmp_path: Path) -> None:
    written = {
        "csv": "id,n,day,extra\n1,a,,7\n",
        "json": '{"id": 1, "n": "a"}\n{"id": 2, "extra": 7}\n',
    }
    for kind, text in written.items():
        place = tmp_path / kind
        place.mkdir()
        (place / f"a.{kind}").write_text(text)
        declare(session, place, kind, name=kind)
        with pytest.raises(PenstockError, match=r"DAT-4631.*column extra of"):
            session.execute(f"DELETE FROM {kind}")
        assert (place / f"a.{kind}").read_text() == text
    declare(session, tmp_path / "t", "parquet")
    session.execute("INSERT INTO t VALUES (1, 'a', NULL)")
    session.execute(
        f"CREATE TABLE narrow (id INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/t', 'format' = 'parquet')"
    )
    with pytest.raises(PenstockError, match=r"DAT-4631.*column n of"):
        session.execute("UPDATE narrow SET id = 2")
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "a.csv").write_text("1;a;;7\n")
    session.execute(
        f"CREATE TABLE bare (id INT, n STRING, day DATE) WITH ('connector' = 'filesystem', 'path' = "
        f"'{tmp_path}/bare', 'format' = 'csv', 'csv.header' = 'false', 'csv.delimiter' = ';')"
    )
    with pytest.raises(PenstockError, match=r"DAT-4631.*column 4 of"):
        session.execute("UPDATE bare SET id = 2")


OWN = (
    "$hit",
    "$fate",
    "$row",
    "$source",
    "$action",
    "$new0",
    "$rows",
    "$where",
    "$value0",
    "$on",
    "a`b",
    "`",
)


def test_columns_may_have_any_names(session: Session, tmp_path: Path) -> None:
    quoted = ["`" + name.replace("`", "``") + "`" for name in OWN]
    columns = ", ".join(f"{name} INT" for name in quoted)
    session.execute(
        f"CREATE TABLE `$t` (id INT, {columns}) WITH ('connector' = 'filesystem', "
        f"'path' = '{tmp_path / 't'}', 'format' = 'parquet')"
    )
    expected = {number: [number * 10 + place for place in range(len(OWN))] for number in (1, 2, 3)}
    values = ", ".join(f"({', '.join(map(str, (number, *row)))})" for number, row in expected.items())
    session.execute(f"INSERT INTO `$t` VALUES {values}")
    for place, name in enumerate(quoted):
        assert (
            session.execute(f"UPDATE `$t` SET {name} = {name} + 1 WHERE {name} = {10 + place}").rowcount == 1
        )
        expected[1][place] += 1
    source = ", ".join(f"{100 + place} AS {name}" for place, name in enumerate(quoted))
    merged = session.execute(
        f"MERGE INTO `$t` USING (SELECT 2 AS id, {source}) AS `$row` ON `$t`.id = `$row`.id "
        f"WHEN MATCHED AND `$row`.`$hit` = 100 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
        f"WHEN NOT MATCHED BY SOURCE AND `$t`.`$source` = 33 THEN DELETE"
    )
    assert (merged.rowcount, merged.note) == (2, "1 row updated, 1 deleted")
    expected[2] = [100 + place for place in range(len(OWN))]
    del expected[3]
    found = session.execute("SELECT * FROM `$t`").final_rows(PATIENCE_S).to_pylist()
    assert sorted(list(row.values()) for row in found) == [[key, *row] for key, row in expected.items()]
