"""An index of a view finds what a scan of its state finds, whatever has changed in which order."""

import random

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process import view_index
from penstock.engine.connectors.in_process.materialized_views import (
    CHANGES_KEPT,
    INDEXES_KEPT,
    MaterializedContents,
)

SCHEMA = pa.schema([("k", pa.int64()), ("name", pa.string())])


def batch(rows, weights=None):
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(SCHEMA)]
    made = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    return Batch(made, None if weights is None else np.array(weights, np.int64))


class View:
    """Contents whose changes complete one checkpoint after the other."""

    def __init__(self, rows=()):
        self.contents = MaterializedContents("v", SCHEMA)
        self.contents.begin(1, 0, 1, [])
        self.checkpoint = 0
        self.change(batch(list(rows)))

    def change(self, *batches):
        self.checkpoint += 1
        self.contents.stage(self.checkpoint, list(batches))
        self.contents.complete(self.checkpoint)


def found(index, key, column=0):
    """Return the rows of a key, compared by value as a caller does."""
    rows = index.lookup([pa.array([key], SCHEMA.field(column).type)]).to_pylist()
    return sorted(row["name"] for row in rows if row[SCHEMA.field(column).name] == key)


def test_rows_are_found_by_any_column():
    view = View([(1, "a"), (2, "b"), (2, "c")])
    assert [found(view.contents.index((0,)), key) for key in (1, 2, 3)] == [["a"], ["b", "c"], []]
    assert found(view.contents.index((1,)), "b", 1) == ["b"]
    both = view.contents.index((0, 1)).lookup([pa.array([2]), pa.array(["c"])])
    assert both.to_pylist() == [{"k": 2, "name": "c"}]


def test_changes_are_followed():
    view = View([(1, "a")])
    index = view.contents.index((0,))
    assert found(index, 1) == ["a"]
    view.change(batch([(1, "a"), (1, "z")], [-1, 1]))
    assert found(index, 1) == ["z"]
    view.change(batch([(1, "z")], [-1]))
    assert found(index, 1) == []
    # a row that is there twice is found twice
    view.change(batch([(5, "x")], [2]))
    assert found(index, 5) == ["x", "x"]


def test_a_reader_that_is_far_behind_reads_the_whole_state():
    view = View([(1, "a")])
    index = view.contents.index((0,))
    assert found(index, 1) == ["a"]
    for number in range(CHANGES_KEPT + 2):
        view.change(batch([(2, str(number))]))
    assert len(found(index, 2)) == CHANGES_KEPT + 2


@pytest.mark.parametrize("seed", range(6))
def test_random_changes_agree_with_a_scan(seed, monkeypatch):
    # entries that cancel out are dropped early here
    monkeypatch.setattr(view_index, "REBUILD_ROWS", 20)
    choice = random.Random(seed)
    view, held = View(), []
    index = view.contents.index((0,))
    for step in range(60):
        rows, weights = [], []
        for _ in range(choice.randint(0, 6)):
            # a row goes, or a new one comes
            if held and choice.random() < 0.5:
                rows.append(held.pop(choice.randrange(len(held))))
                weights.append(-1)
            else:
                row = (choice.randint(0, 5), choice.choice("abc"))
                held.append(row)
                rows.append(row)
                weights.append(1)
        if rows:
            view.change(batch(rows, weights))
        if step % choice.randint(1, 4) == 0:
            for key in range(6):
                assert found(index, key) == sorted(name for k, name in held if k == key), (step, key)
    # runs of like sizes are merged, so a lookup searches few
    assert len(index._runs) <= 8


def test_null_keys_hash_like_null_alone():
    view = View([(None, "n"), (0, "zero")])
    rows = view.contents.index((0,)).lookup([pa.array([None], pa.int64())]).to_pylist()
    assert {"k": None, "name": "n"} in rows and {"k": 0, "name": "zero"} not in rows


def test_few_indexes_are_kept():
    wide = pa.schema([(str(i), pa.int64()) for i in range(INDEXES_KEPT + 1)])
    contents = MaterializedContents("w", wide)
    first = contents.index((0,))
    for column in range(1, INDEXES_KEPT + 1):
        contents.index((column,))
    assert contents.index((0,)) is not first
