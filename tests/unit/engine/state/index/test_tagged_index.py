"""Rows of words and strings to dense slots, against a dict: growth, removal, freed bytes, spilling."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.kernels.index import tagged_index as kernel
from penstock.engine.state import mapped_arrays
from penstock.engine.state.index import tagged_index, word_index
from penstock.engine.state.index.tagged_index import RowIndex, StringIndex
from penstock.engine.storage.spill_files import SpillFiles
from tests.unit.engine.state.index import word_models

Row = tuple[int, ...]


def words(rows: list[Row], width: int) -> np.ndarray:
    return np.array(rows, np.int64).reshape(len(rows), width)


@pytest.fixture(params=["at once", "gradually", "in pages"])
def growth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of 64 entries grow while they are used, a place in a step, or they are rebuilt."""
    if request.param == "in pages":
        word_models.use_small_pages(monkeypatch)
    if request.param != "at once":
        monkeypatch.setattr(word_index, "GRADUAL_BITS", 6)
        monkeypatch.setattr(word_index, "MIGRATED_LEAST", 1)


@pytest.mark.usefixtures("growth")
@pytest.mark.parametrize("places", [1, 8, 1 << 16])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_rows_like_a_dict(width: int, places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where many rows share a place of those found last, and where these are left out for some calls."""
    monkeypatch.setattr(tagged_index, "_RECENT_PLACES", places)
    for seed in range(20):
        random, index = Random(seed), RowIndex(width)
        monkeypatch.setattr(tagged_index, "_ROWS_LEAST", random.choice([0, 50, 1_024]))
        monkeypatch.setattr(tagged_index, "_CALLS_WITHOUT", random.choice([0, 1]))
        known = [tuple(random.choices((0, 1, -1, 2**63 - 1, 1 << 32), k=width)) for _ in range(150)]
        model: dict[Row, int] = {}
        for _ in range(8):
            if random.random() < 0.6:
                rows = random.choices(known, k=random.randrange(120))
                new = [i for i, row in enumerate(rows) if row not in model and row not in rows[:i]]
                slots, fresh = index.lookup_or_insert(words(rows, width))
                assert fresh.tolist() == new
                for row, slot in zip(rows, slots.tolist(), strict=True):
                    assert model.setdefault(row, slot) == slot
            elif model:
                gone = random.sample(list(model), random.randint(1, len(model)))
                index.remove(np.array([model.pop(row) for row in gone]))
            assert len(index) == len(model) == len(set(model.values()))
            assert index.live_slots().tolist() == sorted(model.values())
            assert {tuple(index.keys[slot].tolist()) for slot in model.values()} == set(model)
            assert index.lookup(words(known, width)).tolist() == [model.get(row, -1) for row in known]


def test_rows_that_came_not_long_ago_need_no_hash() -> None:
    index, rows = RowIndex(2), np.zeros((5_000, 2), np.int64)
    rows[:, 0] = np.arange(5_000)
    slots = index.lookup_or_insert(rows)[0]
    assert index._slots.state[kernel.FOUND] == 0 and index._calls_without == 15
    for _ in range(15):
        assert (index.lookup(rows) == slots).all() and index._slots.state[kernel.FOUND] == 0
    # after new rows it is tried again whether others were here not long ago
    for found in (0, 5_000, 5_000):
        index._calls_without = 0
        assert (index.lookup_or_insert(rows)[0] == slots).all()
        assert index._slots.state[kernel.FOUND] >= found
    # a removed row is not found, also when its slot has another one
    index.remove(slots[:100])
    assert (index.lookup(rows)[:100] == -1).all()
    other = rows[:100] + np.array([0, 7])
    again = index.lookup_or_insert(np.concatenate([other] * 20))[0]
    assert sorted(again[:100]) == sorted(slots[:100])
    assert (index.lookup(rows)[:100] == -1).all() and (index.lookup(other) == again[:100]).all()
    # nothing is forgotten one by one while it is not in use
    index._calls_without = 1
    index.remove(again[:50])
    assert not index._recent.size and (index.lookup(other)[:50] == -1).all()
    index.remove(index.live_slots())
    assert (index.lookup(rows) == -1).all()


def test_rows_found_last_are_the_same_interpreted() -> None:
    for seed in range(5):
        random = np.random.default_rng(seed)
        rows, arrays = random.integers(-3, 4, (200, 2)), []
        for run in (kernel.insert_rows, kernel.insert_rows.interpreted):
            state, out = np.zeros(kernel.STATE_WORDS, np.int64), np.empty(200, np.int64)
            table, keys, recent = (
                np.zeros(256, np.int64),
                np.zeros((160, 2), np.int64),
                np.zeros(16, np.int64),
            )
            none = np.zeros(0, np.int64)
            assert run(rows, 0, table, 8, none, keys, none, state, recent, True, out) == 200
            assert state[kernel.FOUND] > 0
            arrays.append([one.tolist() for one in (table, keys, state, recent, out)])
        assert arrays[0] == arrays[1]


def test_rows_that_come_again_after_all_were_removed_make_one_table() -> None:
    rows = np.arange(20_000).reshape(10_000, 2)
    texts = pa.array(map(str, range(10_000)))
    for index, keys in ((RowIndex(2), rows), (StringIndex(pa.string()), texts)):
        of = index.lookup_or_insert
        for tables in (5, 2):
            bits = set()
            for first in range(0, 10_000, 10):
                of(keys[first : first + 10])
                bits.add(index._slots.bits)
            assert len(bits) == tables
            assert index.live_slots().tolist() == [*range(10_000)] == index.lookup(keys).tolist()
            index.remove(index.live_slots())


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(1 << 16),
        np.arange(1 << 16) << 48,
        np.arange(1 << 16) << 20,
        np.arange(1 << 16) * 1_000_000_000,
        np.arange(1 << 16, dtype=np.float64).view(np.int64),
        -np.arange(1 << 16),
    ],
    ids=["ids", "high", "middle", "times", "doubles", "negative"],
)
@pytest.mark.parametrize("where", ["first", "second", "both", "swapped"])
def test_rows_of_any_numbers_have_tags_of_their_own(numbers: np.ndarray, where: str) -> None:
    """The table is searched by the high bits of the tag, so those are spread too."""
    rows = np.zeros((1 << 16, 2), np.int64)
    if where != "second":
        rows[:, 0] = numbers
    if where in ("second", "both"):
        rows[:, 1] = numbers
    if where == "swapped":
        rows[:, 1] = numbers[::-1]
    tags = np.empty(1 << 16, np.int64)
    kernel.tag_rows(np.arange(1 << 16), rows, tags)
    # of 2**16 random numbers as many of 2**16 places are taken as e**-1 leaves: 41,427
    assert np.unique(tags >> 16).size > 38_000
    # and half a pair of 32 bits are equal
    assert np.unique(tags).size > (1 << 16) - 100


STRINGS: dict[pa.DataType, list[Any]] = {
    pa.string(): [None, "", "a", "é", "abcdefgh", "abcdefghi", "x" * 300, *(f"key {i}" for i in range(90))],
    pa.binary(): [None, b"", b"\x00", b"\x00\x00", b"\xff" * 20],
}


@pytest.mark.usefixtures("growth")
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("kind", STRINGS, ids=str)
def test_strings_like_a_dict(
    kind: pa.DataType, on_disk: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mapped_arrays, "LEAST_BYTES", 1)
    for seed in range(10 if on_disk else 30):
        random, index = Random(seed), StringIndex(kind)
        model: dict[Any, int] = {}
        for _ in range(8):
            if random.random() < 0.6:
                values = random.choices(STRINGS[kind], k=random.randrange(120))
                slots = index.lookup_or_insert(pa.array(values, kind)).tolist()
                for value, slot in zip(values, slots, strict=True):
                    assert model.setdefault(value, slot) == slot
            elif model:
                gone = random.sample(list(model), random.randint(1, len(model)))
                index.remove(np.array([model.pop(value) for value in gone]))
            if on_disk and random.random() < 0.4:
                for mapped in (index, index._slots):
                    mapped.spill(SpillFiles(tmp_path))
                    assert mapped.spillable_bytes() == 0
            assert len(index) == len(model) == len(set(model.values()))
            assert index.live_slots().tolist() == sorted(model.values())
            assert index.lookup(pa.array(STRINGS[kind], kind)).tolist() == [
                model.get(value, -1) for value in STRINGS[kind]
            ]
            slots = np.array(list(model.values())[::-1], np.int64)
            keys = index.keys(slots)
            keys.validate(full=True)
            assert keys.type == kind and keys.to_pylist() == list(model)[::-1]
            lengths = [len(key.encode() if isinstance(key, str) else key or b"") for key in keys.to_pylist()]
            assert index.widths(slots).tolist() == lengths


def test_bytes_of_removed_strings_are_used_again() -> None:
    index = StringIndex(pa.string())
    index.lookup_or_insert(pa.array(["stays"]))
    for round_ in range(200):
        slots = index.lookup_or_insert(pa.array([f"{round_:03d}" + "x" * 200] * 2))
        index.remove(slots[:1])
    assert index.arena.size <= 2048, "40,000 bytes came and went"
    assert index.keys(index.live_slots()).to_pylist() == ["stays"]


def test_a_string_longer_than_the_arena_makes_it_grow() -> None:
    index = StringIndex(pa.string())
    values = pa.array(["a", "b" * 5_000, "c", "d" * 100_000])
    slots = index.lookup_or_insert(values)
    assert index.keys(slots).equals(values) and index.lookup(values).tolist() == slots.tolist()


def test_a_sliced_column_is_read_from_where_it_begins() -> None:
    column = pa.array(["zero", "one", None, "three"]).slice(1)
    index = StringIndex(pa.string())
    assert index.keys(index.lookup_or_insert(column)).to_pylist() == ["one", None, "three"]


@pytest.mark.parametrize("texts", [False, True])
def test_a_large_index_grows_while_it_is_used(texts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of each step are looked up, removed and inserted again while entries are in both tables."""
    monkeypatch.setattr(word_index, "GRADUAL_BITS", 6)
    monkeypatch.setattr(word_index, "MIGRATED_LEAST", 1)
    random, index, model = Random(5), StringIndex(pa.string()) if texts else RowIndex(2), dict[int, int]()

    def asked(keys: list[int]) -> Any:
        return pa.array([f"key {key}" for key in keys]) if texts else words([(key, -key) for key in keys], 2)

    def insert(keys: list[int]) -> None:
        found = index.lookup_or_insert(asked(keys))
        for key, slot in zip(keys, (found if texts else found[0]).tolist(), strict=True):
            assert model.setdefault(key, slot) == slot

    def check() -> None:
        keys = [*model, -1]
        assert index.lookup(asked(keys)).tolist() == [*model.values(), -1]
        assert len(index) == len(model) == len(set(model.values()))

    grows = 0
    for _ in range(4_000):
        insert([random.randrange(9_000)])
        grows += index._slots.old.size > 0
        if random.random() < 0.2:
            index.remove(np.array([model.pop(random.choice(list(model)))], np.int64))
        if random.random() < 0.01:
            check()
    # a step of one row migrates six places of hundreds or thousands
    assert grows > 300
    # a batch larger than the index, which grows several times within it
    insert([*range(9_000, 30_000)])
    check()
