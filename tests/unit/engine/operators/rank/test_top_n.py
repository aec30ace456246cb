"""Top-n against a naive reference: retractions, ties, NULLs and NaN, weights, batch cuts, restore."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, DOUBLE, STRING
from penstock.engine.api.job_options import JobOptions
from penstock.engine.operators.rank.top_n import TopNOperator
from penstock.planner.expressions.nodes import Column, SortKey
from penstock.planner.physical.operator_specs import AnyOperatorSpec
from tests.harness.length import examples
from tests.harness.operator_specs import top_n_spec
from tests.unit.engine.operators.changelogs import (
    Change,
    Collected,
    batch_of,
    context,
    fold,
    restored,
    snapshots,
)

SCHEMA = Schema((Field("k", BIGINT), Field("x", DOUBLE), Field("s", STRING)))
NAN = float("nan")


def spec(keys: tuple[SortKey, ...], limit: int, offset: int, insert_only: bool) -> AnyOperatorSpec:
    return top_n_spec("top", "top", SCHEMA, keys, limit, offset, insert_only)


def place(value: Any, descending: bool, nulls_first: bool) -> tuple[Any, ...]:
    """A value as something Python sorts ascending: NULL where it is told to stand, NaN above all numbers."""
    if value is None:
        return (0 if nulls_first else 2,)
    if isinstance(value, str):
        return (1, 0, tuple(-ord(c) for c in value) if descending else tuple(map(ord, value)))
    nan = isinstance(value, float) and math.isnan(value)
    sign = -1 if descending else 1
    return (1, sign * nan, 0 if nan else sign * value)


def reference(rows: Counter[Any], keys: tuple[SortKey, ...], limit: int, offset: int) -> Counter[Any]:
    def order(row: tuple[Any, ...]) -> list[Any]:
        parts = [place(row[key.expression.index], key.descending, key.nulls_first) for key in keys]  # type: ignore[attr-defined]
        return parts + [place(value, False, True) for value in row]

    listed = [row for row in sorted(rows, key=order) for _ in range(rows[row])]
    return Counter(listed[offset : offset + limit])


ROW = st.tuples(
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([None, 1.5, -2.0, NAN]),
    st.sampled_from([None, "a", "b"]),
)
KEY = st.builds(
    lambda index, descending, nulls_first: SortKey(
        Column(SCHEMA[index].type, True, index=index), descending, nulls_first
    ),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
)


@st.composite
def changelogs(draw: st.DrawFn, retract: bool) -> list[Change]:
    alive: list[Any] = []
    changes: list[Change] = []
    for _ in range(draw(st.integers(0, 40))):
        if retract and alive and draw(st.booleans()):
            changes.append((alive.pop(draw(st.integers(0, len(alive) - 1))), -1))
        else:
            alive.append(draw(ROW))
            changes.append((alive[-1], 1))
    return changes


@settings(max_examples=examples(50), deadline=None, derandomize=True)
@given(data=st.data())
def test_top_n_equals_reference_after_every_batch(data: st.DataObject) -> None:
    retract = data.draw(st.booleans())
    changes = data.draw(changelogs(retract))
    keys = tuple(data.draw(st.lists(KEY, min_size=1, max_size=2)))
    limit, offset = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 3))
    top = spec(keys, limit, offset, not retract)
    operator, out = TopNOperator(top, JobOptions()), Collected()
    operator.open(context())
    done = 0
    while done < len(changes):
        size = data.draw(st.sampled_from([1, 2, 7, 100]))
        operator.on_batch(batch_of(changes[done : done + size], SCHEMA.to_arrow()), 0, out)
        done += size
        assert canonical(out.folded()) == canonical(reference(fold(changes[:done]), keys, limit, offset))
        if data.draw(st.sampled_from([False, False, True])):
            operator = restored(TopNOperator(top, JobOptions()), context(), snapshots([operator]))  # type: ignore[assignment]
    if not retract:
        assert operator.keyed_states()["rows"].snapshot().num_rows <= max(limit + offset, 1) + 100


def canonical(rows: Counter[Any]) -> Counter[Any]:
    """Rows with NaN as a word, for NaN is not equal to itself in Python; weights of rows that are then
    equal are added.
    """
    total: Counter[Any] = Counter()
    for row, weight in rows.items():
        total[tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in row)] += weight
    return Counter({row: weight for row, weight in total.items() if weight})


def test_insert_only_input_keeps_only_what_can_be_shown() -> None:
    top = spec((SortKey(Column(BIGINT, True, index=0), True, False),), 3, 1, True)
    operator, out = TopNOperator(top, JobOptions()), Collected()
    operator.open(context())
    for start in range(0, 1000, 100):
        operator.on_batch(
            batch_of([((start + i, 1.0, "a"), 1) for i in range(100)], SCHEMA.to_arrow()), 0, out
        )
    assert operator._context.metrics.state_entries <= 8
    assert sorted(row[0] for row in out.folded()) == [996, 997, 998]
