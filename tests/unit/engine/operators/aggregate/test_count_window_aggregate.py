"""Windows of n rows against lists, whatever the batches and the parallelism; what state is left."""

from collections import Counter, defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, INT, STRING
from penstock.engine.kernels.partition import partition
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.operators.factory import build_operator
from penstock.planner.expressions.nodes import AggregateCall, Column
from penstock.planner.logical.aggregate import CountWindowAggregate
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.physical.operator_specs import InputSchema, OperatorSpec
from tests.harness.length import examples
from tests.harness.state import OPTIONS, Folded, batch_of, opened, rescaled

INPUT = Schema((Field("k", STRING), Field("w", BIGINT), Field("v", INT)))
CALLS = (
    AggregateCall("sum", (Column(INT, True, index=2, name="v"),), BIGINT),
    AggregateCall("min", (Column(STRING, True, index=0),), STRING),
)


def operator(size):
    node = CountWindowAggregate(InputSchema(INPUT), (0, 1), CALLS, ("s", "m"), size)
    return build_operator(OperatorSpec("id", "windows", node.schema, node, PartitionFacts((True,))), OPTIONS)


def numbered(rows, size):
    """Rows (key, value) with the number of their window."""
    seen = Counter()
    for key, value in rows:
        yield key, seen[key] // size, value
        seen[key] += 1


def expected(rows, size, *, full):
    windows = defaultdict(list)
    for key, window, value in numbered(rows, size):
        windows[key, window].append(value)
    return Counter(
        {
            (key, window, sum(values), key): 1
            for (key, window), values in windows.items()
            if len(values) == size or not full
        }
    )


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.none() | st.sampled_from("abc"), st.integers(-9, 9)), max_size=40),
    st.integers(1, 4),
    st.data(),
)
def test_like_lists(rows, size, data):
    operators, out = [opened(operator(size))], Folded()
    left, done = list(numbered(rows, size)), 0
    while left:
        count = data.draw(st.integers(1, len(left)))
        batch = batch_of(INPUT.to_arrow(), left[:count])
        left, done = left[count:], done + count
        order, offsets = partition(stable_hash([batch.rows.column(0)]), len(operators), 128)
        for i, each in enumerate(operators):
            if offsets[i] < offsets[i + 1]:
                each.on_batch(batch.take(order[offsets[i] : offsets[i + 1]]), 0, out)
        assert out.rows == expected(rows[:done], size, full=True)
        keys = {key for key, _ in rows[:done]}
        assert sum(each.keyed_states()["groups"].snapshot().num_rows for each in operators) <= len(keys)
        if data.draw(st.booleans()):
            operators = rescaled(operators, lambda: operator(size), 1)
    for each in operators:
        each.on_end(out)
        assert each.keyed_states()["groups"].snapshot().num_rows == 0
    assert out.rows == expected(rows, size, full=False)
    assert all(batch.weights is None for batch in out.batches)
