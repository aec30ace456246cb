"""Day-time intervals of Spark as microseconds, and back."""

from __future__ import annotations

from sqlglot import exp

from penstock.planner.sql_generator.dialect import binary, cast, function, integer

# Seconds are apart: they have a fraction.
_UNITS_US = (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000))


def interval_us(interval: exp.Expr) -> exp.Expr:
    """Return a day-time interval as BIGINT microseconds, exactly."""
    total: exp.Expr | None = None
    for unit, width in _UNITS_US:
        part = cast(exp.Extract(this=exp.var(unit), expression=interval.copy()), exp.DataType.build("BIGINT"))
        scaled = binary(exp.Mul, part, integer(width))
        total = scaled if total is None else binary(exp.Add, total, scaled)
    seconds = exp.Extract(this=exp.var("SECOND"), expression=interval.copy())
    assert total is not None
    return binary(
        exp.Add, total, cast(binary(exp.Mul, seconds, integer(1_000_000)), exp.DataType.build("BIGINT"))
    )


def us_interval(micros: exp.Expr) -> exp.Expr:
    """Return BIGINT microseconds as a day-time interval, exactly."""
    # days and seconds apart: make_dt_interval takes an INT and a DECIMAL(18, 6)
    day, micro = integer(86_400_000_000), integer(1_000_000)
    days = cast(exp.Paren(this=exp.IntDiv(this=micros, expression=day)), exp.DataType.build("INT"))
    # Less than a day, with the sign of the whole.
    rest = binary(exp.Mod, micros.copy(), day.copy())
    seconds = cast(rest, exp.DataType.build("DECIMAL(18, 6)"))
    return function(
        "make_dt_interval",
        days,
        integer(0),
        integer(0),
        cast(binary(exp.Div, seconds, micro), exp.DataType.build("DECIMAL(18, 6)")),
    )
