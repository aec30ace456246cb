"""Deletes against a model in plain Python: what Flink's upsert sink writes reads as the last row of each key, at
each snapshot, whole and as a stream of changes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BOOLEAN, STRING
from penstock.engine.api.source import Position
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.iceberg.source import IcebergSource
from penstock.planner.expressions.nodes import Call, Column, Literal
from tests.unit.engine.connectors.delta.delta_files import read_from, request
from tests.unit.engine.connectors.iceberg.flink_tables import (
    AT,
    COLUMNS,
    EQUAL,
    SCHEMA,
    Change,
    Key,
    fold,
    made,
    read,
    upsert,
)
from tests.unit.engine.connectors.iceberg.foreign_tables import (
    Written,
    commit,
    edit_metadata,
    positions_of,
    puffin,
)
from tests.unit.engine.connectors.iceberg.iceberg_files import declared, loaded

Model = dict[Key, str]


def read_by_rows(path: Path, **options: str) -> Counter[Any]:
    """Return the rows, read one at a time by a reader that begins where the last one was."""
    source = IcebergSource(request(declared(path, COLUMNS, options=options)))
    (split,) = source.splits()
    found: list[Any] = []
    position: Position | None = None
    while (batch := (reader := source.open(split, position)).poll(1)) is not None:
        position = reader.position()
        assert isinstance(batch, Batch) and batch.weights is not None
        found.append((int(batch.weights[0]), *batch.rows.to_pylist()[0].values()))
    return fold(found)


def rows_of(model: Model) -> Counter[Any]:
    return Counter((*key, value) for key, value in model.items())


@pytest.mark.parametrize("partitioned", [False, True])
def test_each_snapshot_has_the_last_row_of_each_key(tmp_path: Path, partitioned: bool) -> None:
    random, model = Random(7), dict[Key, str]()
    made(tmp_path, partitioned=partitioned)
    keys: list[Key] = [(k, g) for k in (1, 2, None) for g in ("a", "b", None)]
    history: list[tuple[int, Model]] = []
    for number in range(4):
        changes: list[Change] = []
        for key in random.choices(keys, k=5):
            changes.append((key, None if random.random() < 0.3 else f"v{number}-{len(changes)}"))
        model = {**model, **dict(changes)}  # type: ignore[dict-item]
        model = {key: value for key, value in model.items() if value is not None}
        # of a key that is written and deleted in one commit Flink leaves its position
        history.append((upsert(tmp_path, changes, partitioned=partitioned), model))
    for snapshot, then in history:
        assert read(tmp_path, **{"scan.snapshot-id": str(snapshot)}) == rows_of(then)
    stream = {
        "scan.mode": "from-snapshot",
        "scan.snapshot-id": str(history[0][0]),
        "read-change-feed": "true",
    }
    ended, then = history[1]
    assert read_by_rows(tmp_path, **stream, **{"scan.end-snapshot-id": str(ended)}) == rows_of(then)
    assert read(tmp_path, **stream) == rows_of(model)
    begun = {"scan.mode": "full", "scan.snapshot-id": str(ended), "read-change-feed": "true"}
    assert read(tmp_path, **begun) == rows_of(model)
    # a delete compares columns that are not read
    assert read(tmp_path, {"v": STRING}) == Counter((value,) for value in model.values())
    # an append after it is not deleted, and is read by itself
    loaded(tmp_path).append(pa.table([[1], ["a"], ["later"]], schema=SCHEMA))
    assert read(tmp_path) == rows_of(model) + Counter([(1, "a", "later")])
    with pytest.raises(PenstockError, match="'read-change-feed' = 'true'") as raised:
        read(tmp_path, **{"scan.mode": "from-snapshot", "scan.snapshot-id": str(history[0][0])})
    assert raised.value.code == "DAT-5308"


def test_a_filter_leaves_out_no_delete(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.append(pa.table([[1, 2], ["a", "a"], ["old", "old"]], schema=SCHEMA))
    # the deleted row has another value, and the file says so by its statistics
    whole = Written(pa.table([[1], ["a"], ["other"]], schema=SCHEMA), EQUAL, (1,))
    commit(tmp_path, whole)
    sides = (Column(STRING, True, index=2), Literal(STRING, False, value="old"))
    wanted = Call(BOOLEAN, True, function="equal", args=sides)
    source = IcebergSource(request(declared(tmp_path, COLUMNS), predicate=wanted))
    assert read_from(source, *source.splits())[0] == [(1, 2, "a", "old")]


def test_deletion_vectors_of_format_version_3(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.append(pa.table([[1, 2, 3], ["a"] * 3, ["x", "y", "z"]], schema=SCHEMA))
    first = table.current_snapshot().snapshot_id
    (task,) = table.scan().plan_files()
    vector = tmp_path / "vectors.puffin"
    vector.write_bytes(puffin(task.file.file_path, 0, 2))
    gone = positions_of(task.file.file_path, 0, 2)
    commit(tmp_path, Written(gone, AT, path=str(vector)))
    edit_metadata(tmp_path, lambda metadata: None)
    assert read(tmp_path) == Counter([(2, "a", "y")])
    assert read(tmp_path, **{"scan.snapshot-id": str(first)}).total() == 3
    stream = {"scan.mode": "from-snapshot", "scan.snapshot-id": str(first), "read-change-feed": "true"}
    assert read(tmp_path, **stream) == Counter([(2, "a", "y")])
    assert read_by_rows(tmp_path, **stream) == Counter([(2, "a", "y")])
