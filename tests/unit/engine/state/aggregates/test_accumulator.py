"""The table of int64 columns by slot that most accumulators are part of: it grows, is shared, is spilled, and
restores what it wrote.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.state import mapped_arrays
from penstock.engine.state.aggregates.accumulator import (
    LINE_WORDS,
    FloatPart,
    SlotTable,
    TablePart,
    line_aligned,
    padded,
)
from penstock.engine.storage.spill_files import SpillFiles, pages_of


@pytest.mark.parametrize("width", range(1, 20))
def test_no_row_crosses_a_cache_line_that_fits_into_one(width: int) -> None:
    words = padded(width)
    assert words >= width
    rows = line_aligned(5, words)
    assert rows.shape == (5, words) and rows.ctypes.data % (8 * LINE_WORDS) == 0 and not rows.any()
    if width <= LINE_WORDS:
        assert LINE_WORDS % words == 0 and words < 2 * width
    else:
        assert words == width


@pytest.mark.parametrize("width", [1, 3, 8, 11])
def test_a_table_is_a_list_of_rows_by_slot(width: int) -> None:
    random, table, model = Random(width), SlotTable(width), np.zeros((0, width), np.int64)
    for _ in range(30):
        if (capacity := random.randrange(70)) > len(model):
            assert table.reserve(capacity)
            model = np.vstack([model, np.zeros((capacity - len(model), width), np.int64)])
        else:
            assert not table.reserve(capacity), "a table does not shrink"
        if not len(model):
            continue
        slots = np.array([random.randrange(len(model)) for _ in range(random.randrange(9))], np.int64)
        for slot in slots:
            table.rows[slot, :width] += slot + 1
            model[slot] += slot + 1
        assert table.gathered(slots).tolist() == model[slots].T.tolist()
        gone = np.unique(slots)[:2]
        table.clear(gone)
        model[gone] = 0
        assert table.gathered(np.arange(len(model))).tolist() == model.T.tolist()


def test_halves_of_two_states_lie_side_by_side() -> None:
    table, slots = SlotTable(2), np.array([2, 0])
    table.reserve(3)
    table.rows[:, :2] = [[1, 10], [2, 20], [3, 30]]
    pairs = np.full((2, 4), -1)
    table.gather_half(slots, pairs, 0)
    table.rows[:, :2] += 5
    table.gather_half(slots, pairs, 1)
    assert pairs.tolist() == [[3, 8, 1, 6], [30, 35, 10, 15]]


def test_a_part_of_a_shared_table_reads_its_columns_of_it() -> None:
    table, parts = SlotTable(3), [TablePart(1), TablePart(2)]
    table.reserve(2)
    parts[0].share(table.rows[:, :1])
    parts[1].share(table.rows[:, 1:3])
    table.rows[:, :3] = [[1, 2, 3], [4, 5, 6]]
    slots = np.array([1, 0])
    assert [part.state(slots).tolist() for part in parts] == [[[4, 1]], [[5, 2], [6, 3]]]
    parts[1].clear(np.array([0]))
    assert table.gathered(slots).tolist() == [[4, 1], [5, 0], [6, 0]]


def test_columns_of_a_checkpoint_do_not_share_memory_and_restore_into_other_slots() -> None:
    part, again = TablePart(2), TablePart(2)
    part.reserve(3)
    part.table[:] = [[1, 2], [3, 4], [5, -(2**63)]]
    columns = part.freeze(3)(None)(np.array([2, 0]))
    part.table[:] = 0
    again.reserve(9)
    again.restore(np.array([7, 8]), columns)
    assert again.state(np.array([8, 7, 0])).tolist() == [[1, 5, 0], [2, -(2**63), 0]]


def test_a_part_of_floating_point_numbers_writes_them_as_such() -> None:
    part, again = FloatPart(2), FloatPart(2)
    part.reserve(2)
    part.table.view(np.float64)[:] = [[0.5, np.nan], [-0.0, np.inf]]
    columns = part.freeze(2)(None)(np.arange(2))
    assert [column.type for column in columns] == [pa.float64()] * 2
    assert columns[0].to_pylist() == [0.5, -0.0]
    again.reserve(2)
    again.restore(np.arange(2), columns)
    assert np.array_equal(again.table, part.table), "bit by bit, -0.0 and NaN too"


def test_a_table_on_disk_is_the_table_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_arrays, "LEAST_BYTES", 1)
    part = TablePart(3)
    part.reserve(10)
    part.table[:] = np.arange(30).reshape(10, 3)
    assert part.spillable_bytes() == 10 * padded(3) * 8
    part.spill(SpillFiles(tmp_path))
    assert part.spillable_bytes() == 0 and pages_of(part.table) is not None
    part.table[4] += 1
    part.reserve(50)
    assert pages_of(part.table) is not None, "it grows on disk"
    slots = np.array([4, 9, 49])
    assert part.state(slots).T.tolist() == [[13, 14, 15], [27, 28, 29], [0, 0, 0]]
