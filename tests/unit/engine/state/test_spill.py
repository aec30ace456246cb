"""State on disk: stores give the same whether rows lie in memory or in mapped files; the budget is kept,
or the job fails by name.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.state import mapped_arrays
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.word_index import WordIndex
from penstock.engine.state.rows.row_store import RowStore
from penstock.engine.storage import spill_files
from penstock.engine.storage.spill_files import SpillFiles, evict_pages, mapped_bytes, pages_of
from penstock.engine.task.memory_budget import MemoryBudget, StateSize

SCHEMA = pa.schema([("k", pa.int64()), ("text", pa.string()), ("list", pa.list_(pa.int32()))])


def _rows(first: int, count: int) -> pa.RecordBatch:
    keys = range(first, first + count)
    columns = [
        pa.array(keys, pa.int64()),
        pa.array([None if k % 7 == 0 else f"text {k}" * (k % 5) for k in keys]),
        pa.array([[k, -k] for k in keys]),
    ]
    return pa.RecordBatch.from_arrays(
        [c.cast(f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def test_a_store_on_disk_is_the_store_in_memory(tmp_path: Path) -> None:
    random, files = np.random.default_rng(3), SpillFiles(tmp_path)
    memory, disk = RowStore(SCHEMA), RowStore(SCHEMA)
    kept = None
    for step in range(120):
        if random.random() < 0.6 or len(memory) < 50:
            rows = _rows(step * 1000, int(random.integers(1, 400)))
            assert np.array_equal(memory.append(rows), disk.append(rows))
        else:
            live = memory.live_ids()
            gone = random.choice(live, int(live.size * random.random()), replace=False)
            memory.drop(gone)
            disk.drop(gone)
        if random.random() < 0.5:
            disk.spill(files)
            assert disk.spillable_bytes() == 0
        ids = random.permutation(memory.live_ids())[:200]
        assert disk.take(ids).equals(memory.take(ids)) and disk.take(ids, [1]).equals(memory.take(ids, [1]))
        if step == 60:
            kept = disk.freeze(np.sort(ids)), memory.take(np.sort(ids))
    assert kept is not None and [rows for *_, rows in kept[0].pieces(np.arange(200))] == [kept[1]], (
        "a snapshot outlives compaction"
    )
    assert StateSize.of([disk]).spilled > 0
    assert list(tmp_path.iterdir()) == [], "files have no name"


def test_memory_counts_no_row_that_is_on_disk() -> None:
    store = RowStore(SCHEMA)
    store.append(_rows(0, 10_000))
    before = StateSize.of([store])
    rows = store.spillable_bytes()
    store.spill(SpillFiles())
    after = StateSize.of([store, [store, store]])
    assert before.resident - after.resident == rows - store.spillable_bytes() and after.spilled > rows * 0.9
    assert before.spilled == 0


def _settle(budget: MemoryBudget, *states: Iterable[object]) -> None:
    for number, state in enumerate(states):
        budget.settle(number, f"operator {number}", 7, [state])


def test_a_slot_spills_before_it_fails() -> None:
    stores = [RowStore(SCHEMA), RowStore(SCHEMA)]
    for store in stores:
        store.append(_rows(0, 4000))
    held = StateSize.of(stores).resident
    _settle(MemoryBudget(held, SpillFiles()), *stores)
    assert StateSize.of(stores).spilled == 0
    _settle(MemoryBudget(held - 1, SpillFiles()), *stores)
    assert StateSize.of(stores[1:]).spilled > 0 and StateSize.of(stores[:1]).spilled == 0, (
        "it is enough to spill one of them"
    )
    with pytest.raises(PenstockError) as caught:
        _settle(MemoryBudget(1000, SpillFiles()), *stores)
    error = caught.value
    assert error.code == "STA-3050" and "over the budget of 1,000 bytes" in error.message
    assert "operator 0 holds 7 entries" in str(error.detail) and "state.memory.budget-per-slot" in str(
        error.hint
    )


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RowStore(SCHEMA)
    store.append(_rows(0, 100))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        monkeypatch.context() as patch,
        pytest.raises(PenstockError, match="No space left on device") as caught,
    ):
        patch.setattr(spill_files, "_written", full)
        store.spill(SpillFiles(tmp_path))
    assert (
        caught.value.code == "STA-3051" and caught.value.retriable and str(tmp_path) in caught.value.message
    )
    assert store.take(np.arange(100)).equals(_rows(0, 100)), "what could not be written is still there"
    (tmp_path / "file").touch()
    with pytest.raises(PenstockError) as caught:
        store.spill(SpillFiles(tmp_path / "file" / "below"))
    assert caught.value.code == "STA-3051"


def test_an_index_of_many_keys_is_kept_within_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, memory = KeyIndex([pa.int64()]), KeyIndex([pa.int64()])
    budget = MemoryBudget(12 << 20, SpillFiles(tmp_path))
    held = []
    for first in range(0, 1_000_000, 50_000):
        keys = [pa.array(np.arange(first, first + 50_000) * 7)]
        assert np.array_equal(index.lookup_or_insert(keys), memory.lookup_or_insert(keys))
        held.append(budget.settle("op", "keys", len(index), [index]).resident)
    assert max(held) <= budget.limit < StateSize.of([memory]).resident / 3
    assert StateSize.of([index]).spilled > 2 * budget.limit
    gone = index.live_slots()[::3]
    index.remove(gone)
    memory.remove(gone)
    asked = [pa.array(np.arange(0, 7_000_000, 11))]
    assert np.array_equal(index.lookup(asked), memory.lookup(asked))
    monkeypatch.setattr(mapped_arrays, "LEAST_BYTES", 1 << 40)
    with pytest.raises(PenstockError, match="over the budget"):
        MemoryBudget(12 << 20, SpillFiles(tmp_path)).settle("op", "keys", len(memory), [memory])


def test_an_array_that_does_not_fit_the_disk_stays_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = WordIndex()
    index.lookup_or_insert(np.arange(200_000))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # file systems tell of a full disk when blocks are reserved, or not before they are written
    for owner, name in ((os, "posix_fallocate"), (spill_files, "_write")):
        with (
            monkeypatch.context() as patch,
            pytest.raises(PenstockError, match="No space left on device") as caught,
        ):
            patch.setattr(owner, name, full)
            index.spill(SpillFiles(tmp_path))
        assert caught.value.code == "STA-3051" and caught.value.retriable
        assert list(tmp_path.iterdir()) == []
    assert np.array_equal(index.keys[index.lookup_or_insert(np.arange(200_000))], np.arange(200_000))


def test_an_array_is_copied_with_zeros_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, array = SpillFiles(tmp_path), np.arange(3_000_000.0).reshape(-1, 3)
    monkeypatch.setattr(spill_files, "_PIECE", 100_003)
    for given in (array, array[::2], array[:, :2]):
        copy = files.copied(given, len(given) + 50_001)
        assert np.array_equal(copy[: len(given)], given) and not copy[len(given) :].any()
        assert copy.shape == (len(given) + 50_001, given.shape[1]) and pages_of(copy) is not None
        assert np.array_equal(files.copied(given), given)


def test_pages_of_arrays_are_given_back(tmp_path: Path) -> None:
    array = SpillFiles(tmp_path).zeros(1 << 23, np.dtype(np.int64))
    before = mapped_bytes()
    array[:] = 5
    full = mapped_bytes()
    pages = pages_of(array)
    assert pages is not None and full - before > 50 << 20
    evict_pages([pages])
    assert full - mapped_bytes() > 50 << 20 and (array == 5).all()


def test_pages_stay_while_much_memory_is_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = KeyIndex([pa.int64()])
    # scattered, so that the table of their hashes is read
    keys = [pa.array(np.arange(1_000_000) * 1_000)]
    index.lookup_or_insert(keys)
    budget = MemoryBudget(8 << 20, SpillFiles(tmp_path))
    budget.settle("op", "keys", len(index), [index])
    for available, stay in ((1 << 40, True), (0, False)):
        monkeypatch.setattr(spill_files, "_available_bytes", lambda available=available: available)
        index.lookup(keys)
        full = mapped_bytes()
        budget.settle("op", "keys", len(index), [index])
        assert (full - mapped_bytes() < 1 << 20) == stay, "pages are released where memory is short"
