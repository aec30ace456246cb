"""SQLite files: upserts, deletes and transactions against a dict, lookups, locks, and values as it stores them."""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
import tempfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, DATE, DOUBLE, STRING
from penstock.engine.connectors.database import sqlite
from penstock.engine.connectors.database.database import Condition, Select
from penstock.engine.connectors.database.sqlite import SqliteFile, parameters
from tests.harness.length import examples
from tests.unit.engine.connectors.database.files import SCHEMA, rows_in, writable

KIND, MADE = "sqlite", SqliteFile


def rows(*pairs: tuple[int | None, str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([k for k, _ in pairs], pa.int64()), pa.array([v for _, v in pairs], pa.string())],
        schema=SCHEMA.to_arrow(),
    )


def keys(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(values, pa.int64())})


@settings(max_examples=examples(15), deadline=None, derandomize=True)
@given(
    steps=st.lists(
        st.tuples(
            st.booleans(),
            st.sets(st.integers(0, 4), min_size=1),
            st.sampled_from([None, "", "a'b"]),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_upserts_and_deletes_are_those_of_a_dict(
    steps: list[tuple[bool, set[int], str | None, bool]],
) -> None:
    """Each step is a transaction, and some of them are rolled back."""
    with tempfile.TemporaryDirectory() as folder:
        database = writable(Path(folder) / "f", KIND)
        expected: dict[int, str | None] = {}
        for deletes, chosen, value, fails in steps:
            with contextlib.suppress(Rollback), database.transaction():
                if deletes:
                    database.delete("out", keys(*chosen))
                else:
                    database.replace("out", ["k"], rows(*[(k, value) for k in chosen]))
                if fails:
                    raise Rollback
                expected = {k: v for k, v in expected.items() if k not in chosen} | (
                    {} if deletes else dict.fromkeys(chosen, value)
                )
            assert rows_in(database) == sorted(expected.items())
        database.close()


class Rollback(Exception):
    """Ends a transaction."""


def test_a_lookup_has_every_row_of_every_key(tmp_path: Path) -> None:
    database = writable(tmp_path / "f", KIND, key=False)
    database.insert("out", rows((1, "a"), (1, "b"), (2, "a"), (None, "n"), (2**62, None)))
    select = Select("out", SCHEMA.fields)
    found = database.look_up(select, keys(1, 2**62, 7))
    assert sorted(map(str, found.to_pylist())) == sorted(
        map(str, [{"k": 1, "v": "a"}, {"k": 1, "v": "b"}, {"k": 2**62, "v": None}])
    )
    assert found.schema == SCHEMA.to_arrow() and database.look_up(select, keys(9)).schema == SCHEMA.to_arrow()
    both = pa.record_batch({"k": pa.array([1, 2]), "v": ["b", "b"]})
    assert database.look_up(select, both).to_pylist() == [{"k": 1, "v": "b"}]
    fewer = Select("out", SCHEMA.fields, (Condition(SCHEMA[1], "=", ("a",)),))
    assert sorted(row["k"] for row in database.look_up(fewer, keys(1, 2)).to_pylist()) == [1, 2]
    database.close()


def test_columns_and_tables_are_listed(tmp_path: Path) -> None:
    database = writable(tmp_path / "f", KIND)
    assert list(database.columns("out")) == ["k", "v"] and database.columns("none") == {}
    assert database.tables() == ["out"]
    database.close()


def test_a_row_that_is_refused_names_the_file_and_is_no_reason_to_try_again(tmp_path: Path) -> None:
    database = writable(tmp_path / "f", KIND)
    database.insert("out", rows((1, "a")))
    with pytest.raises(PenstockError, match="DAT-4705") as caught, database.transaction():
        database.insert("out", rows((2, "b"), (1, "again")))
    assert str(tmp_path / "f") in caught.value.message and not caught.value.retriable
    assert rows_in(database) == [(1, "a")], "nor is the row beside it there"
    database.close()


def test_a_file_of_something_else_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"no database at all" * 1000)
    with pytest.raises(PenstockError, match="DAT-4701") as caught:
        MADE(str(tmp_path / "f"))
    assert not caught.value.retriable


def test_more_keys_than_a_statement_takes_are_looked_up_in_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_MAX_VALUES", 3)
    database = writable(tmp_path / "f", KIND)
    database.insert("out", rows(*[(k, str(k)) for k in range(10)]))
    found = database.look_up(Select("out", SCHEMA.fields), keys(*range(0, 12, 2)))
    assert found.column(0).to_pylist() == [0, 2, 4, 6, 8]
    database.close()


def test_values_are_stored_as_texts_and_numbers_that_compare_in_their_order() -> None:
    moment = dt.datetime(2024, 2, 29, 12, 0, 0, 5)
    samples = {
        pa.timestamp("us"): ([moment, None], ["2024-02-29 12:00:00.000005", None]),
        pa.timestamp("us", "UTC"): (
            [moment.replace(tzinfo=dt.UTC), None],
            ["2024-02-29 12:00:00.000005Z", None],
        ),
        pa.date32(): ([dt.date(2024, 2, 29), None], ["2024-02-29", None]),
        pa.decimal128(12, 3): ([Decimal("-0.5"), None], ["-0.500", None]),
        pa.bool_(): ([True, None, False], [1, None, 0]),
        pa.int64(): ([2**62, None], [2**62, None]),
    }
    for kind, (values, stored) in samples.items():
        assert parameters(pa.array(values, kind)) == stored, kind


def test_only_comparisons_that_are_ours_are_sent() -> None:
    pushes = SqliteFile.pushes
    assert pushes(None, BIGINT, "<") and pushes(None, STRING, "=") and pushes(None, DATE, "IS NULL")  # type: ignore[arg-type]
    assert not any(pushes(None, kind, "<") for kind in (STRING, DATE, DOUBLE))  # type: ignore[arg-type]


def test_a_locked_sqlite_file_may_be_free_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engine.connectors.database.sqlite.BUSY_S", 0.01)
    path = str(tmp_path / "facts.sqlite")
    writer = SqliteFile(path, writes=True)
    writer.run("CREATE TABLE t (k INTEGER PRIMARY KEY)")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(PenstockError, match="SQLITE_BUSY") as caught:
        writer.run("INSERT INTO t VALUES (1)")
    assert caught.value.retriable and caught.value.sqlstate == "55P03"
    with pytest.raises(PenstockError, match="SQLITE_BUSY") as caught:
        SqliteFile(path)
    assert caught.value.retriable
    other.execute("COMMIT")
    writer.run("INSERT INTO t VALUES (1)")
    with pytest.raises(PenstockError, match="SQLITE_CONSTRAINT") as caught:
        writer.run("INSERT INTO t VALUES (1)")
    assert not caught.value.retriable
    other.close()
    writer.close()
