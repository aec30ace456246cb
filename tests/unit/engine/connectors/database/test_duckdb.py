"""DuckDB files: upserts, deletes and transactions against a dict, lookups, several connections, exact types."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, DOUBLE, INT, STRING
from penstock.engine.connectors.database.database import Condition, Select
from penstock.engine.connectors.database.duckdb import DuckDbFile
from tests.unit.engine.connectors.database.files import SCHEMA, rows_in, writable

KIND, MADE = "duckdb", DuckDbFile


def rows(*pairs: tuple[int | None, str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([k for k, _ in pairs], pa.int64()), pa.array([v for _, v in pairs], pa.string())],
        schema=SCHEMA.to_arrow(),
    )


def keys(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(values, pa.int64())})


@settings(max_examples=8, deadline=None, derandomize=True)
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


def test_connections_of_a_process_share_the_file_and_a_conflict_may_be_tried_again(tmp_path: Path) -> None:
    first = writable(tmp_path / "f", KIND)
    first.insert("out", rows((1, "a")))
    other = DuckDbFile(str(tmp_path / "f"))
    with pytest.raises(PenstockError, match="onflict") as caught, first.transaction():
        first.replace("out", ["k"], rows((1, "b")))
        with other.transaction():
            assert rows_in(other) == [(1, "a")], "what is not committed is not seen"
            other.replace("out", ["k"], rows((1, "c")))
    assert caught.value.retriable
    assert rows_in(first) == [(1, "a")]
    first.close()
    assert rows_in(other) == [(1, "a")]
    other.close()


def test_a_file_that_may_not_be_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = writable(tmp_path / "f", KIND)
    database.insert("out", rows((1, "a")))
    database.close()
    monkeypatch.setattr("os.access", lambda path, mode: False)
    reader = DuckDbFile(str(tmp_path / "f"))
    assert rows_in(reader) == [(1, "a")]
    with pytest.raises(PenstockError, match="read-only"):
        reader.insert("out", rows((2, "b")))
    reader.close()


def test_rows_have_exactly_the_declared_types(tmp_path: Path) -> None:
    database = writable(tmp_path / "f", KIND)
    database.insert("out", rows((1, "5")))
    narrow = Select("out", (Field("k", INT), Field("v", STRING)))
    (batch,) = database.rows(narrow)
    assert [column.to_pylist() for column in batch.columns] == [[1], ["5"]]
    assert batch.schema.types == [pa.int32(), pa.string()]
    database.insert("out", rows((2**40, "6")))
    with pytest.raises(PenstockError, match=r"DAT-4704.*column k"):
        list(database.rows(narrow))
    assert sum(batch.num_rows for batch in database.rows(Select("out", ()))) == 2
    database.close()


def test_only_comparisons_that_are_ours_are_sent() -> None:
    pushes = DuckDbFile.pushes
    assert pushes(None, BIGINT, "<") and pushes(None, STRING, "=") and pushes(None, STRING, "IS NULL")  # type: ignore[arg-type]
    assert not pushes(None, STRING, "<") and not pushes(None, DOUBLE, "=")  # type: ignore[arg-type]
