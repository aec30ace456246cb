"""Residual conditions against the comparisons written out by hand: comparisons of words read where the rows are,
and conditions that are compiled.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT, BOOLEAN, INT, DataType
from penstock.engine.kernels.index import pair_comparisons
from penstock.engine.operators.join.residual_condition import Pairs, ResidualCondition
from penstock.engine.state.rows.row_store import RowStore
from penstock.planner.expressions.nodes import Call, Column, Expression, conjunction

COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "greater_equal": operator.ge,
    "greater": operator.gt,
}
VALUES = [-(2**63), -1, 0, 1, 2**63 - 1]


def compared(function: str, a: int, b: int, kind: DataType = BIGINT) -> Call:
    return Call(
        BOOLEAN,
        True,
        function=function,
        args=(Column(kind, True, index=a), Column(kind, True, index=b)),
    )


def pairs_of(port: int, values: list[int | None], kind: pa.DataType) -> Pairs:
    """Every pair of two sides with these values; the second column of each side is the first one reversed.
    The store has several chunks, and its ids are not its positions.
    """
    rows = pa.record_batch({"a": pa.array(values, kind), "b": pa.array(values[::-1], kind)})
    store = RowStore(rows.schema)
    dropped = store.append(rows)
    for first in range(0, rows.num_rows, 2):
        store.append(rows.slice(first, 2))
    store.drop(dropped)
    ids = store.append(rows)
    stored = np.concatenate([ids, np.setdiff1d(store.live_ids(), ids)])
    # the batch begins within a longer one
    batch = pa.concat_batches([rows, rows]).slice(1, rows.num_rows)
    at = np.repeat(np.arange(batch.num_rows), stored.size)
    return Pairs(batch, at, port, store, np.tile(stored, batch.num_rows))


def expected(pairs: Pairs, holds: Callable[[list[Any]], bool]) -> list[tuple[int, int]]:
    found = []
    for at, row_id in zip(pairs.at.tolist(), pairs.ids.tolist(), strict=True):
        own = list(pairs.rows.slice(at, 1).to_pylist()[0].values())
        other = list(pairs.store.take(np.array([row_id])).to_pylist()[0].values())
        if holds(own + other if pairs.port == 0 else other + own):
            found.append((at, row_id))
    return found


def found_by(condition: Expression, pairs: Pairs) -> list[tuple[int, int]]:
    found = ResidualCondition(condition, 2, "UTC").satisfying(pairs)
    # the columns of the pairs that are left, with their places, are those of their ids
    again = Pairs(pairs.rows, found.at, pairs.port, pairs.store, found.ids)
    assert found.columns([0, 1], [1]) == again.columns([0, 1], [1])
    return list(zip(found.at.tolist(), found.ids.tolist(), strict=True))


@pytest.mark.parametrize("port", [0, 1])
@pytest.mark.parametrize("function", COMPARED)
def test_one_comparison_of_words(port: int, function: str) -> None:
    pairs = pairs_of(port, [*VALUES], pa.int64())
    for a, b in ((0, 2), (3, 1), (0, 1), (3, 2)):
        wanted = expected(pairs, lambda row, a=a, b=b: COMPARED[function](row[a], row[b]))
        assert found_by(compared(function, a, b), pairs) == wanted


@pytest.mark.parametrize("port", [0, 1])
def test_comparisons_joined_by_and(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = pairs_of(port, [*VALUES], pa.int64())
    condition = conjunction((compared("less", 0, 2), compared("greater_equal", 3, 1)))
    wanted = expected(pairs, lambda row: bool(row[0] < row[2] and row[3] >= row[1]))
    calls, run = [], pair_comparisons.satisfying
    monkeypatch.setattr(pair_comparisons, "satisfying", lambda *a: calls.append(1) or run(*a))
    assert found_by(condition, pairs) == wanted and calls == [1]


@pytest.mark.parametrize("port", [0, 1])
@pytest.mark.parametrize("kind", [(BIGINT, pa.int64()), (INT, pa.int32())])
def test_null_satisfies_nothing(port: int, kind: tuple[DataType, pa.DataType]) -> None:
    pairs = pairs_of(port, [1, None, 2], kind[1])
    wanted = expected(pairs, lambda row: row[0] is not None and row[2] is not None and row[0] < row[2])
    assert found_by(compared("less", 0, 2, kind[0]), pairs) == wanted


def test_without_pairs_or_columns() -> None:
    pairs = pairs_of(0, [1, 2], pa.int64())
    none = pairs.among(np.zeros(pairs.at.size, np.bool_))
    assert found_by(compared("less", 0, 2), none) == []
    true = conjunction(())
    assert len(found_by(true, pairs)) == pairs.at.size
