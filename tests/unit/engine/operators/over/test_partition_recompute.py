"""The base of operators that recompute partitions: after each batch the output is that of the rows there are, and
only what differs is emitted; windows that close are dropped.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, TIMESTAMP
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.operators.over.partition_recompute import PartitionRecompute, columns_of
from penstock.engine.operators.over.partitions import Partitions
from penstock.planner.expressions.nodes import Column, SortKey
from penstock.planner.logical.windows import AttachedWindow
from tests.harness.length import examples
from tests.harness.operator_specs import partition_top_spec
from tests.harness.operators import done
from tests.unit.engine.operators.changelogs import (
    Change,
    Collected,
    batch_of,
    context,
    fold,
    restored,
    snapshots,
)
from tests.unit.engine.operators.partition_runs import SCHEMA, START, micros

ROW = st.tuples(st.sampled_from([None, 1, 2]), st.just(START), st.sampled_from([None, 1, 2]), st.just("a"))
SHOWN = Schema((*SCHEMA.fields, Field("size", BIGINT)))


class Sizes(PartitionRecompute):
    """Emits each row with the number of rows of its partition."""

    def show(self, part: Partitions) -> list[pa.Array]:
        return columns_of(part.rows, [pa.array(part.ends - part.starts)])


def sizes(source: Schema = SCHEMA, window: AttachedWindow | None = None) -> Sizes:
    order = (SortKey(Column(source[2].type, True, index=2, name=source[2].name)),)
    schema = Schema((*source.fields, Field("size", BIGINT)))
    partition = (0,) if window is None else (0, 1, 2)
    spec = partition_top_spec(
        "p", "sizes", schema, source, partition, order, "row_number", 9, True, window, False
    )
    return Sizes(spec, JobOptions())


def shown(rows: Counter[Any]) -> Counter[Any]:
    count = Counter(row[0] for row in rows.elements())
    return Counter({(*row, count[row[0]]): weight for row, weight in rows.items()})


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(rows=st.lists(ROW, max_size=14), size=st.integers(1, 4), restores=st.booleans(), data=st.data())
def test_the_output_is_that_of_the_rows_there_are(
    rows: list[Any], size: int, restores: bool, data: st.DataObject
) -> None:
    operator, out, alive = sizes(), Collected(), list[Any]()
    operator.open(context())
    while rows or alive:
        changes: list[Change] = []
        for _ in range(size):
            if rows and (not alive or data.draw(st.booleans())):
                alive.append(rows.pop())
                changes.append((alive[-1], 1))
            elif alive:
                changes.append((alive.pop(data.draw(st.integers(0, len(alive) - 1))), -1))
        before, emitted = out.folded(), len(out.changes())
        done(operator.on_batch(batch_of(changes, SCHEMA.to_arrow()), 0, out))
        assert out.folded() == shown(Counter(alive))
        news = fold(out.changes()[emitted:])
        assert sum(map(abs, news.values())) == sum(abs(weight) for _, weight in out.changes()[emitted:])
        assert fold([*before.items(), *news.items()]) == out.folded(), "nothing that stays is emitted again"
        if restores:
            operator = restored(sizes(), context(), snapshots([operator]))  # type: ignore[assignment]
    assert operator.keyed_states()["rows"].snapshot().num_rows == 0


def test_partitions_of_a_window_are_dropped_when_it_closes_and_later_rows_with_it() -> None:
    source = Schema((Field("k", BIGINT), Field("s", TIMESTAMP), Field("e", TIMESTAMP)))
    operator, out = sizes(source, AttachedWindow(1, 2)), Collected()
    at = context()
    operator.open(at)
    first = (1, START, START + timedelta(seconds=10))
    second = (1, START, START + timedelta(seconds=20))
    for row in (first, second, first):
        done(operator.on_batch(batch_of([(row, 1)], source.to_arrow()), 0, out))
    operator = restored(sizes(source, AttachedWindow(1, 2)), at, snapshots([operator]))  # type: ignore[assignment]
    operator.on_watermark(micros(first[2]), out)
    assert at.metrics.windows_closed == 1 and operator.keyed_states()["rows"].snapshot().num_rows == 1
    emitted = out.folded()
    assert emitted == {(*first, 2): 2, (*second, 1): 1}
    done(operator.on_batch(batch_of([(first, 1)], source.to_arrow()), 0, out))
    assert out.folded() == emitted and at.metrics.late_rows == 1
    operator.on_watermark(MAX_WATERMARK_US, out)
    assert operator.keyed_states()["rows"].snapshot().num_rows == 0 and out.folded() == emitted
