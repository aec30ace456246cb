"""Unbounded GROUP BY against a dict, with retractions, snapshots and rescaling in mid-run."""

import random
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, BOOLEAN, INT, STRING
from penstock.catalog.types import Array as ArrayType
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.row_pieces import LIMITS, TooLarge
from penstock.engine.kernels.partition import partition
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.operators.aggregate import group_aggregate
from penstock.engine.operators.aggregate.group_aggregate import GroupAggregateOperator
from penstock.engine.operators.factory import build_operator
from penstock.engine.operators.mini_batch import BATCHES_AT_ONCE, FEW_AT_ONCE
from penstock.planner.expressions.nodes import AggregateCall, Call, Column, Literal
from penstock.planner.logical.aggregate import Phase
from tests.harness.length import examples
from tests.harness.operator_specs import group_aggregate_spec
from tests.harness.state import OPTIONS, Folded, batch_of, opened, rescaled

INPUT = Schema((Field("k", STRING), Field("g", INT), Field("v", INT)))
V = Column(INT, True, index=2, name="v")
CALLS = (
    AggregateCall("count", (V,), BIGINT, False),
    AggregateCall("sum", (V,), BIGINT),
    AggregateCall("min", (Column(STRING, True, index=0),), STRING),
    AggregateCall("count", (V,), BIGINT, False, True),
)


def spec(keys, calls=CALLS, insert_only=False, phase=Phase.SINGLE, source=INPUT, upserts=False):
    fields = tuple(source[k] for k in keys) + tuple(
        Field(f"a{i}", c.type, c.nullable) for i, c in enumerate(calls)
    )
    return group_aggregate_spec(
        "id", "group", Schema(fields), source, keys, calls, phase, insert_only, upserts=upserts
    )


def row_of(rows):
    """CALLS over {row: weight}."""
    known = [(v, w) for (_, _, v), w in rows.items() if v is not None]
    names = [k for (k, _, _), w in rows.items() if k is not None and w]
    count = sum(w for _, w in known)
    return (
        count,
        sum(v * w for v, w in known) if count else None,
        min(names, default=None),
        len({v for v, w in known if w}),
    )


def expected(table, keys):
    groups = defaultdict(Counter)
    for row, weight in table.items():
        groups[tuple(row[k] for k in keys)][row] += weight
    return Counter({key + row_of(rows): 1 for key, rows in groups.items()})


ROW = st.tuples(
    st.none() | st.sampled_from(["a", "b", "c"]),
    st.none() | st.integers(0, 2),
    st.none() | st.integers(-2, 2),
)


@settings(max_examples=examples(80), deadline=None, derandomize=True)
@given(st.sampled_from([(0,), (1,), (0, 1)]), st.data())
def test_like_a_dict(keys, data):
    def make():
        return build_operator(spec(keys), OPTIONS)

    operators, out, table = [opened(make())], Folded(), Counter()
    for _ in range(data.draw(st.integers(1, 5))):
        rows = [(row, data.draw(st.integers(1, 2))) for row in data.draw(st.lists(ROW, max_size=6))]
        rows += [(row, -weight) for row, weight in table.items() if data.draw(st.booleans())]
        for row, weight in rows:
            table[row] += weight
        table = +table
        if rows:
            send(
                operators,
                batch_of(INPUT.to_arrow(), [row for row, _ in rows], [w for _, w in rows]),
                keys,
                out,
            )
        assert out.rows == expected(table, keys)
        if parallelism := data.draw(st.sampled_from([0, 0, 1, 2, 3])):
            operators = rescaled(operators, make, parallelism)
    rows = list(table.items())
    if rows:
        send(
            operators, batch_of(INPUT.to_arrow(), [row for row, _ in rows], [-w for _, w in rows]), keys, out
        )
    assert not out.rows
    for operator in operators:
        assert operator.keyed_states()["groups"].snapshot().num_rows == 0


def send(operators, batch, keys, out):
    order, offsets = partition(stable_hash([batch.rows.column(k) for k in keys]), len(operators), 128)
    for i, operator in enumerate(operators):
        if offsets[i] < offsets[i + 1]:
            operator.on_batch(batch.take(order[offsets[i] : offsets[i + 1]]), 0, out)


class Replaced:
    """An output that replaces and deletes rows by their first columns, as an upsert table does."""

    def __init__(self, width):
        self.width, self.rows, self.batches = width, {}, []

    def collect(self, batch):
        self.batches.append(batch)
        weights = [1] * batch.num_rows if batch.weights is None else batch.weights.tolist()
        rows = [tuple(row.values()) for row in batch.rows.to_pylist()]
        for row, weight in zip(rows, weights, strict=True):
            key = row[: self.width]
            if weight == 1:
                self.rows[key] = row
            else:
                assert weight == -1 and self.rows.pop(key) == row, "what is deleted is there"


COUNTED = (AggregateCall("count", (), BIGINT, False), AggregateCall("sum", (V,), BIGINT))


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(st.sampled_from([(0,), (0, 1), ()]), st.booleans(), st.booleans(), st.data())
def test_upserts_are_the_new_rows_and_the_deletions(keys, insert_only, counted, data):
    calls = COUNTED if counted else CALLS

    def make():
        return build_operator(spec(keys, calls, insert_only, upserts=True), OPTIONS)

    operators, out, table = [opened(make())], Replaced(len(keys)), Counter()
    for _ in range(data.draw(st.integers(1, 5))):
        rows = [(row, 1) for row in data.draw(st.lists(ROW, max_size=6))]
        if not insert_only:
            rows += [(row, -weight) for row, weight in table.items() if data.draw(st.booleans())]
        for row, weight in rows:
            table[row] += weight
        table = +table
        if rows:
            weights = None if insert_only else [w for _, w in rows]
            batch = batch_of(INPUT.to_arrow(), [row for row, _ in rows], weights)
            if keys:
                send(operators, batch, keys, out)
            else:
                operators[0].on_batch(batch, 0, out)
        if keys or table:
            groups = expected(table, keys)
            if counted:
                groups = {(*row[: len(keys)], 0, row[len(keys) + 1]) for row in groups}
                found = {(*row[: len(keys)], 0, row[-1]) for row in out.rows.values()}
                assert sum(row[len(keys)] for row in out.rows.values()) == table.total()
                assert found == groups
            else:
                assert set(out.rows.values()) == set(groups)
        if (parallelism := data.draw(st.sampled_from([0, 0, 1, 2, 3]))) and keys:
            operators = rescaled(operators, make, parallelism)


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(st.sampled_from([(0,), (0, 1), ()]), st.booleans(), st.booleans(), st.data())
def test_mini_batches_of_several_pieces_are_like_a_dict(keys, counted, upserts, data):
    # each row is a batch that is not small, so it is added before the mini-batch ends
    options = replace(OPTIONS, batch_max_rows=8)
    calls = COUNTED if counted else CALLS
    operator = opened(build_operator(spec(keys, calls, upserts=upserts), options))
    whole = opened(build_operator(spec(keys, calls, upserts=upserts), OPTIONS))
    outs = [Replaced(len(keys)), Replaced(len(keys))] if upserts else [Folded(), Folded()]
    table = Counter()
    for barrier in range(data.draw(st.integers(1, 3))):
        for _ in range(data.draw(st.integers(1, 5))):
            rows = [(row, 1) for row in data.draw(st.lists(ROW, min_size=1, max_size=4))]
            rows += [(row, -weight) for row, weight in table.items() if data.draw(st.booleans())]
            for row, weight in rows:
                table[row] += weight
            table = +table
            batch = batch_of(INPUT.to_arrow(), [row for row, _ in rows], [weight for _, weight in rows])
            operator.on_batch(batch, 0, outs[0])
            whole.on_batch(batch, 0, outs[1])
        for each, out in zip((operator, whole), outs, strict=True):
            each.before_barrier(barrier, out)
        assert outs[0].rows == outs[1].rows
        groups = [each.keyed_states()["groups"] for each in (operator, whole)]
        assert len(groups[0]) == len(groups[1])


def test_an_update_is_one_row_where_the_reader_replaces_rows():
    for insert_only, calls in ((True, COUNTED), (False, COUNTED), (True, CALLS)):
        operator = opened(build_operator(spec((0,), calls, insert_only, upserts=True), OPTIONS))
        out = Replaced(1)
        for v in range(3):
            operator.on_batch(batch_of(INPUT.to_arrow(), [("a", 0, v), ("b", 0, 1)]), 0, out)
        assert [batch.num_rows for batch in out.batches] == [2, 2, 2]
        assert [batch.weights for batch in out.batches] == [None, None, None]


def test_only_what_changed_is_said():
    operator, out = opened(build_operator(spec((0,)), OPTIONS)), Folded()
    operator.on_batch(batch_of(INPUT.to_arrow(), [("a", 0, 1), ("b", 0, 1)]), 0, out)
    assert out.batches.pop().weights is None
    operator.on_batch(
        batch_of(INPUT.to_arrow(), [("a", 0, 5), ("b", 0, 1), ("b", 0, 1), ("a", 0, 1)], [1, 1, -1, 1]),
        0,
        out,
    )
    changes = out.batches.pop()
    assert changes.weights.tolist() == [-1, 1]
    assert changes.rows.column(0).to_pylist() == ["a", "a"]
    assert changes.rows.column(1).to_pylist() == [1, 3]
    operator.on_batch(batch_of(INPUT.to_arrow(), [("a", 0, 1), ("a", 0, 1)], [1, -1]), 0, out)
    operator.on_batch(batch_of(INPUT.to_arrow(), [("c", 0, 1), ("c", 0, 1)], [1, -1]), 0, out)
    assert not out.batches
    assert operator.metrics.state_entries == 2


def test_the_one_row_of_no_keys():
    def make():
        return build_operator(spec(()), OPTIONS)

    operator, out = opened(make()), Folded()
    operator.on_end(out)
    assert out.rows == Counter({(0, None, None, 0): 1})
    (operator,) = rescaled([operator], make, 1)
    operator.on_batch(batch_of(INPUT.to_arrow(), [("a", 0, 3)]), 0, out)
    operator.on_end(out)
    assert out.rows == Counter({(1, 3, "a", 1): 1})
    operator.on_batch(batch_of(INPUT.to_arrow(), [("a", 0, 3)], [-1]), 0, out)
    operator.on_end(out)
    assert out.rows == Counter({(0, None, None, 0): 1})


def test_only_the_first_subtask_gives_the_row_of_no_rows():
    out = Folded()
    for subtask in range(3):
        opened(build_operator(spec(()), OPTIONS), subtask, 3).on_end(out)
    assert sum(out.rows.values()) == 1


def test_distinct_is_an_aggregate_of_nothing():
    operator, out = opened(build_operator(spec((0, 1), ()), OPTIONS)), Folded()
    operator.on_batch(batch_of(INPUT.to_arrow(), [("a", 1, 1), ("a", 1, 2), (None, 1, 1)], [1, 2, 1]), 0, out)
    assert out.rows == Counter({("a", 1): 1, (None, 1): 1})
    operator.on_batch(batch_of(INPUT.to_arrow(), [("a", 1, 2), ("a", 1, 1)], [-2, -1]), 0, out)
    assert out.rows == Counter({(None, 1): 1})


def test_computed_arguments_and_filters():
    double = Call(INT, True, function="add", args=(V, V))
    keep = Call(BOOLEAN, True, function="greater", args=(V, Column(INT, True, index=1)))
    calls = (AggregateCall("sum", (double,), BIGINT, True, False, keep),)
    operator, out = opened(build_operator(spec((0,), calls), OPTIONS)), Folded()
    operator.on_batch(batch_of(INPUT.to_arrow(), [("a", 1, 5), ("a", 5, 1), ("a", None, 9)]), 0, out)
    assert out.rows == Counter({("a", 10): 1})


def test_counts_with_a_filter_or_of_values_leave_rows_out_and_take_them_back():
    keep = Call(BOOLEAN, True, function="greater", args=(V, Column(INT, True, index=1)))
    calls = (
        AggregateCall("count", (), BIGINT, False, False, keep),
        AggregateCall("count", (V,), BIGINT, False),
        AggregateCall("count", (V,), BIGINT, False, False, keep),
    )
    operator, out = opened(build_operator(spec((0,), calls), OPTIONS)), Folded()
    rows = [("a", 1, 5), ("a", 5, 1), ("a", None, 9), ("a", 1, None), ("b", 3, 3)]
    operator.on_batch(batch_of(INPUT.to_arrow(), rows), 0, out)
    assert out.rows == Counter({("a", 1, 3, 1): 1, ("b", 0, 1, 0): 1})
    operator.on_batch(batch_of(INPUT.to_arrow(), rows, [2, -1, -1, -1, -1]), 0, out)
    assert out.rows == Counter({("a", 3, 3, 3): 1})


def phases(options=OPTIONS):
    """Return the operators of an aggregate in two phases."""
    calls = (AggregateCall("count", (V,), BIGINT, False), AggregateCall("max", (V,), INT))
    local = opened(build_operator(spec((0,), calls, True, Phase.LOCAL), options))
    merged = (merge("sum0", BIGINT, 1), merge("max", INT, 2))
    return local, opened(build_operator(spec((0,), merged, True, Phase.GLOBAL, local_schema(calls)), options))


def given(last, out):
    """Return what the second phase makes of what the first has given."""
    folded = Folded()
    for batch in out.batches:
        last.on_batch(batch, 0, folded)
    return folded.rows


def test_local_phase_keeps_nothing_past_a_barrier():
    (local, last), out = phases(), Folded()
    for rows in ([("a", 0, 1), ("b", 0, 2), ("a", 0, None)], [("a", 0, 7)]):
        local.on_batch(batch_of(INPUT.to_arrow(), rows), 0, out)
        local.before_barrier(1, out)
    assert [batch.num_rows for batch in out.batches] == [2, 1]
    assert given(last, out) == Counter({("a", 2, 7): 1, ("b", 1, 2): 1})


def test_small_batches_are_aggregated_at_once_when_half_the_buffer_timeout_is_over():
    """Ten batches cost as one, and their rows go on sooner than they would behind the exchange's own
    timeout.
    """
    (local, last), out = phases(), Folded()
    calls = []
    local._index.lookup_or_insert, insert = (
        lambda columns, rows: calls.append(rows) or insert(columns, rows),
        local._index.lookup_or_insert,
    )
    for number in range(10):
        local.on_batch(batch_of(INPUT.to_arrow(), [("a", 0, number), ("b", 0, 2)]), 0, out)
    assert not out.batches and local.buffered_until_ms() == OPTIONS.buffer_timeout_ms / 2
    local.release(out)
    assert calls == [20] and [batch.num_rows for batch in out.batches] == [2]
    assert given(last, out) == Counter({("a", 10, 9): 1, ("b", 10, 2): 1})


def test_where_nothing_waits_the_rows_of_small_batches_go_on_as_they_are():
    (local, last), out = phases(replace(OPTIONS, buffer_timeout_ms=0)), Folded()
    few = [("a", 0, 1), ("b", 0, 2), ("a", 0, None)]
    local.on_batch(batch_of(INPUT.to_arrow(), few), 0, out)
    local.on_batch(batch_of(INPUT.to_arrow(), [("a", 0, 7)] * OPTIONS.batch_max_rows), 0, out)
    assert [batch.num_rows for batch in out.batches] == [3, 1]
    assert given(last, out) == Counter({("a", 1 + OPTIONS.batch_max_rows, 7): 1, ("b", 1, 2): 1})


def merge(function, kind, index):
    return AggregateCall(function, (Column(kind, True, index=index),), kind)


def local_schema(calls):
    return Schema((INPUT[0], *[Field(f"a{i}", c.type) for i, c in enumerate(calls)]))


def test_full_batches_are_taken_together():
    operator, out = opened(GroupAggregateOperator(spec((0,)), replace(OPTIONS, batch_max_rows=16))), Folded()
    full = batch_of(INPUT.to_arrow(), [("a", 0, 1)] * 16)
    for _ in range(BATCHES_AT_ONCE - 1):
        operator.on_batch(full, 0, out)
    assert not out.batches
    operator.on_batch(full, 0, out)
    assert [batch.num_rows for batch in out.batches] == [1]
    operator.on_batch(full, 0, out)
    assert operator.buffered_until_ms() == OPTIONS.buffer_timeout_ms / 2
    operator.release(out)
    assert operator.buffered_until_ms() is None
    assert [batch.num_rows for batch in out.batches] == [1, 2]
    operator.on_batch(full, 0, out)
    operator.before_barrier(1, out)
    rows = 16 * (BATCHES_AT_ONCE + 2)
    assert out.rows == {("a", rows, rows, "a", 1): 1}


def test_rows_are_added_as_they_come_and_what_they_change_is_emitted_together():
    options = replace(OPTIONS, batch_max_rows=16)
    operator, out = opened(GroupAggregateOperator(spec((0,), COUNTED), options)), Folded()
    for number in range(3):
        operator.on_batch(batch_of(INPUT.to_arrow(), [("a", 0, number)] * 16), 0, out)
        groups = operator.keyed_states()["groups"]
        assert not out.batches and groups.accumulators.results(np.array([0]))[0].to_pylist() == [
            16 * (number + 1)
        ]
    operator.release(out)
    assert [batch.num_rows for batch in out.batches] == [1]


def test_fewer_batches_are_taken_together_where_each_row_is_a_group():
    operator, out = opened(GroupAggregateOperator(spec((0,)), replace(OPTIONS, batch_max_rows=16))), Folded()
    distinct = batch_of(INPUT.to_arrow(), [(str(i), 0, 1) for i in range(16)])
    for _ in range(2):
        operator.on_batch(distinct, 0, out)
        operator.release(out)
    for _ in range(FEW_AT_ONCE):
        operator.on_batch(distinct, 0, out)
    # two that were released, one of so many batches of the same groups
    assert len(out.batches) == 3


def test_rows_that_are_ready_behind_small_ones_are_taken_with_them():
    operator, out = (
        opened(GroupAggregateOperator(spec((0,)), replace(OPTIONS, buffer_timeout_ms=0))),
        Folded(),
    )
    small = batch_of(INPUT.to_arrow(), [("a", 0, 1)] * 3)
    operator.rows_behind = True
    operator.on_batch(small, 0, out)
    operator.on_batch(small, 0, out)
    assert not out.batches and operator.buffered_until_ms() is not None
    operator.rows_behind = False
    operator.on_batch(small, 0, out)
    assert [batch.num_rows for batch in out.batches] == [1] and operator.buffered_until_ms() is None
    operator.on_batch(small, 0, out)
    assert [batch.num_rows for batch in out.batches] == [1, 2]


TEXT = Column(STRING, True, index=0, name="k")
LISTS = (
    AggregateCall("listagg", (TEXT, Literal(STRING, False, value="--")), STRING),
    AggregateCall("collect_list", (V,), ArrayType(INT), False),
    AggregateCall("count", (V,), BIGINT, False),
)


class Slow(Folded):
    """An output that takes a second for each batch."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def collect(self, batch):
        self.clock.advance(1_000)
        super().collect(batch)


def rows_of(groups):
    found = Counter()
    for g, rows in groups.items():
        if rows:
            texts = sorted(k for k, _ in rows.elements())
            found[(g, "--".join(texts), tuple(sorted(v for _, v in rows.elements())), rows.total())] = 1
    return found


@pytest.mark.parametrize("limit", ["none", "chunk_bytes", "array_bytes"])
@pytest.mark.parametrize("seed", range(4))
def test_large_groups_are_emitted_seldom_and_the_answer_is_the_same(monkeypatch, limit, seed):
    monkeypatch.setattr(group_aggregate, "_EXPENSIVE_BYTES", 0)
    if limit != "none":
        monkeypatch.setattr(LIMITS, limit, 60)
    monkeypatch.setattr(LIMITS, "value_bytes", 1 << 20)
    dice, clock = random.Random(seed), ManualClock()
    options = replace(OPTIONS, batch_max_rows=1, buffer_timeout_ms=0)
    operator = opened(GroupAggregateOperator(spec((1,), LISTS), options), clock=clock)
    out, groups, emissions = Slow(clock), defaultdict(Counter), 0
    for step in range(200):
        g = dice.randrange(3)
        rows = groups[g]
        if rows and dice.random() < 0.4:
            (k, v), sign = dice.choice(list(rows.elements())), -1
        else:
            (k, v), sign = ("x" * dice.randrange(9), dice.randrange(5)), 1
        rows[k, v] += sign
        groups[g] = +rows
        seen = len(out.batches)
        operator.on_batch(batch_of(INPUT.to_arrow(), [(k, g, v)], [sign]), 0, out)
        emissions += len(out.batches) > seen
        assert out.rows == rows_of(groups) or operator.buffered_until_ms() > clock.monotonic_ms()
        clock.advance(500)
        if step == 150:
            operator.before_barrier(1, out)
            assert out.rows == rows_of(groups)
    assert 2 < emissions < 50, "once per batch it would be 200"
    clock.advance(1_000_000)
    operator.release(out)
    assert out.rows == rows_of(groups) and operator.buffered_until_ms() is None


@pytest.mark.parametrize("limit", [1 << 30, 1])
def test_a_retraction_before_its_row_cancels_it_however_large_the_group_is(monkeypatch, limit):
    monkeypatch.setattr(LIMITS, "array_bytes", limit)
    operator, out = opened(GroupAggregateOperator(spec((1,), LISTS), OPTIONS)), Folded()
    for row, sign in ((("x", 7, 1), -1), (("x", 7, 1), 1), (("y", 7, 2), 1)):
        operator.on_batch(batch_of(INPUT.to_arrow(), [row], [sign]), 0, out)
        operator.before_barrier(1, out)
    assert out.rows == Counter({(7, "y", (2,), 1): 1})


@pytest.mark.parametrize(("call", "size"), [(LISTS[0], 102), (LISTS[1], 104)])
def test_a_value_that_grows_too_large_is_refused_with_its_function_and_group(monkeypatch, call, size):
    monkeypatch.setattr(LIMITS, "value_bytes", 100)
    operator, out = opened(GroupAggregateOperator(spec((1,), (call,)), OPTIONS)), Folded()
    rows = [("x" * 11, 7, n) for n in range(8 if size == 102 else 13)]
    operator.on_batch(batch_of(INPUT.to_arrow(), rows[:-1]), 0, out)
    with pytest.raises(TooLarge) as caught:
        operator.on_batch(batch_of(INPUT.to_arrow(), rows[-1:]), 0, out)
    name = call.function.upper()
    assert caught.value.message == f"{name} of the group (7) is {size} bytes long, a value may be 100"
    assert caught.value.code == "RUN-2023" and caught.value.hint
