"""The database sink against a dict: the last change of each key in a checkpoint is what the table has, on each
checkpoint and never before it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.errors import PenstockError
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.database import sink as sinks
from penstock.engine.connectors.database.sink import DatabaseSink
from tests.unit.engine.connectors.database.files import SCHEMA, rows_in, table, writable


def sink(path: Path, *, key: bool = True) -> DatabaseSink:
    which = (0,) if key else None
    return DatabaseSink(
        SinkRequest(table(path, "sqlite", key=key), SCHEMA, which, "op", "job", 0, 1, Services(), owner="a")
    )


def changes(*rows: tuple[int, str | None, int]) -> Batch:
    columns = [pa.array([k for k, _, _ in rows], pa.int64()), pa.array([v for _, v, _ in rows], pa.string())]
    return Batch(
        pa.RecordBatch.from_arrays(columns, schema=SCHEMA.to_arrow()),
        np.array([w for *_, w in rows], np.int64),
    )


# per key either nothing, an update to a value, or a deletion: a list of checkpoints, each of batches
STEPS = st.lists(
    st.lists(
        st.dictionaries(st.integers(0, 3), st.none() | st.sampled_from(["x", "y", "z"]), max_size=4),
        max_size=3,
    ),
    max_size=4,
)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(checkpoints=STEPS, small=st.booleans())
def test_the_last_change_of_each_key_is_what_the_table_has(checkpoints: list[Any], small: bool) -> None:
    """Whether rows are staged at the checkpoint or, where they are many, before it."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(sinks, "_BUFFERED_BYTES", 1)
        database = writable(Path(folder) / "f", "sqlite")
        writer, now, committed = sink(Path(folder) / "f"), dict[int, str](), dict[int, str]()
        writer.recover([])
        for number, batches in enumerate(checkpoints, 1):
            for wanted in batches:
                rows: list[tuple[int, str | None, int]] = []
                for k, value in wanted.items():
                    rows += [(k, now.pop(k), -1)] if k in now else []
                    if value is not None:
                        now[k] = value
                        rows.append((k, value, 1))
                writer.write(changes(*rows))
            items = writer.prepare(number)
            assert rows_in(database) == sorted(committed.items()), "nothing is seen before its checkpoint"
            for _ in range(2):
                writer.commit(items)
            committed = dict(now)
            assert rows_in(database) == sorted(committed.items())
        writer.close()
        database.close()


def test_without_a_key_every_row_is_appended(tmp_path: Path) -> None:
    database, writer = writable(tmp_path / "f", "sqlite", key=False), sink(tmp_path / "f", key=False)
    writer.recover([])
    writer.write(Batch(changes((1, "a", 1), (1, "a", 1)).rows))
    writer.write(Batch(changes((1, None, 1)).rows))
    writer.commit(writer.prepare(1))
    assert rows_in(database) == [(1, "a"), (1, "a"), (1, None)]
    assert writer.prepare(2) == [], "a checkpoint of no rows has nothing to commit"
    assert writer._request.metrics.counters == {"rows_committed": 3}
    writer.close()
    database.close()


def test_rows_that_are_aborted_are_nowhere(tmp_path: Path) -> None:
    database, writer = writable(tmp_path / "f", "sqlite"), sink(tmp_path / "f")
    writer.recover([])
    writer.write(changes((1, "a", 1)))
    writer.abort(writer.prepare(1))
    assert database.run("SELECT COUNT(*) FROM penstock_staged") == [(0,)] and rows_in(database) == []
    writer.close()
    database.close()


def test_what_the_database_refuses_for_good_stays_staged(tmp_path: Path) -> None:
    database, writer = writable(tmp_path / "f", "sqlite"), sink(tmp_path / "f")
    database.run(
        "CREATE TRIGGER no BEFORE INSERT ON out WHEN NEW.v = 'bad' BEGIN SELECT RAISE(ABORT, 'not that'); END"
    )
    writer.recover([])
    writer.write(changes((1, "bad", 1), (2, "good", 1)))
    items = writer.prepare(5)
    with pytest.raises(PenstockError, match=r"DAT-4707.*checkpoint 5") as caught:
        writer.commit(items)
    assert "not that" in str(caught.value.detail) and not caught.value.retriable
    assert rows_in(database) == [] and database.run("SELECT COUNT(*) FROM penstock_staged") == [(1,)]
    assert writer._request.metrics.counters == {}, "it is not tried again"
    database.run("DROP TRIGGER no")
    writer.commit(items)
    assert rows_in(database) == [(1, "bad"), (2, "good")]
    writer.close()
    database.close()


def test_what_may_succeed_later_is_tried_again_on_a_new_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, writer = writable(tmp_path / "f", "sqlite"), sink(tmp_path / "f")
    writer.recover([])
    writer.write(changes((1, "a", 1)))
    items, commit, failures = writer.prepare(1), writer._transactions.commit, [1]

    def lost(*what: Any) -> int:
        moved = commit(*what)
        if failures and failures.pop():
            raise PenstockError("DAT-4705", "the answer is lost", retriable=True)
        return moved

    monkeypatch.setattr(writer._transactions, "commit", lost)
    before = writer._database
    writer.commit(items)
    assert writer._database is not before and rows_in(database) == [(1, "a")]
    assert writer._request.metrics.counters == {"database_retries": 1, "rows_committed": 0}
    writer.close()
    database.close()


def test_a_connection_that_stays_lost_is_no_refusal_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, writer = writable(tmp_path / "f", "sqlite"), sink(tmp_path / "f")
    writer.recover([])
    writer.write(changes((1, "a", 1)))
    items = writer.prepare(1)

    def lost(*what: Any) -> int:
        raise PenstockError("DAT-4705", "the connection is lost", retriable=True)

    with monkeypatch.context() as patch:
        patch.setattr(writer._transactions, "commit", lost)
        with pytest.raises(PenstockError, match="DAT-4705") as caught:
            writer.commit(items)
    assert caught.value.retriable and writer._request.metrics.counters["database_retries"] > 0
    writer.commit(items)
    assert rows_in(database) == [(1, "a")]
    writer.close()
    database.close()
