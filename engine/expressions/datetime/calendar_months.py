"""Months of dates, by tables of the years 1900 to 2100; other dates are computed by numpy's calendar."""

from __future__ import annotations

import functools

import numpy as np

_FIRST_DAY, _LAST_DAY = (
    int(np.datetime64(day, "D").astype(np.int64)) for day in ("1900-01-01", "2099-12-31")
)
_FIRST_MONTH, _LAST_MONTH = (
    int(np.datetime64(month, "M").astype(np.int64)) for month in ("1900-01", "2099-12")
)
_FEW = 1_000
"""Dates that numpy computes as quickly as the tables are made."""


@functools.cache
def _tables() -> tuple[np.ndarray, np.ndarray]:
    """Return the month of each day, and the first day of each month and of the one behind the last."""
    days = np.arange(_FIRST_DAY, _LAST_DAY + 1).astype("M8[D]")
    firsts = np.arange(_FIRST_MONTH, _LAST_MONTH + 2).astype("M8[M]").astype("M8[D]")
    return days.astype("M8[M]").astype(np.int32), firsts.astype(np.int64)


def months_of(days: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the months since 1970 of days since 1970, the place of each day in its month from 0, and whether
    it is the last one.
    """
    if days.size >= _FEW and days.min() >= _FIRST_DAY and days.max() <= _LAST_DAY:
        of_days, firsts = _tables()
        months = of_days[days - _FIRST_DAY]
        places = months - _FIRST_MONTH
        return months.astype(np.int64), days - firsts[places], days + 1 == firsts[places + 1]
    dates = days.astype("M8[D]")
    first = dates.astype("M8[M]")
    following = (first + np.timedelta64(1, "M")).astype("M8[D]").astype(np.int64)
    return first.astype(np.int64), days - first.astype("M8[D]").astype(np.int64), days + 1 == following


def shift_months(days: np.ndarray, months: np.ndarray) -> np.ndarray:
    """Return dates (days since 1970) moved by months. A day that the new month lacks becomes its last day."""
    before, nth, _ = months_of(days)
    moved = before + months
    if moved.size >= _FEW and moved.min() >= _FIRST_MONTH and moved.max() <= _LAST_MONTH:
        firsts, places = _tables()[1], moved - _FIRST_MONTH
        # 31 January + 1 month is 28 or 29 February.
        return np.minimum(firsts[places] + nth, firsts[places + 1] - 1)
    target = moved.astype("M8[M]")
    last = (target + np.timedelta64(1, "M")).astype("M8[D]").astype(np.int64) - 1
    return np.minimum(target.astype("M8[D]").astype(np.int64) + nth, last)
