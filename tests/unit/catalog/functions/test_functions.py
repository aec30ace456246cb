"""The registry: names, coercion, result types, refusals."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.catalog.coercion import common_type_of
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.functions.registry import (
    SCALAR_FAMILIES,
    can_cast,
    common_type,
    function_names,
    is_aggregate,
    is_deterministic,
    resolve,
    resolve_aggregate,
)
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    Decimal,
    Row,
)
from penstock.engine.expressions.lambdas import LAMBDA_KERNELS
from penstock.engine.expressions.registry import CLOCK_FUNCTIONS, KERNELS
from penstock.planner.expressions.nodes import Literal


def literal(value: object, kind: DataType) -> Literal:
    return Literal(kind, value is None, value=value)


@pytest.mark.parametrize(
    ("a", "b", "wider"),
    [
        (INT, BIGINT, BIGINT),
        (TINYINT, SMALLINT, SMALLINT),
        (INT, FLOAT, DOUBLE),
        (FLOAT, DOUBLE, DOUBLE),
        (INT, Decimal(5, 2), Decimal(12, 2)),
        (Decimal(10, 2), Decimal(8, 5), Decimal(13, 5)),
        (Decimal(38, 10), DOUBLE, DOUBLE),
        (STRING, INT, BIGINT),
        (STRING, DOUBLE, DOUBLE),
        (STRING, DATE, DATE),
        (DATE, TIMESTAMP, TIMESTAMP),
        (TIMESTAMP, TIMESTAMP_LTZ, TIMESTAMP_LTZ),
        (NULL, STRING, STRING),
        (BOOLEAN, INT, None),
        (STRING, DAY_TIME_INTERVAL, None),
        (Array(INT), Array(BIGINT), Array(BIGINT)),
        (Row((("a", INT),)), Row((("b", DOUBLE),)), Row((("a", DOUBLE),))),
    ],
)
def test_common_types(a: DataType, b: DataType, wider: DataType | None) -> None:
    assert common_type(a, b) == wider


def test_common_type_of_many_does_not_depend_on_order() -> None:
    assert common_type_of([STRING, INT, DOUBLE]) == common_type_of([INT, DOUBLE, STRING]) == DOUBLE


@pytest.mark.parametrize(
    ("name", "args", "wanted", "result"),
    [
        ("add", (INT, INT), (INT, INT), INT),
        ("add", (Decimal(10, 2), INT), (Decimal(10, 2), Decimal(10, 0)), Decimal(13, 2)),
        ("add", (Decimal(10, 2), literal(5, INT)), (Decimal(10, 2), Decimal(1, 0)), Decimal(11, 2)),
        ("multiply", (Decimal(38, 10), Decimal(38, 10)), (Decimal(38, 10), Decimal(38, 10)), Decimal(38, 6)),
        ("divide", (INT, INT), (DOUBLE, DOUBLE), DOUBLE),
        ("divide", (Decimal(10, 2), Decimal(5, 1)), (Decimal(10, 2), Decimal(5, 1)), Decimal(17, 8)),
        ("divide", (Decimal(10, 2), DOUBLE), (DOUBLE, DOUBLE), DOUBLE),
        ("div", (INT, SMALLINT), (BIGINT, BIGINT), BIGINT),
        ("subtract", (TIMESTAMP, DATE), (TIMESTAMP, TIMESTAMP), DAY_TIME_INTERVAL),
        ("add", (DATE, INT), (DATE, INT), DATE),
        ("add", (DATE, YEAR_MONTH_INTERVAL), (DATE, YEAR_MONTH_INTERVAL), DATE),
        ("add", (DATE, literal(timedelta(days=2), DAY_TIME_INTERVAL)), (DATE, DAY_TIME_INTERVAL), DATE),
        (
            "add",
            (DATE, literal(timedelta(hours=2), DAY_TIME_INTERVAL)),
            (TIMESTAMP, DAY_TIME_INTERVAL),
            TIMESTAMP,
        ),
        ("add", (DAY_TIME_INTERVAL, TIMESTAMP_LTZ), (DAY_TIME_INTERVAL, TIMESTAMP_LTZ), TIMESTAMP_LTZ),
        ("multiply", (INT, DAY_TIME_INTERVAL), (BIGINT, DAY_TIME_INTERVAL), DAY_TIME_INTERVAL),
        ("equal", (STRING, INT), (BIGINT, BIGINT), BOOLEAN),
        ("NVL", (INT, NULL, BIGINT), (BIGINT, BIGINT, BIGINT), BIGINT),
        ("round", (Decimal(10, 3), literal(1, INT)), (Decimal(10, 3), INT), Decimal(9, 1)),
        ("ceil", (Decimal(10, 3),), (Decimal(10, 3),), Decimal(8, 0)),
        ("Upper", (INT,), (STRING,), STRING),
        ("date_trunc", (literal("hours", STRING), DATE), (STRING, TIMESTAMP), TIMESTAMP),
    ],
)
def test_resolved_calls(name: str, args: tuple, wanted: tuple, result: DataType) -> None:
    signature = resolve(name, args)
    assert (signature.arg_types, signature.result) == (wanted, result)


@pytest.mark.parametrize(
    ("name", "args", "code", "hint"),
    [
        ("uper", (STRING,), "SQL-1101", "upper"),
        ("upper", (), "SQL-1102", "upper(s)"),
        ("concat_ws", (), "SQL-1102", "concat_ws"),
        ("sum", (INT,), "SQL-1104", "subquery"),
        ("equal", (BOOLEAN, INT), "SQL-1103", "CAST"),
        ("and", (INT, BOOLEAN), "SQL-1103", "compare"),
        ("add", (BOOLEAN, INT), "SQL-1103", "CAST"),
        ("add", (DATE, DOUBLE), "SQL-1103", "intervals"),
        ("coalesce", (INT, DATE), "SQL-1103", "CAST"),
        ("date_trunc", (literal("houre", STRING), TIMESTAMP), "SQL-1103", "hour"),
        ("round", (DOUBLE, INT), "SQL-1103", "round(x[, d])"),
        ("div", (DOUBLE, INT), "SQL-1103", "/"),
        ("year", (BOOLEAN,), "SQL-1103", "CAST"),
    ],
)
def test_refusals_say_what_to_write(name: str, args: tuple, code: str, hint: str) -> None:
    with pytest.raises(PenstockError) as caught:
        resolve(name, args, Span(3, 8))
    assert caught.value.code == code
    assert caught.value.span == Span(3, 8)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "kind", "result"),
    [
        ("sum", TINYINT, BIGINT),
        ("sum", Decimal(10, 2), Decimal(20, 2)),
        ("sum", Decimal(38, 2), Decimal(38, 2)),
        ("sum", FLOAT, DOUBLE),
        ("avg", INT, DOUBLE),
        ("avg", Decimal(10, 2), Decimal(14, 6)),
        ("MAX", TIMESTAMP, TIMESTAMP),
        ("stddev", INT, DOUBLE),
        ("bool_and", BOOLEAN, BOOLEAN),
    ],
)
def test_aggregate_results(name: str, kind: DataType, result: DataType) -> None:
    assert resolve_aggregate(name, (kind,)).result == result


def test_count_is_never_null_and_takes_anything() -> None:
    assert resolve_aggregate("count", ()).nullable is False
    assert resolve_aggregate("COUNT", (Row((("a", INT),)),), distinct=True).result == BIGINT


@pytest.mark.parametrize("name", ["count_if", "approx_count_distinct", "histogram"])
def test_distinct_is_refused_where_there_is_none(name: str) -> None:
    with pytest.raises(PenstockError, match="no DISTINCT form"):
        resolve_aggregate(name, (BOOLEAN,), distinct=True)


def test_casts_that_exist() -> None:
    assert can_cast(STRING, TIMESTAMP) and can_cast(TIMESTAMP_LTZ, BIGINT) and can_cast(NULL, Row(()))
    assert not can_cast(TIMESTAMP, INT) and not can_cast(DATE, BOOLEAN) and not can_cast(Array(INT), INT)


def test_names_and_determinism() -> None:
    assert "substring" in function_names() and "sum0" not in function_names()
    assert is_aggregate("Stddev") and not is_aggregate("upper")
    assert not is_deterministic("current_timestamp") and is_deterministic("upper")


def test_every_scalar_function_has_a_kernel_or_is_bound_away() -> None:
    declared = {function.name for family in SCALAR_FAMILIES.values() for function in family}
    bound_away = {"and", "or", "coalesce", "nullif", "if", "nvl2", "zeroifnull", "nullifzero"}
    # the binder alone makes these calls
    undeclared = {"single_value", "unique_row"}
    assert (declared - bound_away) | undeclared == set(KERNELS) | set(CLOCK_FUNCTIONS) | set(LAMBDA_KERNELS)
