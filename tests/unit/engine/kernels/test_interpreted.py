"""Kernels that Python runs for a first query, beside their machine code over the same rows."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT, DOUBLE
from penstock.engine.kernels import kernel as module
from penstock.engine.kernels.index import slots
from penstock.engine.kernels.interpreted import interpreted
from penstock.engine.kernels.kernel import I64, IN_I64, Kernel
from penstock.engine.kernels.precompile import every_kernel
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.planner.expressions.nodes import AggregateCall, Column

WORDS = [None, 0, 1, -1, 2**63 - 1, -(2**63), 2**40]
FLOATS = [None, 0.0, -0.0, 1.5, -2.5, 1e308, float("inf"), float("-inf"), float("nan")]
TEXTS = [None, *("äbcdefghijklmnopqrstuvwxyz"[:length] for length in range(20)), "abcdefgx", "x" * 70]
KEYS = {"words": [pa.int64()], "texts": [pa.string()], "rows": [pa.int64(), pa.string()]}
_B, _D = Column(BIGINT, True, index=0, name="b"), Column(DOUBLE, True, index=1, name="d")
CALLS = [
    AggregateCall(function, () if argument is None else (argument,), kind, False)
    for function, argument, kind in (
        ("count", None, BIGINT),
        ("avg", _B, DOUBLE),
        ("sum", _D, DOUBLE),
        ("min", _B, BIGINT),
        ("max", _B, BIGINT),
        ("min", _D, DOUBLE),
        ("max", _D, DOUBLE),
    )
]


def results(kinds: list[pa.DataType], insert_only: bool) -> list[object]:
    """Return everything that an index and accumulators say about random rows."""
    random, found = Random(3), []
    index, distinct = KeyIndex(kinds), DistinctSlots()
    accumulators = Accumulators(CALLS if insert_only else CALLS[:3], insert_only)
    values = {pa.int64(): WORDS, pa.string(): TEXTS}
    for count in (1, 5, 90, 200):
        keys = [pa.array(random.choices(values[kind], k=count), kind) for kind in kinds]
        slots = index.lookup_or_insert(keys, count)
        accumulators.reserve(index.capacity)
        touched = distinct.of(slots, index.capacity)
        before = accumulators.before(touched)
        rows = pa.record_batch(
            {
                "b": pa.array(random.choices(WORDS, k=count), pa.int64()),
                "d": pa.array(random.choices(FLOATS, k=count), pa.float64()),
            }
        )
        weights = None if insert_only else np.array(random.choices([1, -1, 3], k=count), np.int64)
        accumulators.add(slots, rows, weights)
        found += [slots.tolist(), touched.tolist(), [str(column) for column in index.keys(touched)]]
        found += [str(column) for column in accumulators.before_and_after(touched, before)]
    return found


@pytest.mark.parametrize("insert_only", [True, False])
@pytest.mark.parametrize("kinds", KEYS.values(), ids=KEYS)
def test_python_computes_what_machine_code_does(
    kinds: list[pa.DataType], insert_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = results(kinds, insert_only)
    used = set()
    for each in every_kernel():
        if each.interpreted_by:

            def run(*arguments: object, each: Kernel = each) -> object:
                used.add(each.__name__)
                return each.interpreted(*arguments)

            monkeypatch.setattr(each, "_run", run)
    assert results(kinds, insert_only) == compiled
    assert len(used) >= 5


def test_rows_without_words_are_gathered() -> None:
    """As of DISTINCT. Machine code would read behind the table, Python refuses."""
    out = np.zeros((0, 2), np.int64)
    slots.gather.interpreted(np.array([3, 5]), np.zeros((40, 0), np.int64), out, 0, 1)


def test_few_rows_are_interpreted_until_something_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = True
    monkeypatch.setattr(module._KernelCache, "is_empty", lambda self: empty)

    def fresh() -> Kernel:
        return Kernel(lambda values: values[0], I64(IN_I64), (0,))

    few = fresh()
    assert few(np.arange(3, 9)) == 3 and not few._dispatcher.overloads
    # they add up
    assert few(np.arange(1_995)) == 0 and few._dispatcher.overloads
    many = fresh()
    assert many(np.arange(3_000)) == 0 and many._dispatcher.overloads
    empty = False
    known = fresh()
    assert known(np.arange(3)) == 0 and known._dispatcher.overloads


def test_words_wrap_around() -> None:
    add = interpreted(lambda values: values[0] + values[1])
    assert add(np.array([2**63 - 1, 1])) == -(2**63)
