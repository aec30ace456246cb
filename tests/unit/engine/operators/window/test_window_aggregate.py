"""Window aggregates against windows written out, over random splits, interleavings, batch cuts, watermarks
and rescaling in mid-run.
"""

from collections import Counter, defaultdict
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, INT, STRING, TIMESTAMP
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US
from penstock.engine.kernels.partition import partition
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.operators.factory import build_operator
from penstock.planner.expressions.nodes import AggregateCall, Column
from penstock.planner.logical.aggregate import Phase
from penstock.planner.logical.windows import (
    AttachedWindow,
    CumulateWindow,
    HopWindow,
    SessionWindow,
    TumbleWindow,
    window_fields,
)
from tests.harness.direct.lateness import Entry, sessions_in_turn
from tests.harness.layered import checkpoint
from tests.harness.length import examples
from tests.harness.operator_specs import window_aggregate_spec
from tests.harness.operators import done
from tests.harness.state import OPTIONS, Folded, batch_of, opened, rescaled

TIME = Field("t", TIMESTAMP, True, Role.EVENT_TIME)
INPUT = Schema((TIME, Field("k", STRING), Field("v", INT)))
V = Column(INT, True, index=2, name="v")
CALLS = (
    AggregateCall("count", (), BIGINT, False),
    AggregateCall("sum", (V,), BIGINT),
    AggregateCall("max", (V,), INT),
)
WIDTHS = {TumbleWindow: (6, 0), HopWindow: (12, 4), CumulateWindow: (12, 3)}


def spec(window, keys=(1,), calls=CALLS, phase=Phase.SINGLE, insert_only=True, source=INPUT):
    fields = tuple(source[k] for k in keys) + tuple(
        Field(f"a{i}", c.type, c.nullable) for i, c in enumerate(calls)
    )
    tail = (Field("slice_end", TIMESTAMP, False),) if phase is Phase.LOCAL else window_fields()
    return window_aggregate_spec(
        "id", "window", Schema(fields + tail), source, window, keys, calls, phase, insert_only
    )


def windows_of(time, kind):
    size, step = WIDTHS[kind]
    if kind is CumulateWindow:
        start = time // size * size
        return [(start, end) for end in range(start + step, start + size + 1, step) if end > time]
    return [
        (s, s + size) for s in range(time // (step or size) * (step or size), time - size, -(step or size))
    ]


def at(micros):
    return datetime(1970, 1, 1) + timedelta(microseconds=micros)


def aggregates(values):
    """The rows of CALLS over (v, weight) pairs."""
    known = [(v, w) for v, w in values if v is not None and w]
    total = sum(v * w for v, w in known) if sum(w for _, w in known) else None
    return sum(w for _, w in values), total, max((v for v, _ in known), default=None)


def window_rows(groups):
    """The rows expected of {(start, end, key): [(v, weight)]}."""
    rows = Counter()
    for (start, end, key), values in groups.items():
        if sum(w for _, w in values):
            rows[(key, *aggregates(values), at(start), at(end), at(end - 1000))] += 1
    return rows


EVENTS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.none() | st.integers(-20, 40),
        st.none() | st.sampled_from("abcde"),
        st.none() | st.integers(-3, 3),
    ),
    max_size=30,
)
DELAY = 5


@st.composite
def runs(draw):
    """Rows (split, time, key, value) in an order, batches of them by length, where to rescale and to what."""
    events = draw(EVENTS)
    cuts = draw(st.lists(st.integers(1, 8), min_size=len(events), max_size=len(events)))
    return (
        events,
        cuts,
        draw(st.lists(st.sampled_from([0, 0, 0, 1, 2, 3]), min_size=len(events), max_size=len(events))),
    )


def drive(make, events, cuts, rescale, before_rescale=lambda operators, out: None):
    """Run rows through operators as sources and assigners would; return the output and the metrics' late
    rows.
    """
    operators, out, late = [opened(make())], Folded(), 0
    split_watermarks = [MIN_WATERMARK_US, MIN_WATERMARK_US]
    position = 0
    for cut, parallelism in zip(cuts, rescale, strict=True):
        piece = events[position : position + cut]
        position += cut
        for split in (0, 1):
            mine = [event for event in piece if event[0] == split]
            rows, behind = [], []
            for _, time, key, value in mine:
                rows.append((time, key, value))
                behind.append(split_watermarks[split])
                if time is not None:
                    split_watermarks[split] = max(split_watermarks[split], time - DELAY)
            some_behind = any(r[0] is not None and r[0] < b for r, b in zip(rows, behind, strict=True))
            if rows:
                send(operators, batch_of(INPUT.to_arrow(), rows, None, behind if some_behind else None), out)
        for operator in operators:
            if min(split_watermarks) > MIN_WATERMARK_US:
                operator.on_watermark(min(split_watermarks), out)
            checkpoint(operator)
        if parallelism:
            late += sum(operator.metrics.late_rows for operator in operators)
            before_rescale(operators, out)
            operators = rescaled(operators, make, parallelism)
    for operator in operators:
        operator.on_watermark(MAX_WATERMARK_US, out)
        operator.on_end(out)
        assert all(state.snapshot().num_rows == 0 for state in operator.keyed_states().values())
    return out, late + sum(operator.metrics.late_rows for operator in operators)


def send(operators, batch, out):
    order, offsets = partition(stable_hash([batch.rows.column(1)]), len(operators), 128)
    for i, operator in enumerate(operators):
        if offsets[i] < offsets[i + 1]:
            operator.on_batch(batch.take(order[offsets[i] : offsets[i + 1]]), 0, out)


def expected(events, kind):
    groups, late = defaultdict(list), 0
    split_watermarks = [MIN_WATERMARK_US, MIN_WATERMARK_US]
    for split, time, key, value in events:
        if time is None:
            continue
        in_time = [w for w in windows_of(time, kind) if w[1] > split_watermarks[split]]
        for start, end in in_time:
            groups[start, end, key].append((value, 1))
        late += not in_time
        split_watermarks[split] = max(split_watermarks[split], time - DELAY)
    return window_rows(groups), late


@pytest.mark.parametrize("kind", WIDTHS)
@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(run=runs())
def test_single_phase(kind, run):
    events, cuts, rescale = run
    window = kind(0, *WIDTHS[kind])
    out, late = drive(lambda: build_operator(spec(window), OPTIONS), events, cuts, rescale)
    assert (out.rows, late) == expected(events, kind)
    ends = [batch.rows.column("window_end").cast(pa.int64()).to_numpy() for batch in out.batches]
    assert all((np.diff(e) >= 0).all() for e in ends)


class TwoPhases:
    """LOCAL and GLOBAL as one operator."""

    def __init__(self, window):
        local = spec(window, phase=Phase.LOCAL)
        merges = ("sum0", "sum", "max")
        calls = tuple(
            AggregateCall(f, (Column(c.type, True, index=1 + i),), c.type)
            for i, (f, c) in enumerate(zip(merges, CALLS, strict=True))
        )
        sliced = type(window)(4, window.size_us, window.step_us, sliced=True)
        self.local = build_operator(local, OPTIONS)
        self.last = build_operator(spec(sliced, (0,), calls, Phase.GLOBAL, True, local.schema), OPTIONS)

    def open(self, context):
        self.local.open(context)
        self.last.open(context)

    def on_batch(self, batch, port, out):
        self.local.on_batch(batch, port, Into(self.last, out))

    def on_watermark(self, time_us, out):
        self.local.on_watermark(time_us, Into(self.last, out))
        self.last.on_watermark(time_us, out)

    def on_end(self, out):
        self.local.on_end(Into(self.last, out))
        self.last.on_end(out)

    def keyed_states(self):
        return self.last.keyed_states()

    def list_states(self):
        return self.last.list_states()


class Into:
    def __init__(self, operator, out):
        self.collect = lambda batch: operator.on_batch(batch, 0, out)


@pytest.mark.parametrize("kind", WIDTHS)
@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(run=runs())
def test_two_phases(kind, run):
    events, cuts, rescale = run

    def flush(operators, out):
        for operator in operators:
            operator.local.before_barrier(1, Into(operator.last, out))

    out, late = drive(lambda: TwoPhases(kind(0, *WIDTHS[kind])), events, cuts, rescale, flush)
    assert (out.rows, late) == expected(events, kind)


def sessions_of(events, gap):
    came = []
    split_watermarks = [MIN_WATERMARK_US, MIN_WATERMARK_US]
    for split, time, key, value in events:
        if time is not None:
            came.append(Entry(key, time, split_watermarks[split], (value, 1)))
            split_watermarks[split] = max(split_watermarks[split], time - DELAY)
    found, late = sessions_in_turn(came, gap)
    rows = sum((Counter(window_rows({(one.start, one.end, one.key): one.rows})) for one in found), Counter())
    return rows, len(late)


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(run=runs())
def test_sessions(run):
    events, cuts, rescale = run
    window = SessionWindow(0, 4, partition_keys=(1,))
    out, late = drive(lambda: build_operator(spec(window), OPTIONS), events, cuts, rescale)
    assert (out.rows, late) == sessions_of(events, 4)


def test_a_row_between_two_sessions_joins_them():
    operator, out = opened(build_operator(spec(SessionWindow(0, 10)), OPTIONS)), Folded()
    for times in ([0, 30], [15], [8, 22]):
        operator.on_batch(batch_of(INPUT.to_arrow(), [(t, "a", 1) for t in times]), 0, out)
    assert operator.metrics.state_entries == 1
    operator.on_watermark(40, out)
    assert not out.rows
    operator.on_watermark(41, out)
    assert out.rows == Counter({("a", 5, 5, 1, at(0), at(40), at(-960)): 1})
    assert (operator.metrics.windows_closed, operator.metrics.state_entries) == (1, 0)


@pytest.mark.parametrize("kind", WIDTHS)
@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from("ab"), st.integers(-2, 2)), min_size=1, max_size=12
    ),
    st.data(),
)
def test_retractions(kind, rows, data):
    window = kind(0, *WIDTHS[kind])
    operator, out, groups = (
        opened(build_operator(spec(window, insert_only=False), OPTIONS)),
        Folded(),
        defaultdict(list),
    )
    gone = [row for row in rows if data.draw(st.booleans())]
    operator.on_batch(batch_of(INPUT.to_arrow(), rows, [2] * len(rows)), 0, out)
    if gone:
        operator.on_batch(batch_of(INPUT.to_arrow(), gone, [-2] * len(gone)), 0, out)
    for row in gone:
        rows.remove(row)
    for time, key, value in rows:
        for start, end in windows_of(time, kind):
            groups[start, end, key].append((value, 2))
    operator.on_watermark(MAX_WATERMARK_US, out)
    assert out.rows == window_rows(groups)
    assert operator.metrics.state_entries == 0


def test_attached_windows():
    source = Schema((Field("k", STRING), Field("v", INT), Field("s", TIMESTAMP), Field("e", TIMESTAMP)))
    calls = (AggregateCall("count", (), BIGINT, False),)

    def make():
        return build_operator(spec(AttachedWindow(2, 3), (0,), calls, source=source), OPTIONS)

    operator, out = opened(make()), Folded()
    rows = [("a", 1, 0, 10), ("a", 2, 5, 10), ("b", 3, 0, 20), ("a", 1, 0, 10)]
    operator.on_batch(batch_of(source.to_arrow(), rows), 0, out)
    operator.on_watermark(10, out)
    assert out.rows == Counter({("a", 2, at(0), at(10), at(-990)): 1, ("a", 1, at(5), at(10), at(-990)): 1})
    (operator,) = rescaled([operator], make, 1)
    operator.on_watermark(10, out)
    operator.on_batch(batch_of(source.to_arrow(), [("b", 0, 0, 10), ("b", 0, 0, 20)], None, [0, 19]), 0, out)
    assert operator.metrics.late_rows == 1
    operator.on_watermark(20, out)
    assert out.rows["b", 2, at(0), at(20), at(-980)] == 1


def test_windows_without_keys_and_many_at_once(monkeypatch):
    monkeypatch.setattr(LIMITS, "merged_pairs", 3)
    operator, out = opened(build_operator(spec(HopWindow(0, 12, 4), ()), OPTIONS)), Folded()
    operator.on_batch(batch_of(INPUT.to_arrow(), [(t, "x", 1) for t in range(100)]), 0, out)
    done(operator.on_watermark(MAX_WATERMARK_US, out))
    groups = defaultdict(list)
    for t in range(100):
        for start, end in windows_of(t, HopWindow):
            groups[start, end, None].append((1, 1))
    assert out.rows == Counter({row[1:]: n for row, n in window_rows(groups).items()})
    assert len(out.batches) > 5
    assert operator.metrics.windows_closed == 27
