"""Which accumulator an aggregate has, what it reads, and which calls share one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Array, DataType
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.aggregates.registry import (
    family,
    input_arguments,
    input_type,
    is_distinct,
    needs_value,
    new_part,
    result,
)
from penstock.planner.expressions.nodes import AggregateCall, Column, Direction, Literal
from tests.harness.aggregates import add_rows

I, D, S, T = (Column(kind, True, index=i) for i, kind in enumerate((INT, DOUBLE, STRING, BOOLEAN)))
NESTED = Column(Array(INT), True, index=4)
HALF, COMMA = Literal(DOUBLE, False, value=0.5), Literal(STRING, False, value=", ")


def call(function: str, *args: Any, kind: DataType = BIGINT, **more: Any) -> AggregateCall:
    return AggregateCall(function, args, kind, **more)


SHARED = [
    (call("sum", I), call("avg", I, kind=DOUBLE), call("sum0", I)),
    (call("min", S), call("any_value", S)),
    (call("bool_and", T), call("bool_or", T)),
    (call("var_pop", D), call("stddev_samp", D)),
    (call("skewness", D), call("kurtosis", D)),
    (call("bit_and", I), call("bit_or", I), call("bit_xor", I)),
    (call("corr", D, D), call("regr_slope", D, D)),
    (call("collect_list", S), call("mode", S), call("listagg", S, COMMA), call("histogram", S)),
    (call("percentile", D, HALF), call("percentile", D, replace(HALF, value=0.25))),
    (call("count", I, distinct=True, filter=T), call("count", I, distinct=True)),
    (call("collect_list", S, distinct=True), call("collect_list", S)),
]
APART = [
    (call("sum", I), call("sum", D)),
    (call("sum", I), call("count", I)),
    (call("sum", I), call("sum", I, distinct=True)),
    (call("sum", I), call("sum", I, filter=T)),
    (call("min", I), call("max", I)),
    (call("first_value", I, S, order=(Direction(),)), call("first_value", I, S, order=(Direction(True),))),
    (call("count", I, distinct=True), call("sum", I, distinct=True)),
]


def test_calls_of_one_family_share_an_accumulator() -> None:
    for calls in SHARED:
        assert len({family(one) for one in calls}) == 1, calls
    for calls in APART:
        assert len({family(one) for one in calls}) == len(calls), calls


def test_shared_state() -> None:
    calls = [call("sum", I), call("avg", I, kind=DOUBLE), call("sum0", I), call("sum", I, filter=T)]
    assert len(Accumulators(calls, True)._parts) == 2


# The call, its part under inserts, its part under retraction, and what it reads.
PARTS: list[tuple[AggregateCall, str, str, str | None]] = [
    (call("count"), "CountPart", "CountPart", None),
    (call("count", I), "CountPart", "CountPart", "int32"),
    (call("count", I, distinct=True), "Distinct", "Distinct", "int32"),
    (call("sum", I), "ExactSum", "ExactSum", "int32"),
    (call("avg", D), "FloatSum", "FloatSum", "double"),
    (call("sum", D, distinct=True), "Distinct", "Distinct", "double"),
    (call("min", I), "LeastValue", "RetractableBest", "int32"),
    (call("max", S, distinct=True), "BestString", "RetractableBest", "string"),
    (call("max", NESTED), "BestRow", "BestRow", "struct<v0: list<item: int32>>"),
    (call("bool_or", T), "BooleanPart", "BooleanPart", "bool"),
    (call("bit_xor", I), "UnitedBits", "CountedBits", "int32"),
    (call("bit_xor", I, distinct=True), "Distinct", "Distinct", "int32"),
    (call("var_pop", D), "MomentsPart", "MomentsPart", "double"),
    (call("skewness", D), "ShapePart", "ValueBag", "double"),
    (call("kurtosis", D, distinct=True), "ValueBag", "ValueBag", "double"),
    (call("corr", D, D), "PairPart", "PairPart", "struct<v0: double, v1: double>"),
    (call("max_by", S, I), "BestRow", "BestRow", "struct<v0: string, v1: int32>"),
    (call("percentile", D, HALF), "ValueBag", "ValueBag", "double"),
    (call("listagg", S, COMMA, I, order=(Direction(),)), "ValueBag", "ValueBag", "struct<v0: string, v1: int32>"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "inserts", "retractions", "kind"), PARTS, ids=lambda value: str(value))
def test_an_aggregate_has_the_part_for_its_changes(
    one: AggregateCall, inserts: str, retractions: str, kind: str | None
) -> None:
    found = input_type(one)
    assert (None if found is None else str(found)) == kind
    assert [type(new_part(one, only, True)).__name__ for only in (True, False)] == [inserts, retractions]
    assert is_distinct(one) == (inserts == "Distinct")


def test_a_distinct_aggregate_has_a_part_for_each_filter() -> None:
    assert len(new_part(call("count", I, distinct=True), True, True, 3).parts) == 3  # type: ignore[attr-defined]


def test_constants_are_no_input_but_sort_keys_are() -> None:
    assert input_arguments(call("listagg", S, COMMA, I, order=(Direction(),))) == (S, I)
    assert input_arguments(call("percentile", D, HALF)) == (D,)
    assert input_arguments(call("regr_slope", D, I)) == (D, I)


def test_which_arguments_must_not_be_null() -> None:
    assert needs_value(call("sum", I)) == (0,)
    assert needs_value(call("corr", D, D)) == (0, 1)
    assert needs_value(call("min_by", S, I)) == (1,), "the value of MIN_BY may be NULL, its key may not"
    assert needs_value(call("last_value", S, I, order=(Direction(),))) == ()


def test_a_result_has_exactly_the_type_of_its_call() -> None:
    for one, values in (
        (call("sum", I), [1, 2]),
        (call("max", I, kind=INT), [1, 2]),
        (call("avg", I, kind=DOUBLE), [1, 2]),
        (call("collect_list", S, kind=Array(STRING)), ["a"]),
        (call("listagg", S, COMMA, kind=STRING), ["a"]),
        (call("percentile", D, HALF, kind=DOUBLE), [1.0]),
    ):
        part, kind = new_part(one, True, True), input_type(one)
        assert kind is not None
        part.reserve(1)
        add_rows(part, kind, [(0, value, 1) for value in values])
        slots = np.zeros(1, np.int64)
        column = result(one, part, part.state(slots) if hasattr(part, "state") else slots)
        expected = {BIGINT: pa.int64(), INT: pa.int32(), DOUBLE: pa.float64(), STRING: pa.string()}
        assert column.type == expected.get(one.type, pa.list_(pa.string())), one


def test_an_aggregate_without_an_accumulator_is_an_internal_error() -> None:
    with pytest.raises(PenstockError) as caught:
        new_part(call("median", D), True, True)
    assert caught.value.code == "INT-9045"
