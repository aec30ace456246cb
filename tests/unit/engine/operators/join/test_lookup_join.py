"""The lookup join over a SQLite file against a join of lists: NULL keys, misses, residuals, the order of rows and
watermarks, a full operator, and rows that are restored.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US
from penstock.engine.operators.join.lookup_join import LookupJoinOperator
from penstock.planner.expressions.nodes import Column
from penstock.planner.logical.joins.join import JoinKind
from tests.harness.length import examples
from tests.harness.operator_specs import lookup_join_spec
from tests.harness.operators import Remembered, done
from tests.unit.engine.operators.changelogs import (
    Change,
    batch_of,
    context,
    fold,
    listed,
    restored,
    snapshots,
)
from tests.unit.optimizer.plans import call

LEFT = Schema((Field("k", BIGINT), Field("n", BIGINT)))
TABLE = Schema((Field("k", BIGINT), Field("v", BIGINT), Field("s", STRING)))
THERE = [(1, 5, "a"), (1, 7, "b"), (2, 5, None), (None, 5, "nobody"), (2**62, 9, "c")]
RESIDUAL = call("less", Column(BIGINT, True, index=1, name="n"), Column(BIGINT, True, index=3, name="v"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("lookup") / "facts.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE dim (k INTEGER, v INTEGER, s TEXT)")
        database.executemany("INSERT INTO dim VALUES (?, ?, ?)", THERE)
    return file


def lookup(path: Path, *, left: bool = False, residual: bool = False, **options: str) -> LookupJoinOperator:
    """An operator that asks on its own thread, so that an answer is there when it returns."""
    place = {"connector": "sqlite", "path": str(path), "table-name": "dim", "lookup.async": "false"}
    table = CatalogTable("dim", TABLE, TABLE, place | options)
    kind = JoinKind.LEFT if left else JoinKind.INNER
    spec = lookup_join_spec("l", "lookup", LEFT, table, kind, (0,), (0,), RESIDUAL if residual else None)
    return LookupJoinOperator(spec, JobOptions())


def joined(changes: list[Change], left: bool, residual: bool) -> list[Change]:
    found: list[Change] = []
    for (k, n), weight in changes:
        met = [
            row
            for row in THERE
            if k is not None and row[0] == k and (not residual or (n is not None and n < row[1]))
        ]
        rows: list[Any] = met or ([(None,) * 3] if left else [])
        found += [((k, n, *row), weight) for row in rows]
    return found


@pytest.mark.parametrize("cache", ["NONE", "PARTIAL", "FULL"])
@settings(
    max_examples=examples(12),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    changes=st.lists(
        st.tuples(
            st.tuples(st.sampled_from([None, 1, 2, 3, 2**62]), st.sampled_from([None, 4, 6, 8])), st.just(1)
        ),
        max_size=10,
    ),
    size=st.integers(1, 4),
    left=st.booleans(),
    residual=st.booleans(),
)
def test_each_row_is_joined_with_the_rows_of_its_key(
    path: Path, cache: str, changes: list[Change], size: int, left: bool, residual: bool
) -> None:
    operator, out = lookup(path, left=left, residual=residual, **{"lookup.cache": cache}), Remembered()
    operator.open(context())
    try:
        for first in range(0, len(changes), size):
            done(operator.on_batch(batch_of(changes[first : first + size], LEFT.to_arrow()), 0, out))
        found = [change for batch in out.batches for change in listed(batch)]
        assert fold(found) == fold(joined(changes, left, residual))
        assert [row[:2] for row, _ in found] == [row[:2] for row, _ in joined(changes, left, residual)], (
            "in order"
        )
        assert operator.settled() and operator.buffered_until_ms() is None
    finally:
        operator.close()


def test_a_watermark_does_not_pass_the_rows_before_it(path: Path) -> None:
    operator, out = lookup(path), Remembered()
    operator.open(context())
    done(operator.on_watermark(5, out))
    assert operator.passes_on(5) == 5, "nothing is in front of it"
    ask, waiting = operator._asking.ask, []

    def unanswered(batch: Any, now_ms: float) -> Any:
        asked = ask(batch, now_ms)
        assert asked.answer is not None
        asked.answer._done.clear()
        waiting.append(asked.answer)
        return asked

    operator._asking.ask = unanswered  # type: ignore[method-assign]
    done(operator.on_batch(batch_of([((1, 0), 1)], LEFT.to_arrow()), 0, out))
    done(operator.on_watermark(9, out))
    assert operator.passes_on(9) == 5 and not out.events and not operator.settled()
    waiting[0].finish()
    done(operator.release(out))
    assert [event if isinstance(event, int) else event.num_rows for event in out.events] == [2, 9]
    assert operator.passes_on(9) == 9 and operator.settled()
    operator.close()


def test_rows_whose_answer_has_not_come_are_state_and_are_asked_for_again(path: Path) -> None:
    operator, out = lookup(path, **{"lookup.capacity": "2"}), Remembered()
    operator.open(context())
    ask = operator._asking.ask

    def unanswered(batch: Any, now_ms: float) -> Any:
        asked = ask(batch, now_ms)
        assert asked.answer is not None
        asked.answer._done.clear()
        return asked

    operator._asking.ask = unanswered  # type: ignore[method-assign]
    for n in (1, 2):
        assert operator.ready()
        done(operator.on_batch(batch_of([((1, n), n)], LEFT.to_arrow()), 0, out))
    assert not operator.ready(), "as many batches as its capacity"
    again = restored(lookup(path), context(), snapshots([operator]))
    operator.close()
    assert again.buffered_until_ms() == 0.0 and not again.settled()
    done(again.on_watermark(MAX_WATERMARK_US, out))
    found = [change for batch in out.batches for change in listed(batch)]
    assert fold(found) == fold(joined([((1, 1), 1), ((1, 2), 2)], False, False))
    assert again.settled() and again.passes_on(0) == MAX_WATERMARK_US != MIN_WATERMARK_US
    again.close()
