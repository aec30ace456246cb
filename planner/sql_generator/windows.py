"""Windows as SQL: integer arithmetic on microseconds, the same in every dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sqlglot import exp

from penstock.catalog.schema import Schema
from penstock.catalog.types import DataType
from penstock.planner.logical.windows import (
    CumulateWindow,
    HopWindow,
    SessionWindow,
    TumbleWindow,
    Windowing,
)
from penstock.planner.sql_generator.dialect import Flavour, binary, function, integer, when

# window_time is window_end less one millisecond, as in Flink: the last millisecond of the window.
_WINDOW_TIME_BEFORE_END_US = 1000


ROWS = "x"
"""The alias of the input relation in every select, so that no other name can be mistaken for one."""


def column(index: int) -> exp.Expr:
    """Return a column of the input rows of a select, by position."""
    return exp.column(f"c{index}", table=ROWS)


def named(name: str) -> exp.Expr:
    """Return a helper column of the input rows of a select, which the plan does not have."""
    return exp.column(name, table=ROWS)


def aliased(relation: str, alias: str = ROWS) -> exp.Table:
    """Return a relation under the alias by which its columns are read."""
    # made here: sqlglot's own function parses the name
    return exp.Table(this=exp.to_identifier(relation), alias=exp.TableAlias(this=exp.to_identifier(alias)))


class Ctes(Protocol):
    """The CTEs of a query."""

    flavour: Flavour

    def add(self, select: exp.Expr) -> str:
        """Append a CTE and return its name."""


def assign(ctes: Ctes, source: str, schema: Schema, window: Windowing) -> str:
    """Return a relation of ``source``'s columns and BIGINT columns s and e: each row once per window [s, e).
    Rows without a time are dropped.
    """
    made = _KINDS.get(type(window))
    if made is None:
        raise ctes.flavour.refusal(f"window function {window.name.upper()}")
    return made(ctes, _timed(ctes, source, schema, window), schema, window)


def earlier(end: exp.Expr) -> exp.Expr:
    """Return window_time in microseconds for a window's end."""
    return binary(exp.Sub, end, integer(_WINDOW_TIME_BEFORE_END_US))


def bounds(flavour: Flavour, start: exp.Expr, end: exp.Expr, kind: DataType) -> list[exp.Expr]:
    """Return window_start, window_end, window_time of a time type from BIGINT bounds."""
    return [flavour.from_epoch_us(micros, kind) for micros in (start.copy(), end.copy(), earlier(end.copy()))]


def _timed(ctes: Ctes, source: str, schema: Schema, window: Windowing) -> str:
    """The rows that have a time, with it as BIGINT microseconds t."""
    time = column(window.time_column)
    micros = ctes.flavour.epoch_us(time.copy(), schema[window.time_column].type)
    if window.sliced:
        # a slice end is exclusive: rows of slice end e count as time e - 1
        micros = binary(exp.Sub, micros, integer(1))
    present = exp.Not(this=exp.Is(this=time, expression=exp.null()))
    return ctes.add(
        exp.select(*_columns(schema), exp.alias_(micros, "t")).from_(aliased(source)).where(present)
    )


def _with_end(ctes: Ctes, started: str, schema: Schema, size_us: int) -> str:
    end = exp.alias_(binary(exp.Add, named("s"), integer(size_us)), "e")
    return ctes.add(exp.select(*_columns(schema), named("s"), end).from_(aliased(started)))


def _last_start(time: exp.Expr, width_us: int, offset_us: int) -> exp.Expr:
    """Return the last start of a window at or before a time, also for times before 1970."""
    width = exp.Cast(this=integer(width_us), to=exp.DataType.build("BIGINT"))
    since = binary(exp.Sub, time.copy(), integer(offset_us % width_us))
    # % keeps the sign of the dividend: add the width and take it again
    remainder = binary(exp.Mod, binary(exp.Add, binary(exp.Mod, since, width), width.copy()), width.copy())
    return binary(exp.Sub, time.copy(), remainder)


def _tumbling(ctes: Ctes, timed: str, schema: Schema, window: Windowing) -> str:
    first = exp.alias_(_last_start(named("t"), window.size_us, window.offset_us), "s")
    started = ctes.add(exp.select(*_columns(schema), first).from_(aliased(timed)))
    return _with_end(ctes, started, schema, window.size_us)


def _hopping(ctes: Ctes, timed: str, schema: Schema, window: Windowing) -> str:
    """A row occurs once per start at or before its time and less than the size before it."""
    last = _last_start(named("t"), window.step_us, window.offset_us)
    # size 10, step 5, time 12: starts 5 and 10.
    earliest = binary(exp.Add, last.copy(), integer(window.step_us - window.size_us))
    starts = exp.alias_(ctes.flavour.explode_series(earliest, last, window.step_us), "s")
    started = ctes.add(exp.select(*_columns(schema), starts).from_(aliased(timed)))
    return _with_end(ctes, started, schema, window.size_us)


def _cumulating(ctes: Ctes, timed: str, schema: Schema, window: Windowing) -> str:
    """A row occurs once per end after its time, up to the start plus the size."""
    time = named("t")
    first = exp.alias_(_last_start(time, window.size_us, window.offset_us), "s")
    started = ctes.add(exp.select(*_columns(schema), named("t"), first).from_(aliased(timed)))
    # The first end after the time; then one each step up to the size.
    end = binary(exp.Add, _last_start(time, window.step_us, window.offset_us), integer(window.step_us))
    last = binary(exp.Add, named("s"), integer(window.size_us))
    ends = exp.alias_(ctes.flavour.explode_series(end, last, window.step_us), "e")
    return ctes.add(exp.select(*_columns(schema), named("s"), ends).from_(aliased(started)))


def _sessions(ctes: Ctes, timed: str, schema: Schema, window: Windowing) -> str:
    """Islands of rows no further apart than the gap, per partition: [first time, last time + gap)."""
    columns, time = _columns(schema), named("t")
    keys = [column(key) for key in window.partition_keys]

    def over(call: exp.Expr, *more: exp.Expr, ordered: bool) -> exp.Expr:
        order = (
            exp.Order(expressions=[exp.Ordered(this=time.copy(), desc=False, nulls_first=True)])
            if ordered
            else None
        )
        return exp.Window(this=call, partition_by=[key.copy() for key in (*keys, *more)], order=order)

    # a row further than the gap from the one before begins an island; a running sum numbers the islands
    gap = binary(exp.Sub, time.copy(), over(function("LAG", time.copy()), ordered=True))
    near = exp.LTE(this=gap, expression=integer(window.size_us))
    fresh = exp.alias_(when(near, integer(0), integer(1)), "fresh")
    marked = ctes.add(exp.select(*columns, time.copy(), fresh).from_(aliased(timed)))
    # peers share the sum (RANGE frame), so rows of equal time are of one island in whatever order they come
    island = exp.alias_(over(function("SUM", named("fresh")), ordered=True), "island")
    numbered = ctes.add(exp.select(*_columns(schema), time.copy(), island).from_(aliased(marked)))
    start = exp.alias_(over(function("MIN", time.copy()), named("island"), ordered=False), "s")
    end = binary(
        exp.Add, over(function("MAX", time.copy()), named("island"), ordered=False), integer(window.size_us)
    )
    return ctes.add(exp.select(*_columns(schema), start, exp.alias_(end, "e")).from_(aliased(numbered)))


def _columns(schema: Schema) -> list[exp.Expr]:
    return [exp.alias_(column(i), f"c{i}") for i in range(len(schema))]


_KINDS: dict[type[Windowing], Callable[[Ctes, str, Schema, Windowing], str]] = {
    TumbleWindow: _tumbling,
    HopWindow: _hopping,
    CumulateWindow: _cumulating,
    SessionWindow: _sessions,
}
"""The SQL of each kind of window over rows with a time; backends refuse kinds without an entry."""
