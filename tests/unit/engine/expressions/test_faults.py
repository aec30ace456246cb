"""Faults: which error, which row, which part of the expression; and where none may be raised."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Decimal,
)
from penstock.planner.expressions.nodes import Call, Case, Expression
from tests.unit.engine.expressions.calls import call, cast, col, lit, run

BATCH = pa.RecordBatch.from_pydict(
    {"x": [5, 2, 0, None, 0], "s": ["1", "2", "abc", None, ""], "d": [1.0, float("nan"), 1e300, None, 0.0]}
)
X, S, D = (col(BATCH, name) for name in "xsd")
ZERO, ONE, TEN = (lit(value, BIGINT) for value in (0, 1, 10))


def fault(expression: Expression, batch: pa.RecordBatch = BATCH) -> PenstockError:
    with pytest.raises(PenstockError) as caught:
        run(expression, batch)
    return caught.value


@pytest.mark.parametrize(
    ("expression", "code", "message", "row"),
    [
        (call("divide", TEN, X), "RUN-2001", "division by zero", "x = 0"),
        (call("div", TEN, X), "RUN-2001", "division by zero", "x = 0"),
        (call("mod", TEN, X), "RUN-2001", "division by zero", "x = 0"),
        (call("add", X, lit(2**63 - 5, BIGINT)), "RUN-2002", "value out of range for BIGINT", "x = 5"),
        (
            cast(call("multiply", X, lit(100, BIGINT)), TINYINT),
            "RUN-2002",
            "value 500 out of range for TINYINT",
            "x = 5",
        ),
        (cast(D, INT), "RUN-2002", "value nan out of range for INT", "d = nan"),
        (call("ceil", D), "RUN-2002", "value out of range for BIGINT", "d = nan"),
        (cast(S, INT), "RUN-2003", "cannot cast 'abc' to INT", "s = 'abc'"),
        (cast(S, DATE), "RUN-2003", "cannot cast '1' to DATE", "s = '1'"),
        (cast(call("upper", S), BOOLEAN), "RUN-2003", "cannot cast '2' to BOOLEAN", "s = '2'"),
        (
            call("split_part", S, lit(",", STRING), cast(X, INT)),
            "RUN-2004",
            "split_part: the index 0 does not exist",
            "x = 0",
        ),
        (
            call("make_date", lit(2024, INT), lit(2, INT), lit(30, INT)),
            "RUN-2004",
            "there is no date 2024-02-30",
            None,
        ),
        (
            call("to_timestamp", S, lit("yyyy", STRING)),
            "RUN-2003",
            "cannot cast '1' to TIMESTAMP(6) by the pattern 'yyyy'",
            "s = '1'",
        ),
        (
            cast(cast(X, Decimal(20, 2)), Decimal(2, 2)),
            "RUN-2002",
            "value 5.00 out of range for DECIMAL(2, 2)",
            "x = 5",
        ),
    ],
)
def test_faults_name_the_first_row(expression: Expression, code: str, message: str, row: str | None) -> None:
    error = fault(expression)
    assert (error.code, error.message) == (code, message)
    if row is not None:
        assert f"row: {row}" in (error.detail or "")


def test_a_fault_points_at_the_innermost_part() -> None:
    inner = Call(
        DOUBLE, True, function="divide", args=(cast(ONE, DOUBLE), cast(X, DOUBLE)), span=Span(10, 15)
    )
    error = fault(Call(BOOLEAN, True, function="greater", args=(inner, lit(1.0, DOUBLE)), span=Span(8, 20)))
    assert error.span == Span(10, 15)
    assert "in (CAST(1 AS DOUBLE) / CAST(x AS DOUBLE))" in (error.detail or "")


@pytest.mark.parametrize("pattern", ["(?=a)", "(", "a{2,1}"])
def test_a_pattern_re2_refuses_is_refused_when_compiled(pattern: str) -> None:
    error = fault(call("rlike", S, lit(pattern, STRING)))
    assert error.code == "RUN-2004" and "cannot be used" in error.message


@pytest.mark.parametrize("pattern", ["yyyy-bb", "yyyy 'open"])
def test_a_time_pattern_that_means_nothing_is_refused(pattern: str) -> None:
    assert (
        fault(call("date_format", cast(lit(None, TIMESTAMP), TIMESTAMP), lit(pattern, STRING))).code
        == "RUN-2004"
    )


def test_the_current_time_needs_a_clock() -> None:
    assert fault(call("now")).code == "RUN-2004"


def test_constants_that_fault_do_so_only_when_there_is_a_row() -> None:
    broken = call("divide", ONE, ZERO)
    assert len(run(broken, BATCH.slice(0, 0))) == 0
    assert fault(broken).code == "RUN-2001"


QUOTIENT = call("greater", call("divide", TEN, X), ONE)
NOT_ZERO = call("not_equal", X, ZERO)


def test_and_does_not_ask_where_the_left_is_false() -> None:
    assert run(call("and", NOT_ZERO, QUOTIENT), BATCH).to_pylist() == [True, True, False, None, False]


def test_or_does_not_ask_where_the_left_is_true() -> None:
    assert run(call("or", call("equal", X, ZERO), QUOTIENT), BATCH).to_pylist() == [
        True,
        True,
        True,
        None,
        True,
    ]


def test_the_right_side_does_not_guard_the_left() -> None:
    assert fault(call("and", QUOTIENT, NOT_ZERO)).code == "RUN-2001"


def test_a_null_on_the_left_decides_nothing() -> None:
    unknown = call("equal", X, cast(lit(None, BIGINT), BIGINT))
    assert fault(call("and", unknown, QUOTIENT)).code == "RUN-2001"


def test_chains_guard_from_left_to_right() -> None:
    readable = call("rlike", S, lit("^[0-9]+$", STRING))
    chain = call("and", call("and", NOT_ZERO, readable), call("greater", cast(S, INT), lit(1, INT)))
    assert run(chain, BATCH).to_pylist() == [False, True, False, None, False]


def test_case_computes_a_branch_only_where_it_is_taken() -> None:
    choice = Case(
        DOUBLE, True, whens=((call("equal", X, ZERO), lit(-1.0, DOUBLE)),), default=call("divide", TEN, X)
    )
    assert run(choice, BATCH).to_pylist() == [2.0, 5.0, -1.0, None, -1.0]


def test_case_conditions_guard_later_conditions_and_stay_guarded() -> None:
    whens = ((call("equal", X, ZERO), lit("zero", STRING)), (QUOTIENT, lit("small", STRING)))
    from penstock.engine.expressions import compile_expression

    evaluate = compile_expression(Case(STRING, True, whens=whens, default=lit(None, STRING)))
    for _ in range(2):
        assert evaluate(BATCH).to_pylist() == ["small", "small", "zero", None, "zero"]


def test_a_case_that_faults_where_it_is_taken_says_so() -> None:
    choice = Case(
        DOUBLE, True, whens=((call("is_null", X), lit(0.0, DOUBLE)),), default=call("divide", TEN, X)
    )
    assert fault(choice).code == "RUN-2001"


def test_try_cast_gives_null_and_never_faults() -> None:
    assert run(cast(S, INT, safe=True), BATCH).to_pylist() == [1, 2, None, None, None]
    assert run(cast(cast(S, INT, safe=True), TINYINT, safe=True), BATCH).to_pylist() == [
        1,
        2,
        None,
        None,
        None,
    ]


def test_the_first_row_is_found_in_a_large_batch() -> None:
    values = list(range(1, 5000)) + [0] + [7] * 3000 + [0]
    batch = pa.RecordBatch.from_pydict({"n": list(range(len(values))), "x": values})
    error = fault(call("add", cast(call("div", TEN, col(batch, "x")), BIGINT), col(batch, "n")), batch)
    assert "n = 4999" in (error.detail or "")
