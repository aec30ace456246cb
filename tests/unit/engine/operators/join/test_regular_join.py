"""The join against a naive reference: all kinds, retractions, NULL keys, residuals, batch cuts, restore
and rescale, a bounded side first.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, BOOLEAN, INT, STRING
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.join.regular_join import RegularJoinOperator
from penstock.planner.expressions.nodes import Call, Column
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.physical.operator_specs import AnyOperatorSpec
from tests.harness.length import examples
from tests.harness.operator_specs import join_spec
from tests.harness.operators import done
from tests.unit.engine.operators.changelogs import (
    Change,
    Collected,
    batch_of,
    context,
    fold,
    listed,
    owners,
    restored,
    snapshots,
)

LEFT = Schema((Field("k", BIGINT), Field("s", STRING), Field("v", INT)))
RIGHT = Schema((Field("k", BIGINT), Field("s", STRING), Field("w", INT)))
SMALLER = Call(BOOLEAN, True, function="less", args=(Column(INT, True, index=2), Column(INT, True, index=5)))


def spec(
    kind: JoinKind,
    *,
    keys: tuple[int, ...] = (0,),
    residual: bool = False,
    bounded: tuple[int, ...] = (),
    insert_only: tuple[bool, bool],
) -> AnyOperatorSpec:
    schema = LEFT if kind in (JoinKind.SEMI, JoinKind.ANTI) else LEFT.concat(RIGHT)
    return join_spec(
        "join",
        "join",
        schema,
        LEFT,
        RIGHT,
        kind,
        keys,
        keys,
        SMALLER if residual else None,
        bounded,
        insert_only,
    )


def reference(
    kind: JoinKind, keys: tuple[int, ...], residual: bool, left: Counter[Any], right: Counter[Any]
) -> Counter[Any]:
    """The join of two multisets, row by row."""
    result: Counter[Any] = Counter()
    matched_right: Counter[Any] = Counter()
    for a, n in left.items():
        found = 0
        for b, m in right.items():
            same = all(a[k] is not None and a[k] == b[k] for k in keys)
            if same and (not residual or (a[2] is not None and b[2] is not None and a[2] < b[2])):
                found += m
                matched_right[b] += n
                if kind not in (JoinKind.SEMI, JoinKind.ANTI):
                    result[a + b] += n * m
        if found == 0 and kind in (JoinKind.LEFT, JoinKind.FULL):
            result[a + (None,) * 3] += n
        if (found == 0 and kind is JoinKind.ANTI) or (found != 0 and kind is JoinKind.SEMI):
            result[a] += n
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        for b, m in right.items():
            if matched_right[b] == 0:
                result[(None,) * 3 + b] += m
    return Counter({row: weight for row, weight in result.items() if weight})


ROW = st.tuples(
    st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, "a", "b"]), st.sampled_from([None, 1, 2])
)


@st.composite
def changelogs(draw: st.DrawFn, retract: bool) -> list[tuple[int, Change]]:
    """Changes of both ports in order; a retraction takes back a row that is there."""
    alive: tuple[list[Any], list[Any]] = ([], [])
    changes: list[tuple[int, Change]] = []
    for _ in range(draw(st.integers(0, 30))):
        port = draw(st.integers(0, 1))
        if retract and alive[port] and draw(st.booleans()):
            row = alive[port].pop(draw(st.integers(0, len(alive[port]) - 1)))
            changes.append((port, (row, -1)))
        else:
            row = draw(ROW)
            alive[port].append(row)
            changes.append((port, (row, 1)))
    return changes


def run(
    join: AnyOperatorSpec,
    changes: list[tuple[int, Change]],
    cuts: list[int],
    restore_after: int | None,
    to: int,
) -> Collected:
    """Feed changes in runs of one port of at most the given sizes; at one point snapshot and go on with
    ``to`` subtasks.
    """
    out = Collected()
    operators = [RegularJoinOperator(join, JobOptions())]
    operators[0].open(context())
    schemas = (LEFT.to_arrow(), RIGHT.to_arrow())
    place = step = 0
    while place < len(changes):
        if step == restore_after:
            saved = snapshots(list(operators))
            operators = [
                restored(RegularJoinOperator(join, JobOptions()), context(i, to), saved) for i in range(to)
            ]  # type: ignore[misc]
        port = changes[place][0]
        size = 1
        while (
            size < cuts[step % len(cuts)] and place + size < len(changes) and changes[place + size][0] == port
        ):
            size += 1
        feed(
            operators,
            batch_of([change for _, change in changes[place : place + size]], schemas[port]),
            port,
            join,
            out,
        )
        place, step = place + size, step + 1
    for port in (0, 1):
        for operator in operators:
            done(operator.on_port_end(port, out))
    return out


def feed(
    operators: list[RegularJoinOperator], batch: Batch, port: int, join: AnyOperatorSpec, out: Collected
) -> None:
    owner = owners(batch.rows, (join.node.left_keys, join.node.right_keys)[port], len(operators))
    for index, operator in enumerate(operators):
        mine = np.flatnonzero(owner == index)
        if mine.size:
            done(operator.on_batch(batch.take(mine), port, out))


@pytest.mark.parametrize("kind", list(JoinKind))
@pytest.mark.parametrize("retract", [False, True])
@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(data=st.data())
def test_join_equals_reference(kind: JoinKind, retract: bool, data: st.DataObject) -> None:
    changes = data.draw(changelogs(retract))
    keys = data.draw(st.sampled_from([(0,), (1,), (0, 1), ()]))
    residual = data.draw(st.booleans())
    join = spec(kind, keys=keys, residual=residual, insert_only=(not retract, not retract))
    cuts = data.draw(st.lists(st.sampled_from([1, 2, 7, 100]), min_size=1, max_size=4))
    restore_after, to = data.draw(st.sampled_from([None, 0, 1, 3])), data.draw(st.sampled_from([1, 2, 3]))
    out = run(join, changes, cuts, restore_after, to)
    left, right = (fold([change for port, change in changes if port == side]) for side in (0, 1))
    assert out.folded() == reference(kind, keys, residual, left, right)


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL])
@pytest.mark.parametrize("bounded", [0, 1])
@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(data=st.data())
def test_bounded_side_is_loaded_first(kind: JoinKind, bounded: int, data: st.DataObject) -> None:
    """In whatever order rows come, with a restore in the middle; insert-only out when the stream is on the
    side whose rows stand alone.
    """
    changes = data.draw(changelogs(False))
    join = spec(kind, residual=True, bounded=(bounded,), insert_only=(True, True))
    early = data.draw(st.integers(0, len(changes)))
    operator, out = RegularJoinOperator(join, JobOptions()), Collected()
    operator.open(context())
    schemas = (LEFT.to_arrow(), RIGHT.to_arrow())
    first = changes[:early] + [c for c in changes[early:] if c[0] == bounded]
    rest = [c for c in changes[early:] if c[0] != bounded]
    for port, change in first:
        done(operator.on_batch(batch_of([change], schemas[port]), port, out))
    saved_loading = snapshots([operator])
    if data.draw(st.booleans()):
        operator = restored(RegularJoinOperator(join, JobOptions()), context(), saved_loading)  # type: ignore[assignment]
    done(operator.on_port_end(bounded, out))
    if data.draw(st.booleans()):
        operator = restored(RegularJoinOperator(join, JobOptions()), context(), snapshots([operator]))  # type: ignore[assignment]
        done(operator.on_port_end(bounded, out))
    for port, change in rest:
        done(operator.on_batch(batch_of([change], schemas[port]), port, out))
    stream_rows = len(operator.keyed_states()["right" if bounded == 0 else "left"].snapshot())
    done(operator.on_port_end(1 - bounded, out))
    left, right = (fold([change for port, change in changes if port == side]) for side in (0, 1))
    assert out.folded() == reference(kind, (0,), True, left, right)
    assert stream_rows == 0
    stands_alone = {JoinKind.LEFT: {0}, JoinKind.RIGHT: {1}, JoinKind.FULL: {0, 1}}.get(kind, set())
    if bounded not in stands_alone:
        assert all(batch.weights is None for batch in out.batches)


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("restore", [False, True])
def test_a_side_of_many_keys_is_indexed_when_it_is_complete(repeats: int, restore: bool) -> None:
    """Restored in the middle of the load, the rows before the checkpoint are found as those after it."""
    join = spec(JoinKind.INNER, bounded=(1,), insert_only=(True, True))
    operator, out = RegularJoinOperator(join, JobOptions()), Collected()
    operator.open(context())
    count = 80_000
    keys = np.random.default_rng(3).permutation(count) // repeats * 1_009
    numbers = np.arange(count, dtype=np.int32)
    rows = pa.RecordBatch.from_arrays(
        [pa.array(keys, RIGHT.to_arrow().types[0]), pa.nulls(count, pa.string()), pa.array(numbers)],
        schema=RIGHT.to_arrow(),
    )
    for start in range(0, count, 20_000):
        done(operator.on_batch(Batch(rows.slice(start, 20_000)), 1, out))
        if restore and start == 20_000:
            operator = restored(RegularJoinOperator(join, JobOptions()), context(), snapshots([operator]))  # type: ignore[assignment]
    assert len(operator._index) == (len(np.unique(keys[:40_000])) if restore else 0)
    done(operator.on_port_end(1, out))
    assert len(operator._index) == len(np.unique(keys))
    asked = pa.RecordBatch.from_arrays(rows.columns, schema=LEFT.to_arrow()).slice(30_000, 30_000)
    done(operator.on_batch(Batch(asked), 0, out))
    found = pa.Table.from_batches([batch.rows for batch in out.batches])
    left = pa.table({"key": keys[30_000:60_000], "left": numbers[30_000:60_000]})
    pairs = left.join(pa.table({"key": keys, "right": numbers}), "key", join_type="inner")
    order = [("left", "ascending"), ("right", "ascending")]
    assert found.select([2, 5]).rename_columns(["left", "right"]).sort_by(order) == pairs.select(
        ["left", "right"]
    ).sort_by(order)


def test_state_is_gone_when_everything_is_taken_back() -> None:
    join = spec(JoinKind.FULL, insert_only=(False, False))
    operator, out = RegularJoinOperator(join, JobOptions()), Collected()
    operator.open(context())
    rows = [((i % 50, "x", i), 1) for i in range(1000)]
    for port, schema in ((0, LEFT.to_arrow()), (1, RIGHT.to_arrow())):
        done(operator.on_batch(batch_of(rows, schema), port, out))
    for port, schema in ((0, LEFT.to_arrow()), (1, RIGHT.to_arrow())):
        done(operator.on_batch(batch_of([(row, -1) for row, _ in rows], schema), port, out))
    assert out.folded() == Counter()
    assert all(state.snapshot().num_rows == 0 for state in operator.keyed_states().values())
    assert operator._context.metrics.state_entries == 0
    assert len(operator._index) == 0
    assert all(len(side._identity) == 0 for side in operator._sides)


def test_lateness_travels_with_rows_joined_to_a_complete_side() -> None:
    join = spec(JoinKind.LEFT, bounded=(1,), insert_only=(True, True))
    operator, out = RegularJoinOperator(join, JobOptions()), Collected()
    operator.open(context())
    done(operator.on_batch(batch_of([((1, "a", 1), 1)], RIGHT.to_arrow()), 1, out))
    stream = batch_of([((1, "x", 1), 1), ((2, "y", 2), 1)], LEFT.to_arrow())
    done(operator.on_batch(Batch(stream.rows, None, np.array([10, 20])), 0, out))
    assert not out.batches
    operator = restored(RegularJoinOperator(join, JobOptions()), context(), snapshots([operator]))  # type: ignore[assignment]
    done(operator.on_port_end(1, out))
    late = {
        row[1]: behind
        for batch in out.batches
        for (row, _), behind in zip(listed(batch), batch.behind.tolist(), strict=True)
    }
    assert late == {"x": 10, "y": 20}


def test_many_pairs_come_in_pieces() -> None:
    join = spec(JoinKind.INNER, keys=(), insert_only=(True, True))
    operator, out = RegularJoinOperator(join, JobOptions()), Collected()
    operator.open(context())
    numbers = pa.array(range(500), pa.int64())
    rows = pa.RecordBatch.from_arrays(
        [numbers, pa.nulls(500, pa.string()), numbers.cast(pa.int32())], schema=LEFT.to_arrow()
    )
    done(operator.on_batch(Batch(rows), 0, out))
    done(operator.on_batch(Batch(rows.rename_columns(RIGHT.names)), 1, out))
    assert sum(batch.num_rows for batch in out.batches) == 250_000
    assert max(batch.num_rows for batch in out.batches) <= 65_536


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("stored", "shared"), [(range(500, 1_000), True), (range(990, 1_000), False)])
def test_rows_without_a_gap_share_the_memory_of_their_batch(
    stored: range, shared: bool, residual: bool
) -> None:
    """But not so few of them that a batch would stay in memory for its last rows."""
    operator = RegularJoinOperator(
        spec(JoinKind.INNER, residual=residual, insert_only=(True, True)), JobOptions()
    )
    operator.open(context())
    probing, out = batch_of([((k, "x", 1), 1) for k in range(1_000)], LEFT.to_arrow()), Collected()
    done(operator.on_batch(batch_of([((k, "y", 2), 1) for k in stored], RIGHT.to_arrow()), 1, out))
    done(operator.on_batch(probing, 0, out))
    (batch,) = out.batches
    assert batch.rows.column(0).to_pylist() == batch.rows.column(3).to_pylist() == list(stored)
    addresses = [rows.column(0).buffers()[1].address for rows in (probing.rows, batch.rows)]
    assert (addresses[0] == addresses[1]) == shared


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT])
def test_a_stream_that_ends_before_the_bounded_side_has_come_loses_nothing(kind: JoinKind) -> None:
    join = spec(kind, bounded=(1,), insert_only=(True, True))
    operator, out = RegularJoinOperator(join, JobOptions()), Collected()
    operator.open(context())
    done(operator.on_batch(batch_of([((1, "x", 1), 1), ((3, "z", 1), 1)], LEFT.to_arrow()), 0, out))
    done(operator.on_port_end(0, out))
    operator = restored(RegularJoinOperator(join, JobOptions()), context(), snapshots([operator]))  # type: ignore[assignment]
    done(operator.on_port_end(0, out))
    done(operator.on_batch(batch_of([((1, "a", 1), 1)], RIGHT.to_arrow()), 1, out))
    done(operator.on_port_end(1, out))
    expected = {
        (1, "x", 1, 1, "a", 1): 1,
        **({(3, "z", 1, None, None, None): 1} if kind is JoinKind.LEFT else {}),
    }
    assert out.folded() == expected
    assert all(state.snapshot().num_rows == 0 for state in operator.keyed_states().values())
