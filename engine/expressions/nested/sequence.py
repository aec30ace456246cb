"""SEQUENCE: an array of the values from a start to an end."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import (
    DataType,
    Date,
    Timestamp,
    TimestampLtz,
    YearMonthInterval,
    to_arrow,
)
from penstock.engine.api import arrow_numpy
from penstock.engine.expressions.datetime.date_arithmetic import DAY_US, add_months_kernel
from penstock.engine.expressions.datum import Datum, Kernel, aligned, array_of, nulls_of_any, values_of
from penstock.engine.expressions.evaluation_errors import bad_argument, check_sizes
from penstock.engine.expressions.kernel_factory import BoundCall, Factory
from penstock.engine.expressions.nested.lists import Lists

# a bound that keeps the number of steps within int64
_LONGEST = 2**62
_MONTHS = 3_000_000  # more than there are between any two times


def _sequence(bound: BoundCall) -> Kernel:
    kind, steps = bound.kinds[0], bound.kinds[2:]
    if steps and isinstance(steps[0], YearMonthInterval):
        return _by_months(kind, bound.context.zone)
    # Without a step: one, or one day.
    unit = DAY_US if isinstance(kind, Timestamp | TimestampLtz) else 1

    def kernel(*data: Datum) -> pa.Array:
        columns = aligned(*data)
        missing = nulls_of_any(*columns)
        first, last = (values_of(column).astype(np.int64) for column in columns[:2])
        step = (
            values_of(columns[2]).astype(np.int64)
            if len(columns) > 2
            else np.where(first <= last, unit, -unit)
        )
        if isinstance(kind, Date) and len(columns) > 2:
            # an interval of days, in microseconds
            step = _whole_days(step, missing)
        lengths = _checked(_steps(first, last, step), first, last, step, missing)
        lists = Lists(pa.nulls(0), lengths, missing)
        nth = np.arange(int(lists.starts[-1])) - lists.starts[lists.parents]
        values = first[lists.parents] + nth * step[lists.parents]
        return Lists(array_of(values, None, to_arrow(kind)), lengths, missing).column()

    return kernel


def _whole_days(step: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
    """Return a step of microseconds in days. Raise Fault RUN-2004 for parts of a day."""
    parts = step % DAY_US != 0
    if (parts if missing is None else parts & ~missing).any():
        raise bad_argument("a sequence of dates takes whole days or months for its step")
    return step // DAY_US


def _steps(first: np.ndarray, last: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return the number of values from ``first`` to ``last`` in steps. It computes in uint64, which holds the
    distance of any two int64.
    """
    down = step < 0
    distance = np.where(down, first - last, last - first).view(np.uint64)
    stride = np.where(down, -step, step).view(np.uint64)
    return np.minimum(distance // np.maximum(stride, np.uint64(1)), np.uint64(_LONGEST)) + np.uint64(1)


def _checked(
    lengths: np.ndarray, first: np.ndarray, last: np.ndarray, step: np.ndarray, missing: np.ndarray | None
) -> np.ndarray:
    """Return the lengths, 0 for NULL. Raise Fault RUN-2004 for a step that never reaches the last value."""
    known = np.ones(first.size, np.bool_) if missing is None else ~missing
    # a sequence of one value may have any step
    wrong = known & (first != last) & ((step == 0) | ((first < last) != (step > 0)))
    if wrong.any():
        raise bad_argument(
            "sequence: the step does not lead from the first value to the last",
            "give a step below zero to count down",
        )
    lengths = np.where(known, np.where(first == last, 1, lengths), 0).astype(np.int64)
    check_sizes("sequence", lengths, "elements")
    return lengths


def _by_months(kind: DataType, zone: str) -> Kernel:
    move = add_months_kernel(kind, 1, zone)
    shortest = 28 if isinstance(kind, Date) else 28 * DAY_US

    def kernel(*data: Datum) -> pa.Array:
        begin, end, months = aligned(*data)
        missing = nulls_of_any(begin, end, months)
        first, last, step = (values_of(column).astype(np.int64) for column in (begin, end, months))
        # An upper bound, as if every month had 28 days; values past the end are filtered out below.
        most = _steps(first, last, np.clip(step, -_MONTHS, _MONTHS) * shortest) + np.uint64(1)
        lists = Lists(pa.nulls(0), _checked(most, first, last, step, missing), missing)
        nth = np.arange(int(lists.starts[-1])) - lists.starts[lists.parents]
        moved = move(
            begin.take(arrow_numpy.array_of(lists.parents)),
            arrow_numpy.array_of((nth * step[lists.parents]).astype(np.int32)),
        )
        reached = values_of(pc.cast(moved, to_arrow(kind))).astype(np.int64)
        down = step[lists.parents] < 0
        keep = np.where(down, reached >= last[lists.parents], reached <= last[lists.parents])
        return Lists(pc.cast(moved, to_arrow(kind)), lists.lengths, missing).filter(keep).column()

    return kernel


SEQUENCES: dict[str, Factory] = {"sequence": _sequence}
