"""Accumulators against aggregates written out in plain Python."""

import functools
import itertools
import math
import operator
import statistics
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    Array,
    Map,
    to_arrow,
)
from penstock.catalog.types import Decimal as DecimalType
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.planner.expressions.nodes import AggregateCall, Cast, Column, Direction, Literal
from tests.harness.aggregates import order, same
from tests.harness.length import examples

NARROW, WIDE = DecimalType(10, 2), DecimalType(30, 2)
COLUMNS = [
    ("i", INT),
    ("b", BIGINT),
    ("f", FLOAT),
    ("d", DOUBLE),
    ("n", NARROW),
    ("w", WIDE),
    ("s", STRING),
    ("t", BOOLEAN),
    ("keep", BOOLEAN),
    ("y", DATE),
]
TYPES = dict(COLUMNS)
POSITION = {name: i for i, (name, _) in enumerate(COLUMNS)}
SCHEMA = pa.schema([(name, to_arrow(kind)) for name, kind in COLUMNS])


def arg(name):
    return Column(TYPES[name], True, index=POSITION[name], name=name)


def call(function, name=None, result=None, distinct=False, keep=False):
    return AggregateCall(
        function,
        (arg(name),) if name else (),
        result or BIGINT,
        True,
        distinct,
        arg("keep") if keep else None,
    )


PAIRS = [
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
]


def pair(function, distinct):
    """Of (i, d) as numbers."""
    return AggregateCall(function, (Cast(DOUBLE, True, arg=arg("i")), arg("d")), DOUBLE, distinct=distinct)


def ordered(function, name, *keys, constant=None, result, distinct=False):
    literal = (
        ()
        if constant is None
        else (Literal(STRING if isinstance(constant, str) else DOUBLE, False, value=constant),)
    )
    args = (arg(name), *literal, *(arg(key) for key, _, _ in keys))
    return AggregateCall(
        function, args, result, True, distinct, order=tuple(Direction(down, first) for _, down, first in keys)
    )


CALLS = [
    call("count"),
    call("count", keep=True),
    call("count", "i"),
    call("count", "s", distinct=True),
    call("count", "d", distinct=True, keep=True),
    call("count", "s", distinct=True, keep=True),
    *[
        AggregateCall(f, (arg("i"),), BIGINT, distinct=True, filter=arg(by))
        for f in ("count", "sum")
        for by in ("t", "keep")
    ],
    call("sum", "i"),
    call("sum", "b"),
    call("sum0", "b"),
    call("sum", "d", DOUBLE),
    call("sum", "f", DOUBLE, keep=True),
    call("sum", "n", DecimalType(20, 2)),
    call("sum", "w", DecimalType(38, 2)),
    call("sum", "i", distinct=True),
    call("avg", "i", DOUBLE),
    call("avg", "d", DOUBLE, distinct=True),
    call("avg", "n", DecimalType(14, 6)),
    call("avg", "w", DecimalType(34, 6)),
    *[call(f, name, TYPES[name]) for f in ("min", "max") for name in TYPES if name != "keep"],
    call("any_value", "s", STRING),
    call("max", "s", STRING, distinct=True, keep=True),
    *[
        call(f, name, DOUBLE)
        for f in ("stddev_samp", "stddev_pop", "var_samp", "var_pop")
        for name in ("d", "i", "n")
    ],
    call("bool_and", "t", BOOLEAN),
    call("bool_or", "t", BOOLEAN, keep=True),
    *[
        call(f, name, TYPES[name], keep=name == "b")
        for f in ("bit_and", "bit_or", "bit_xor")
        for name in ("i", "b")
    ],
    call("bit_xor", "b", distinct=True),
    *[call(f, name, DOUBLE) for f in ("skewness", "kurtosis") for name in ("d",)],
    *[pair(f, distinct=False) for f in PAIRS],
    pair("covar_pop", distinct=True),
    *[
        call("collect_list", name, Array(TYPES[name]), keep=name == "d")
        for name in TYPES
        if name not in ("keep", "f")
    ],
    call("collect_list", "s", Array(STRING), distinct=True),
    ordered("collect_list", "s", ("i", True, False), result=Array(STRING)),
    ordered("collect_list", "i", ("d", False, True), ("s", True, True), result=Array(INT)),
    ordered("listagg", "s", constant="-", result=STRING),
    ordered("listagg", "s", ("s", True, False), constant=", ", result=STRING, distinct=True),
    *[ordered("percentile", "d", constant=share, result=DOUBLE) for share in (0.0, 0.25, 0.5, 1.0)],
    ordered("percentile", "d", constant=0.5, result=DOUBLE, distinct=True),
    *[ordered("percentile_approx", name, constant=0.4, result=TYPES[name]) for name in ("i", "w", "y")],
    *[call("mode", name, TYPES[name]) for name in ("s", "d", "w", "t")],
    call("histogram", "s", Map(STRING, BIGINT)),
    *[AggregateCall(f, (arg("s"), arg("d")), STRING) for f in ("min_by", "max_by")],
    AggregateCall("max_by", (arg("w"), arg("s")), WIDE, filter=arg("keep")),
    *[ordered(f, "s", ("y", False, True), result=STRING) for f in ("first_value", "last_value")],
    ordered("first_value", "d", ("s", True, False), ("i", True, True), result=DOUBLE),
]

ROW = st.tuples(
    st.none() | st.integers(-5, 5),
    st.none() | st.sampled_from([0, 1, -7, 2**55, -(2**55)]),
    st.none() | st.sampled_from([0.0, -0.0, 1.5, -2.25, math.nan]),
    st.none() | st.sampled_from([0.0, 1.5, 1e9, -2.25, 0.1, math.inf, -math.inf, math.nan]),
    st.none() | st.sampled_from([Decimal("0.01"), Decimal("-3.50"), Decimal("99999999.99")]),
    st.none() | st.sampled_from([Decimal("0.01"), Decimal(-(2**70)), Decimal(2**64), Decimal("-3.55")]),
    st.none() | st.sampled_from(["", "a", "ab", "b", "abcdefghijkl", "é", "Z"]),
    st.none() | st.booleans(),
    st.none() | st.booleans(),
    st.none() | st.integers(-3, 3),
)


def batch(rows):
    return pa.record_batch(
        [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(SCHEMA)], schema=SCHEMA
    )


def total(values):
    if any(isinstance(v, float) and not math.isfinite(v) for v in values):
        return sum(values)
    return math.fsum(values) if isinstance(values[0], float) else sum(values)


def naive(c, rows):
    """The aggregate over a list of (row, positive weight)."""
    rows = [(row, w) for row, w in rows if c.filter is None or row[c.filter.index]]
    if not c.args:
        return sum(w for _, w in rows)
    if c.function in PAIRS:
        return paired(c, [(row[POSITION["i"]], row[POSITION["d"]]) for row, w in rows for _ in range(w)])
    if c.order or c.function in ("min_by", "max_by"):
        return positioned(c, [row for row, w in rows for _ in range(w)])
    index = c.args[0].index
    values = [row[index] for row, w in rows for _ in range(w) if row[index] is not None]
    if c.distinct:
        values = list({order(v) if not isinstance(v, str) else v: v for v in values}.values())
    f = c.function
    if f == "count":
        return len(values)
    if not values and f == "collect_list":
        return []
    if not values:
        return 0 if f == "sum0" else None
    if f in ("sum", "sum0"):
        return total(values)
    if f == "avg":
        if isinstance(c.type, DecimalType):
            return (sum(values) / len(values)).quantize(Decimal("0.000001"), ROUND_HALF_UP)
        return total(values) / len(values)
    if f in ("min", "any_value"):
        return min(values, key=order)
    if f == "max":
        return max(values, key=order)
    if f in ("bool_and", "bool_or"):
        return all(values) if f == "bool_and" else any(values)
    if f.startswith("bit"):
        return functools.reduce(
            {"bit_and": operator.and_, "bit_or": operator.or_, "bit_xor": operator.xor}[f], values
        )
    if f in ("skewness", "kurtosis"):
        return shape(f, values)
    if f in ("stddev_samp", "stddev_pop", "var_samp", "var_pop"):
        return spread(f, [float(v) for v in values])
    return bagged(c, sorted(values, key=order))


def bagged(c, values):
    match c.function:
        case "collect_list":
            return values
        case "listagg":
            return c.args[1].value.join(values)
        case "mode":
            return max(values, key=lambda v: sum(order(v) == order(w) for w in values))
        case "histogram":
            return [(v, len(list(same))) for v, same in itertools.groupby(values)]
    share = c.args[1].value
    if c.function == "percentile_approx":
        return values[max(math.ceil(share * len(values)), 1) - 1]
    place = share * (len(values) - 1)
    low, high = values[math.floor(place)], values[math.ceil(place)]
    return (
        low
        if order(low) == order(high)
        else (math.ceil(place) - place) * low + (place - math.floor(place)) * high
    )


def positioned(c, rows):
    """Aggregates that go by an order: its keys, then the value."""
    by = c.function in ("min_by", "max_by")
    keys = (
        [(c.args[1].index, Direction())]
        if by
        else [(key.expression.index, way) for key, way in zip(c.sort_keys, c.order, strict=True)]
    )
    value = c.args[0].index
    needed = c.args[1].index if by else None if c.function.endswith("_value") else value
    rows = [row for row in rows if needed is None or row[needed] is not None]
    rows.sort(key=lambda row: place(row[value], Direction()))
    for index, way in reversed(keys):
        rows.sort(key=lambda row: place(row[index], way), reverse=way.descending)
    values = [row[value] for row in rows]
    if c.function == "collect_list":
        return values
    if c.function == "listagg":
        return c.args[1].value.join(dict.fromkeys(values) if c.distinct else values) if values else None
    return None if not values else values[0 if c.function in ("first_value", "min_by") else -1]


def place(value, way):
    """Where a value sorts; a stable reversed sort puts what is greatest first."""
    return (
        (way.nulls_first == way.descending, 0)
        if value is None
        else (way.nulls_first != way.descending, order(value))
    )


def paired(c, pairs):
    pairs = [(float(y), x) for y, x in pairs if y is not None and x is not None]
    pairs = list({(y, order(x)): (y, x) for y, x in pairs}.values()) if c.distinct else pairs
    if not pairs:
        return None
    ys, xs = ([p[k] for p in pairs] for k in (0, 1))
    n = len(pairs)
    if not all(map(math.isfinite, xs)):
        return math.nan
    y, x = math.fsum(ys) / n, math.fsum(xs) / n
    syy, sxx = (
        0.0 if len(set(vs)) == 1 else math.fsum((v - m) ** 2 for v in vs) for vs, m in ((ys, y), (xs, x))
    )
    sxy = math.fsum((a - y) * (b - x) for a, b in pairs) if syy and sxx else 0.0
    found = {
        "covar_pop": sxy / n,
        "regr_avgx": x,
        "regr_avgy": y,
        "regr_sxx": sxx,
        "regr_syy": syy,
        "regr_sxy": sxy,
    }
    if n > 1:
        found["covar_samp"] = sxy / (n - 1)
    if sxx:
        found |= {"regr_slope": sxy / sxx, "regr_intercept": y - sxy / sxx * x, "regr_r2": 1.0}
    if sxx and syy:
        found |= {"corr": sxy / math.sqrt(sxx) / math.sqrt(syy), "regr_r2": sxy * sxy / sxx / syy}
    return found.get(c.function)


def shape(function, values):
    if not all(map(math.isfinite, values)):
        return math.nan
    if len(set(values)) < 2:
        return None
    n, mean = len(values), math.fsum(values) / len(values)
    second, third, fourth = (math.fsum((v - mean) ** k for v in values) for k in (2, 3, 4))
    return math.sqrt(n) * third / second**1.5 if function == "skewness" else n * fourth / second**2 - 3


def spread(function, values):
    if function.endswith("_samp") and len(values) < 2:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    variance = statistics.variance(values) if function.endswith("_samp") else statistics.pvariance(values)
    return math.sqrt(variance) if function.startswith("stddev") else variance


def numbers(column):
    """Dates as the numbers that were drawn."""
    if column.type == pa.date32():
        return column.cast(pa.int32())
    return column.cast(pa.list_(pa.int32())) if column.type == pa.list_(pa.date32()) else column


def check(accumulators, slots, model):
    columns = accumulators.results(np.array(slots, np.int64))
    for c, column in zip(CALLS, columns, strict=True):
        assert column.type == to_arrow(c.type), c
        for slot, got in zip(slots, numbers(column).to_pylist(), strict=True):
            want = naive(c, model[slot])
            assert same(got, want), f"{c} of slot {slot}: {got} is not {want}"


@pytest.fixture(scope="module", autouse=True)
def exact_decimals():
    import decimal

    with decimal.localcontext() as context:
        context.prec = 60
        yield


def new(insert_only):
    accumulators = Accumulators(CALLS, insert_only)
    accumulators.reserve(4)
    return accumulators


SLOTTED = st.lists(st.tuples(st.integers(0, 3), ROW), min_size=1, max_size=10)


@settings(max_examples=examples(16), deadline=None, derandomize=True)
@given(st.lists(SLOTTED, max_size=5), st.booleans())
def test_inserts_merges_and_clear(batches, insert_only):
    one, other = new(insert_only), new(insert_only)
    model = {slot: [] for slot in range(4)}
    for i, rows in enumerate(batches):
        (one if i % 2 else other).add(np.array([s for s, _ in rows]), batch([r for _, r in rows]))
        for slot, row in rows:
            model[slot].append((row, 1))
    one.merge(np.array([0, 1, 2, 3]), other, np.array([0, 1, 2, 3]))
    check(one, [0, 1, 2, 3], model)
    one.clear(np.array([1, 3]))
    check(one, [3, 2, 1, 0], model | {1: [], 3: []})


@settings(max_examples=examples(18), deadline=None, derandomize=True)
@given(st.data())
def test_retractions_and_checkpoints(data):
    accumulators = new(False)
    model = {slot: [] for slot in range(4)}
    for _ in range(data.draw(st.integers(1, 4))):
        rows = [(s, r, data.draw(st.integers(1, 3))) for s, r in data.draw(SLOTTED)]
        for slot, row, weight in rows:
            model[slot].append([row, weight])
        for slot in range(4):
            for held in model[slot]:
                if data.draw(st.booleans()):
                    gone = data.draw(st.integers(1, held[1]))
                    held[1] -= gone
                    rows.append((slot, held[0], -gone))
            model[slot] = [held for held in model[slot] if held[1]]
        accumulators.add(
            np.array([s for s, _, _ in rows]),
            batch([r for _, r, _ in rows]),
            np.array([w for _, _, w in rows]),
        )
        check(accumulators, [0, 1, 2, 3], model)
        if data.draw(st.booleans()):
            slots = np.array([2, 0, 3, 1])
            columns, accumulators = (
                accumulators.freeze(int(slots.max(initial=0)) + 1)(None)(slots),
                new(False),
            )
            accumulators.restore(slots, columns)
            check(accumulators, [0, 1, 2, 3], model)
    leftovers = [(slot, row, -w) for slot in range(4) for row, w in model[slot]]
    if leftovers:
        accumulators.add(
            np.array([s for s, _, _ in leftovers]),
            batch([r for _, r, _ in leftovers]),
            np.array([w for _, _, w in leftovers]),
        )
    check(accumulators, [0, 1, 2, 3], {slot: [] for slot in range(4)})
    for part in accumulators._parts:
        assert len(getattr(part, "_counts", [])) == 0


def add(calls, columns, weights=None, insert_only=False):
    accumulators = Accumulators(calls, insert_only)
    accumulators.reserve(1)
    rows = len(columns[0])
    accumulators.add(
        np.zeros(rows, np.int64),
        pa.record_batch(columns, names=[f"c{i}" for i in range(len(columns))]),
        weights,
    )
    return accumulators


def test_retraction_where_none_was_planned():
    with pytest.raises(PenstockError) as error:
        add([call("count")], [pa.array([1])], np.array([-1]), insert_only=True)
    assert error.value.code == "INT-9046"
