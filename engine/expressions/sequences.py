"""sequence: the values from one to another as an array."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.types import DataType, Date, YearMonthInterval, is_integer, to_arrow
from engine import arrays
from engine.expressions.calendar import DAY_US, add_months_kernel
from engine.expressions.columns import Datum, Kernel, aligned, array_of, nulls_of_any, values_of
from engine.expressions.faults import bad_argument
from engine.expressions.lists import Lists
from engine.expressions.site import Factory, Site

_LONGEST = 2**31 - 16


def _sequence(site: Site) -> Kernel:
    kind, steps = site.kinds[0], site.kinds[2:]
    if steps and isinstance(steps[0], YearMonthInterval):
        return _by_months(kind, site.context.zone)
    unit = 1 if is_integer(kind) else DAY_US

    def kernel(*data: Datum) -> pa.Array:
        columns = aligned(*data)
        missing = nulls_of_any(*columns)
        first, last = (_line(column, kind) for column in columns[:2])
        step = values_of(columns[2]).astype(np.int64) if len(columns) > 2 else np.where(first <= last, unit, -unit)
        if isinstance(kind, Date) and missing is None and (step % DAY_US).any():
            raise bad_argument("a sequence of dates takes whole days or months for its step")
        lengths = _checked((last - first) // np.where(step == 0, 1, step) + 1, first, last, step, missing)
        lists = Lists(pa.nulls(0), lengths, missing)
        nth = np.arange(int(lists.starts[-1])) - lists.starts[lists.parents]
        values = first[lists.parents] + nth * step[lists.parents]
        return Lists(_values(values, kind), lengths, missing).column()

    return kernel


def _line(column: pa.Array, kind: DataType) -> np.ndarray:
    values = values_of(column).astype(np.int64)
    return values * DAY_US if isinstance(kind, Date) else values


def _values(values: np.ndarray, kind: DataType) -> pa.Array:
    return array_of(values // DAY_US if isinstance(kind, Date) else values, None, to_arrow(kind))


def _checked(lengths: np.ndarray, first: np.ndarray, last: np.ndarray, step: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
    """The lengths, 0 for NULL; raise for a step that never gets there."""
    known = np.ones(first.size, np.bool_) if missing is None else ~missing
    wrong = known & (first != last) & ((step == 0) | ((first < last) != (step > 0)))
    if wrong.any():
        raise bad_argument("sequence: the step does not lead from the first value to the last", "give a step below zero to count down")
    lengths = np.where(known, np.where(first == last, 1, lengths), 0)
    if lengths.size and lengths.sum() > _LONGEST:
        raise bad_argument("sequence: more than two thousand million elements")
    return lengths


def _by_months(kind: DataType, zone: str) -> Kernel:
    move = add_months_kernel(kind, 1, zone)

    def kernel(*data: Datum) -> pa.Array:
        begin, end, months = aligned(*data)
        missing = nulls_of_any(begin, end, months)
        first, last, step = _line(begin, kind), _line(end, kind), values_of(months).astype(np.int64)
        days = (last - first) // DAY_US
        most = np.abs(days) // 28 // np.maximum(np.abs(step), 1) + 2
        lists = Lists(pa.nulls(0), _checked(most, first, last, step, missing), missing)
        nth = np.arange(int(lists.starts[-1])) - lists.starts[lists.parents]
        moved = move(begin.take(arrays.array_of(lists.parents)), arrays.array_of((nth * step[lists.parents]).astype(np.int32)))
        reached = _line(moved, kind)
        down = step[lists.parents] < 0
        keep = np.where(down, reached >= last[lists.parents], reached <= last[lists.parents])
        return Lists(pc.cast(moved, to_arrow(kind)), lists.lengths, missing).kept(keep).column()

    return kernel


SEQUENCES: dict[str, Factory] = {"sequence": _sequence}
