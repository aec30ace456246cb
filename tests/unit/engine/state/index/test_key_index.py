"""KeyIndex against a dict."""

import datetime
import decimal
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.state.index.key_index import KeyIndex
from tests.harness.length import examples

D = decimal.Decimal
VALUES = {
    pa.int64(): st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 7]),
    pa.int8(): st.integers(-3, 3),
    pa.bool_(): st.booleans(),
    pa.float64(): st.sampled_from([0.0, -0.0, math.nan, math.inf, 1.5]),
    pa.float32(): st.sampled_from([0.0, -0.0, math.nan, 2.5]),
    pa.date32(): st.sampled_from([datetime.date(1969, 1, 1), datetime.date(2024, 1, 1)]),
    pa.timestamp("us"): st.sampled_from([datetime.datetime(1969, 1, 1), datetime.datetime(2024, 1, 1)]),
    pa.decimal128(10, 2): st.sampled_from([D("1.00"), D("-1.00"), D("0.00")]),
    pa.decimal128(38, 0): st.sampled_from([D(2**70), D(-(2**70)), D(2**70 + 1), D(-1)]),
    pa.string(): st.sampled_from(["", "a", "ab", "abcdefgh", "abcdefghi", "x" * 30, "é"]),
    pa.binary(): st.sampled_from([b"", b"\x00", b"\x00\x00"]),
    pa.null(): st.none(),
}
TYPES = st.lists(st.sampled_from(list(VALUES)), min_size=0, max_size=4)


def canonical(value):
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


@st.composite
def steps(draw):
    types = draw(TYPES)
    row = st.tuples(*[st.none() | VALUES[kind] for kind in types])
    action = st.tuples(
        st.sampled_from(["insert", "insert", "remove", "lookup"]), st.lists(row, min_size=1, max_size=12)
    )
    return types, draw(st.lists(action, max_size=12))


def arrays(types, rows):
    return [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]


@settings(max_examples=examples(50), deadline=None, derandomize=True)
@given(steps())
def test_like_a_dict(case):
    types, actions = case
    index, model = KeyIndex(types), {}
    for action, rows in actions:
        columns = arrays(types, rows)
        keys = [tuple(map(canonical, row)) for row in rows]
        if action == "insert":
            slots = index.lookup_or_insert(columns, len(rows)).tolist()
            for key, slot in zip(keys, slots, strict=True):
                assert model.setdefault(key, slot) == slot
        elif action == "lookup":
            assert index.lookup(columns, len(rows)).tolist() == [model.get(key, -1) for key in keys]
        else:
            gone = {key for key in keys if key in model}
            index.remove(np.array([model.pop(key) for key in gone], np.int64))
        check(index, model, types)


def check(index, model, types):
    assert len(index) == len(model)
    slots = index.live_slots()
    assert slots.tolist() == sorted(model.values())
    assert len(set(model.values())) == len(model)
    assert all(slot < index.capacity for slot in model.values())
    columns = index.keys(slots)
    assert [column.type for column in columns] == types
    by_slot = {slot: key for key, slot in model.items()}
    rows = (
        [tuple(canonical(v) for v in row) for row in zip(*[c.to_pylist() for c in columns], strict=True)]
        if types
        else [()] * len(slots)
    )
    assert rows == [by_slot[slot] for slot in slots.tolist()]
    for column in columns:
        column.validate(full=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: [pa.array(n)],
        lambda n: [pa.array([f"key {i}" for i in n])],
        lambda n: [pa.array(n % 7), pa.array([str(i) for i in n])],
    ],
)
def test_many_keys_with_growth_and_churn(make):
    rng = np.random.default_rng(3)
    index = KeyIndex([c.type for c in make(np.arange(1))])
    model = {}
    for _ in range(30):
        numbers = rng.integers(0, 20_000, 3_000)
        slots = index.lookup_or_insert(make(numbers))
        for number, slot in zip(numbers.tolist(), slots.tolist(), strict=True):
            assert model.setdefault(number, slot) == slot
        gone = rng.permutation(list(model))[: rng.choice([10, len(model) // 2])].tolist()
        index.remove(np.array([model.pop(number) for number in gone]))
        assert len(index) == len(model)
    numbers = np.arange(20_000)
    assert index.lookup(make(numbers)).tolist() == [model.get(i, -1) for i in numbers.tolist()]
    index.remove(index.live_slots())
    assert len(index) == 0
    assert (index.lookup(make(numbers)) == -1).all()


def test_strings_of_removed_keys_are_forgotten():
    index = KeyIndex([pa.string(), pa.int64()])
    for round_ in range(50):
        columns = [pa.array([f"{round_} {i}" for i in range(200)]), pa.array(range(200))]
        index.remove(index.lookup_or_insert(columns))
    assert len(index) == 0
    assert index.capacity < 1_000


def test_key_groups_are_those_of_the_stable_hash():
    columns = [pa.array(["LGA", None, "JFK"]), pa.array([1, 2, None])]
    index = KeyIndex([pa.string(), pa.int64()])
    slots = index.lookup_or_insert(columns)
    assert index.key_groups(slots, 128).tolist() == (stable_hash(columns) % np.uint64(128)).tolist()
    assert KeyIndex([]).key_groups(np.zeros(1, np.int64), 128).tolist() == [0]


@pytest.mark.parametrize("texts", [0, 1, 3])
@pytest.mark.parametrize("numbers", [1, 31, 32, 64, 70])
def test_many_columns_keep_their_nulls_apart(numbers, texts):
    """Each row has another column that is NULL."""
    count = numbers + texts
    rows = [pa.array([None if i == k else 0 for k in range(count)], pa.int64()) for i in range(numbers)]
    rows[1:1] = [pa.array([None if numbers + i == k else "x" for k in range(count)]) for i in range(texts)]
    index = KeyIndex([column.type for column in rows])
    slots = index.lookup_or_insert(rows)
    assert sorted(slots) == [*range(count)] and (index.lookup(rows) == slots).all()
    assert [c.to_pylist() for c in index.keys(slots)] == [c.to_pylist() for c in rows]
    index.remove(slots[1:])
    assert (index.lookup(rows)[1:] == -1).all() and index.lookup(rows)[0] == slots[0]


NESTED = {
    "list": (
        pa.list_(pa.float64()),
        [[0.0], [-0.0], None, [], [float("nan")], [float("nan")], [None], [0.0, 1.0], [0.0]],
        6,
    ),
    "struct": (
        pa.struct([("a", pa.string()), ("b", pa.list_(pa.int32()))]),
        [{"a": "x", "b": [1]}, {"a": None, "b": None}, None, {"a": "x", "b": [1]}],
        3,
    ),
    "quotes": (pa.list_(pa.string()), [["a", "b"], ['a","b'], ["a\\", "b"], ["null"], [None]], 5),
    "map": (pa.map_(pa.string(), pa.int64()), [[("k", 1)], [("k", 2)], [("k", 1)], [], None], 4),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("beside", [False, True])
def test_nested_keys(name, beside):
    kind, values, count = NESTED[name]
    column = pa.concat_arrays([pa.array([values[0]], kind), pa.array(values, kind)]).slice(1)
    columns = [column, pa.array([7] * len(values), pa.int64())] if beside else [column]
    index = KeyIndex([c.type for c in columns])
    slots = index.lookup_or_insert(columns)
    assert len(index) == count
    assert (index.lookup(columns) == slots).all()
    again = KeyIndex([c.type for c in columns])
    assert len(set(again.lookup_or_insert(index.keys(np.unique(slots))).tolist())) == count
    assert (stable_hash(index.keys(slots)) == stable_hash(columns)).all()
    index.remove(np.unique(slots)[: count - 1])
    assert len(index) == 1
    assert len(set(index.lookup_or_insert(columns).tolist())) == count
    index.remove(index.live_slots())
    assert len(index) == 0
