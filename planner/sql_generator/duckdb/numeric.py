"""DuckDB's spellings of operators and number functions, with Spark's values."""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.types import (
    BIGINT,
    DOUBLE,
    INT,
    STRING,
    DataType,
    Date,
    DayTimeInterval,
    Decimal,
    Double,
    Float,
    TimestampLtz,
    YearMonthInterval,
    is_integer,
    to_spark,
)
from penstock.planner.expressions.nodes import Call, Expression
from penstock.planner.sql_generator.dialect import (
    CONFLICTING_ROWS,
    OPERATORS,
    SEVERAL_ROWS,
    Spelling,
    binary,
    cast,
    function,
    integer,
    named,
    same_names,
    single_value,
    text,
    when,
)
from penstock.planner.sql_generator.duckdb.casts import failing
from penstock.planner.sql_generator.duckdb.strings import constant, refuse
from penstock.planner.sql_generator.spark.functions import conditional, is_truth, nvl2

# DuckDB computes decimals of up to 18 digits in 64 bits, of up to 38 in 128.
_DIGITS_OF_64_BITS = 18
_DIGITS_OF_128_BITS = 38
_HUGE = exp.DataType.build("HUGEINT", dialect="duckdb")


def duck(kind: DataType) -> exp.DataType:
    """Return DuckDB's type."""
    if isinstance(kind, DayTimeInterval | YearMonthInterval):
        return exp.DataType.build("INTERVAL")
    return exp.DataType.build(to_spark(kind), dialect="spark")


def typed(spelling: Spelling) -> Spelling:
    """Return the spelling cast to the call's type, where DuckDB's own result type differs."""
    return lambda call, args: cast(spelling(call, args), duck(call.type))


def guarded(call: Call, divisor: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Return ``value`` where the divisor is not zero; zero raises."""
    zero = exp.EQ(this=divisor.copy(), expression=integer(0))
    return when(zero, failing("DIVIDE_BY_ZERO: division by zero", duck(call.type)), value)


def _moved(node: type[exp.Expr]) -> Spelling:
    def spelling(call: Call, args: list[exp.Expr]) -> exp.Expr:
        # DuckDB has no day of 23 hours in an interval of microseconds
        if isinstance(call.type, TimestampLtz) and isinstance(call.args[1].type, DayTimeInterval):
            micros = function("epoch_us", args[1])
            return function("penstock_moved", args[0], exp.Neg(this=micros) if node is exp.Sub else micros)
        result = binary(node, *args)
        # DATE - DATE is a number of days in DuckDB
        if isinstance(call.type, DayTimeInterval) and isinstance(call.args[0].type, Date):
            return function("to_days", cast(result, duck(INT)))
        # Computed with 38 digits where 64 bits might overflow, then of Spark's result type.
        if isinstance(call.type, Decimal):
            return cast(binary(node, *_roomy(call, args, max(map(_scale, call.args)))), duck(call.type))
        return cast(result, duck(call.type)) if isinstance(call.type, Date) else result

    return spelling


def _multiply(call: Call, args: list[exp.Expr]) -> exp.Expr:
    kinds = [arg.type for arg in call.args]
    # INTERVAL * n and n * INTERVAL, over microseconds or months
    for interval, factor in ((0, 1), (1, 0)):
        if isinstance(kinds[interval], DayTimeInterval):
            return _micros(
                binary(exp.Mul, function("epoch_us", args[interval]), args[factor]), is_integer(kinds[factor])
            )
        if isinstance(kinds[interval], YearMonthInterval):
            months = function("datepart", text("month"), args[interval])
            years = binary(exp.Mul, function("datepart", text("year"), args[interval].copy()), integer(12))
            return function(
                "to_months",
                cast(
                    function("round", binary(exp.Mul, binary(exp.Add, years, months), args[factor])),
                    duck(INT),
                ),
            )
    if isinstance(call.type, Decimal):
        return cast(binary(exp.Mul, *_roomy(call, args, sum(map(_scale, call.args)))), duck(call.type))
    return binary(exp.Mul, *args)


def _scale(arg: Expression) -> int:
    return arg.type.scale if isinstance(arg.type, Decimal) else 0


def _roomy(call: Call, args: list[exp.Expr], scale: int) -> list[exp.Expr]:
    """Widen decimal operands so that DuckDB computes their result with 38 digits; ``scale`` is that of the
    exact result. Two operands of 64 bits would have a result of 64 bits, which overflows.

    Refuse a result that Spark rounds to fewer digits: it may need more than 38 digits before.
    """
    # Spark rounds the exact result
    if isinstance(call.type, Decimal) and call.type.scale < scale:
        raise refuse(
            call,
            f"where its exact result, of {scale} digits after the point, is rounded to {call.type.scale}",
        )
    if all(
        isinstance(kind, Decimal) and kind.precision <= _DIGITS_OF_64_BITS
        for kind in (call.type, *(arg.type for arg in call.args))
    ):
        return args
    return [
        cast(arg, duck(Decimal(38, _scale(operand)))) for arg, operand in zip(args, call.args, strict=True)
    ]


def _micros(product: exp.Expr, exact: bool) -> exp.Expr:
    return function("to_microseconds", product if exact else cast(function("round", product), duck(BIGINT)))


def _divide(call: Call, args: list[exp.Expr]) -> exp.Expr:
    left, right = (arg.type for arg in call.args)
    # INTERVAL / n, over microseconds.
    if isinstance(left, DayTimeInterval):
        return guarded(call, args[1], _micros(binary(exp.Div, function("epoch_us", args[0]), args[1]), False))
    if isinstance(call.type, Decimal) and isinstance(left, Decimal) and isinstance(right, Decimal):
        return guarded(call, args[1], decimal_quotient(args[0], left, args[1], right, call.type))
    return guarded(call, args[1], binary(exp.Div, *args))


def decimal_quotient(
    left: exp.Expr, dividend: Decimal, right: exp.Expr, divisor: Decimal, kind: Decimal
) -> exp.Expr:
    """Return left / right as a decimal of ``kind``, rounded half away from zero. Raise for a quotient that
    does not fit.

    The division is in 128-bit integers: at once where no dividend can exceed 38 digits, else by long
    division.
    """
    # left / right = above * 10**shift / below, in units of the result's last digit.
    shift = kind.scale - dividend.scale + divisor.scale
    assert shift >= 0, "a quotient has no fewer digits after the point than Spark's rule gives it"
    above, below = _unscaled(left, dividend.scale), _unscaled(right, divisor.scale)
    # The shifted dividend fits 128 bits.
    if dividend.precision + shift <= _DIGITS_OF_128_BITS:
        above = binary(exp.Mul, above, _power(shift))
        # add half the divisor, with the dividend's sign, then truncate: half away from zero
        half = binary(exp.IntDiv, function("abs", below.copy()), integer(2))
        signed = binary(exp.Mul, half, function("sign", above.copy()))
        quotient = binary(exp.IntDiv, binary(exp.Add, above, signed), below)
    else:
        quotient = function("penstock_quotient", above, below, integer(shift))
    return _decimal(quotient, kind.scale, kind)


def _decimal(digits: exp.Expr, scale: int, kind: Decimal) -> exp.Expr:
    """Return the integer ``digits``, ``scale`` of them behind the point, as a decimal of ``kind``."""
    # digits * 0.01 for scale 2: a product of decimals is exact.
    unit = cast(text(f"0.{'0' * (scale - 1)}1" if scale else "1"), duck(Decimal(max(1, scale), scale)))
    return cast(binary(exp.Mul, cast(digits, duck(Decimal(_DIGITS_OF_128_BITS, 0))), unit), duck(kind))


def _power(exponent: int) -> exp.Expr:
    return cast(text("1" + "0" * exponent), _HUGE.copy())


def _unscaled(value: exp.Expr, scale: int) -> exp.Expr:
    """The digits of a decimal as HUGEINT."""
    # By way of text: 1.50 is '1.50' is 150.
    digits = function("replace", cast(value, duck(STRING)), text("."), text("")) if scale else value
    return cast(digits, _HUGE.copy())


def _div(call: Call, args: list[exp.Expr]) -> exp.Expr:
    left, right = (arg.type for arg in call.args)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        above, below, shift = (
            _unscaled(args[0], left.scale),
            _unscaled(args[1], right.scale),
            right.scale - left.scale,
        )
        # The divisor has more digits behind the point: the dividend is shifted.
        if shift > 0:
            quotient = function("penstock_cut_quotient", above, below, integer(shift))
        else:  # cut twice is cut once
            quotient = binary(exp.IntDiv, binary(exp.IntDiv, above, _power(-shift)), below)
        return guarded(call, args[1], cast(quotient, duck(BIGINT)))
    return guarded(call, args[1], binary(exp.IntDiv, *args))


def _rest(call: Call, args: list[exp.Expr]) -> exp.Expr:
    """The remainder. DuckDB computes it in doubles when the common decimal type exceeds 38 digits, so it is
    computed in integers then.
    """
    left, right = (_digits(arg.type) for arg in call.args)
    if not isinstance(call.type, Decimal) or left is None or right is None:
        # Integers and doubles.
        return cast(binary(exp.Mod, *args), duck(call.type))
    scale, shift = max(left.scale, right.scale), right.scale - left.scale
    # the common type fits 128 bits: DuckDB's remainder is exact
    if max(left.precision - left.scale, right.precision - right.scale) + scale <= _DIGITS_OF_128_BITS:
        return cast(binary(exp.Mod, *args), duck(call.type))
    above, below = _unscaled(args[0], left.scale), _unscaled(args[1], right.scale)
    if shift > 0:
        return _decimal(function("penstock_rest", above, below, integer(shift)), scale, call.type)
    # The dividend has more digits: the remainder of its head, then its tail behind it.
    more = exp.paren(binary(exp.Mod, binary(exp.IntDiv, above, _power(-shift)), below))
    return _decimal(
        binary(exp.Add, binary(exp.Mul, more, _power(-shift)), binary(exp.Mod, above.copy(), _power(-shift))),
        scale,
        call.type,
    )


def _digits(kind: DataType) -> Decimal | None:
    """Return the decimal type that holds all values of an exact numeric type; None for other types."""
    return (
        kind
        if isinstance(kind, Decimal)
        else Decimal(_DIGITS_OF_64_BITS + 1, 0)
        if is_integer(kind)
        else None
    )


def _mod(call: Call, args: list[exp.Expr]) -> exp.Expr:
    return guarded(call, args[1], _rest(call, args))


def _pmod(call: Call, args: list[exp.Expr]) -> exp.Expr:
    rest = _rest(call, args)
    # pmod(-7, 3): the remainder -1 plus the divisor is 2.
    total = binary(exp.Add, rest.copy(), args[1].copy())
    if isinstance(call.type, Decimal):
        either = exp.And(
            this=exp.LT(this=rest, expression=integer(0)),
            expression=exp.GT(this=args[1].copy(), expression=integer(0)),
        )
        return guarded(call, args[1], when(either, cast(total, duck(call.type)), rest.copy()))
    positive = cast(binary(exp.Mod, exp.paren(total), args[1].copy()), duck(call.type))
    return guarded(call, args[1], when(exp.LT(this=rest, expression=integer(0)), positive, rest.copy()))


def _round(call: Call, args: list[exp.Expr]) -> exp.Expr:
    """Doubles are rounded as the decimals they print as, like in Spark."""
    digits = constant(call, 1) if len(call.args) > 1 else 0
    if isinstance(call.type, Float | Double) and isinstance(digits, int) and 0 <= digits <= 18:
        # ROUND(0.285, 2): round the decimal that the double prints as
        decimal = cast(cast(args[0], duck(STRING)), duck(Decimal(38, digits)))
        small = exp.LT(this=function("abs", args[0].copy()), expression=integer(2**52))
        return when(small, cast(decimal, duck(call.type)), args[0].copy())
    return cast(function("round", *args), duck(call.type))


def _bround(call: Call, args: list[exp.Expr]) -> exp.Expr:
    """A tie of the printed digits goes to the even neighbour, like in Spark. DuckDB's own ``round_even``
    differs between versions: bround(2.675, 2) is 2.68 in 2.0.0 and 2.67 in 2.0.1.
    """
    digits = constant(call, 1) if len(call.args) > 1 else 0
    # A tie has one digit more than it is rounded to, and the exact decimal has 18.
    if isinstance(call.type, Float | Double) and isinstance(digits, int) and 0 <= digits < 18:
        printed = cast(args[0], duck(STRING))
        exact, kind = cast(printed, duck(Decimal(38, 18))), duck(Decimal(38, digits))
        # half up, away from zero
        upper = cast(printed.copy(), kind)
        step, half = f"1e-{digits}", f"5e-{digits + 1}"
        distance = function("abs", binary(exp.Sub, exact, upper.copy()))
        is_tie = exp.EQ(this=distance, expression=cast(text(half), duck(Decimal(38, 18))))
        rest = binary(exp.Mod, upper.copy(), cast(text(f"2e-{digits}"), kind))
        is_odd = exp.NEQ(this=rest, expression=integer(0))
        toward_zero = cast(function("sign", args[0].copy()), kind)
        lower = binary(
            exp.Sub,
            upper.copy(),
            exp.paren(binary(exp.Mul, toward_zero, cast(text(step), duck(Decimal(18, digits))))),
        )
        rounded = when(exp.And(this=is_tie, expression=is_odd), lower, upper)
        small = exp.LT(this=function("abs", args[0].copy()), expression=integer(2**52))
        return when(small, cast(exp.paren(rounded), duck(call.type)), args[0].copy())
    return cast(function("round_even", args[0], args[1] if len(args) > 1 else integer(0)), duck(call.type))


def _within(
    name: str, low: int | None, otherwise: str | None, high: int | None = None, *, strict: bool = False
) -> Spelling:
    """A function that raises outside its domain in DuckDB and returns NaN or NULL in Spark."""

    def spelling(call: Call, args: list[exp.Expr]) -> exp.Expr:
        x = args[-1]
        inside: exp.Expr = (exp.GT if strict else exp.GTE)(this=x, expression=integer(low or 0))
        if high is not None:
            inside = exp.And(this=inside, expression=exp.LTE(this=x.copy(), expression=integer(high)))
        outside = exp.null() if otherwise is None else cast(text(otherwise), duck(DOUBLE))
        # NULL is neither inside nor outside.
        empty = exp.Is(this=x.copy(), expression=exp.null())
        return exp.Case(
            ifs=[exp.If(this=inside, true=function(name, x.copy())), exp.If(this=empty, true=exp.null())],
            default=outside,
        )

    return spelling


def _log(call: Call, args: list[exp.Expr]) -> exp.Expr:
    # ln(x).
    if len(args) == 1:
        return _within("ln", 0, None, strict=True)(call, args)
    # log(base, x) is NULL unless both are above zero.
    both = exp.And(
        this=exp.GT(this=args[0], expression=integer(0)),
        expression=exp.GT(this=args[1], expression=integer(0)),
    )
    return when(
        both, binary(exp.Div, function("ln", args[1].copy()), function("ln", args[0].copy())), exp.null()
    )


def _sign(call: Call, args: list[exp.Expr]) -> exp.Expr:
    signed = typed(named("sign"))(call, args)
    if not isinstance(call.args[0].type, Float | Double):
        return signed
    # of NaN DuckDB returns 0
    return when(function("isnan", args[0].copy()), args[0].copy(), signed)


NUMBERS: dict[str, Spelling] = {
    **OPERATORS,
    "add": _moved(exp.Add),
    "subtract": _moved(exp.Sub),
    "multiply": _multiply,
    "divide": _divide,
    "div": _div,
    "mod": _mod,
    "pmod": _pmod,
    "is_true": is_truth(True),
    "is_false": is_truth(False),
    "if": conditional,
    "single_value": single_value("error", SEVERAL_ROWS),
    "unique_row": single_value("error", CONFLICTING_ROWS),
    "nvl2": nvl2,
    "coalesce": named("coalesce"),
    "nullif": named("nullif"),
    "greatest": named("greatest"),
    "least": named("least"),
    "abs": named("abs"),
    "ceil": typed(named("ceil")),
    "floor": typed(named("floor")),
    "round": _round,
    "bround": _bround,
    "sign": _sign,
    "sqrt": _within("sqrt", 0, "NaN"),
    "ln": _within("ln", 0, None, strict=True),
    "log10": _within("log10", 0, None, strict=True),
    "log2": _within("log2", 0, None, strict=True),
    "log": _log,
    "asin": _within("asin", -1, "NaN", 1),
    "acos": _within("acos", -1, "NaN", 1),
    "is_nan": lambda call, args: function("coalesce", function("isnan", *args), exp.false()),
    **same_names("cbrt pow exp sin cos tan atan atan2 degrees radians pi"),
}
