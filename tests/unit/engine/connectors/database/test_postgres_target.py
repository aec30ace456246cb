"""Epochs of a PostgreSQL table: each is there once, with its number, or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.epoch_target import DELETED, EpochWriter, StagedForm
from penstock.engine.connectors.database import postgres_target
from penstock.engine.connectors.database.postgres_target import PostgresTarget
from tests.streaming.databases.places import Place
from tests.streaming.databases.two_phase import table

pytestmark = pytest.mark.xdist_group("postgres-target")
WRITER = EpochWriter("owner", "op", 0)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("postgres", tmp_path)


def rows(*keys: int | None) -> list[pa.RecordBatch]:
    return [pa.record_batch({"k": pa.array(keys, pa.int32()), "v": ["v"] * len(keys)})]


def changes(*changed: tuple[bool, int, str | None]) -> list[pa.RecordBatch]:
    gone, keys, values = zip(*changed, strict=True)
    return [
        pa.record_batch(
            {DELETED: list(gone), "k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.string())}
        )
    ]


def test_an_epoch_is_written_with_its_number(place: Place) -> None:
    place.run("CREATE TABLE out (k INTEGER, v VARCHAR(20))")
    target = PostgresTarget(table(place))
    assert target.form is StagedForm.INSERTS
    target.fence([WRITER])
    assert target.last_committed(WRITER) == 0
    target.commit(WRITER, 3, [*rows(1, 2), *rows(None)])
    # once more, as after a lost answer
    target.commit(WRITER, 3, rows(9))
    assert place.ask("SELECT k FROM out ORDER BY k") == [(1,), (2,), (None,)]
    assert target.last_committed(WRITER) == 3
    target.retire(WRITER)
    assert target.last_committed(WRITER) == 0
    target.close()


def test_upserts_and_deletes_by_key(place: Place) -> None:
    place.run("CREATE TABLE out (k INTEGER PRIMARY KEY, v VARCHAR(20))")
    target = PostgresTarget(table(place, key=True))
    assert target.form is StagedForm.UPSERTS
    target.fence([WRITER])
    target.commit(WRITER, 1, changes((False, 1, "a"), (False, 2, 'b"\\N,'), (False, 3, "")))
    target.commit(WRITER, 2, [*changes((True, 1, None), (False, 2, None)), *changes((True, 7, "x"))])
    assert place.ask("SELECT * FROM out ORDER BY k") == [(2, None), (3, "")]
    target.close()


def test_an_attempt_that_was_taken_over_from_writes_nothing(place: Place) -> None:
    place.run("CREATE TABLE out (k INTEGER, v VARCHAR(20))")
    first, second = PostgresTarget(table(place)), PostgresTarget(table(place))
    first.fence([WRITER])
    second.fence([WRITER])
    with pytest.raises(PenstockError) as raised:
        first.commit(WRITER, 1, rows(1))
    assert raised.value.code == "STA-3504" and place.ask("SELECT * FROM out") == []
    second.commit(WRITER, 1, rows(2))
    # what a copied job finds staged of the other is committed by whichever comes first
    copy = PostgresTarget(table(place))
    copy.fence([EpochWriter("copy", "op", 0)])
    copy.commit(WRITER, 1, rows(3))
    copy.commit(WRITER, 2, rows(4))
    second.commit(WRITER, 2, rows(5))
    assert sorted(place.ask("SELECT k FROM out")) == [(2,), (4,)]
    for target in (first, second, copy):
        target.close()


def test_a_crash_or_a_cut_connection_leaves_neither_rows_nor_number(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.run("CREATE TABLE out (k INTEGER PRIMARY KEY, v VARCHAR(20))")
    target = PostgresTarget(table(place, key=True))
    target.fence([WRITER])

    def crash(_: str) -> None:
        raise RuntimeError("the process ends here")

    with monkeypatch.context() as patched:
        patched.setattr(postgres_target, "failpoint", crash)
        with pytest.raises(RuntimeError):
            target.commit(WRITER, 1, changes((False, 1, "a")))
    assert place.ask("SELECT * FROM out") == [] and target.last_committed(WRITER) == 0
    place.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        "pg_backend_pid()"
    )
    with pytest.raises(PenstockError) as raised:
        target.commit(WRITER, 1, changes((False, 1, "a")))
    assert raised.value.retriable
    # the attempt continues on another connection
    target.commit(WRITER, 1, changes((False, 1, "a")))
    assert place.ask("SELECT * FROM out") == [(1, "a")]
    target.close()


def test_rows_that_the_database_refuses(place: Place) -> None:
    place.run("CREATE TABLE out (k INTEGER CHECK (k > 0), v VARCHAR(20))")
    target = PostgresTarget(table(place))
    target.fence([WRITER])
    with pytest.raises(PenstockError) as raised:
        target.commit(WRITER, 4, rows(1, -1))
    assert raised.value.code == "DAT-4707" and "checkpoint 4" in raised.value.message
    assert target.last_committed(WRITER) == 0 and place.ask("SELECT * FROM out") == []
    target.close()
