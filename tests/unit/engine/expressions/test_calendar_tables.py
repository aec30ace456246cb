"""Wall-clock times to instants, and months of dates, by tables: as Python's zoneinfo and numpy's calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.expressions.datetime import calendar_months, zone_offsets
from penstock.engine.expressions.datetime.date_arithmetic import LOCAL, to_instant
from tests.unit.engine.expressions.calls import call, col, run

EPOCH = datetime(1970, 1, 1)
# Arrow has no changes of the clock behind 2037
_LAST_US = 2_114_380_800_000_000
# halves of an hour, winter time that is the change, a day that was left out, few changes, none
ZONES = [
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Europe/Dublin", "Pacific/Apia"),
    *("Asia/Kolkata", "+02:00"),
]


def _times(zone: str) -> list[int]:
    """Return wall-clock times in microseconds: around each change of the clock, and any."""
    chance = np.random.default_rng(5)
    drawn = chance.integers(200_000_000_000, _LAST_US, 1_500).tolist()
    found = zone_offsets._changes(zone)
    assert found is not None
    for bound in found[0].tolist():
        drawn += [bound + moved for moved in (-7_200_000_000, -3_600_000_001, -1_800_000_000, -1, 0, 1)]
    return [time for time in drawn if 200_000_000_000 < time < _LAST_US]


def _expected(time: int, zone: str) -> int:
    # the first of two instants, and behind a gap of the length that is skipped
    wall = (EPOCH + timedelta(microseconds=time)).replace(tzinfo=ZoneInfo(zone), fold=0)
    return (wall.astimezone(UTC).replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize("zone", ZONES)
def test_instants_are_those_of_zoneinfo(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    times = _times(zone)
    column = pa.array([None, 7, *times, None], pa.int64()).view(LOCAL).slice(2)
    found = zone_offsets.instants_of(column, zone)
    assert found is not None
    found.validate(full=True)
    values = found.view(pa.int64()).to_pylist()
    if not zone.startswith("+"):
        assert values == [*(_expected(time, zone) for time in times), None]
    # as Arrow converts few of them
    monkeypatch.setattr(zone_offsets, "_FEW", 1 << 60)
    assert found.equals(to_instant(column, zone))


def test_few_times_and_those_of_other_centuries_are_left_to_arrow() -> None:
    few = pa.array([1_000_000_000_000_000] * 999, LOCAL)
    early = pa.array([1_000_000_000_000_000, -5] * 1_000, LOCAL)
    late = pa.array([1_000_000_000_000_000, 4_200_000_000_000_000] * 1_000, LOCAL)
    for column in (few, early, late, pa.nulls(2_000, LOCAL), early.slice(0, 0)):
        assert zone_offsets.instants_of(column, "Europe/Berlin") is None
    times = pa.array([-2_208_988_800_000_000, 4_200_000_000_000_000, None] * 700, LOCAL)
    assert (
        to_instant(times, "Europe/Berlin")
        .slice(2_097)
        .equals(to_instant(times.slice(2_097), "Europe/Berlin"))
    )


def test_functions_by_the_batch_are_those_by_the_row() -> None:
    chance = np.random.default_rng(9)
    micros = chance.integers(-2_000_000_000, 4_000_000_000, 3_000) * 1_000_000
    # ends of months beside others
    micros[:400] = (np.arange(400).astype("M8[M]").astype("M8[D]").astype(np.int64) - 1) * 86_400_000_000
    times = pa.array(micros, LOCAL, mask=chance.random(3_000) < 0.05)
    others = times.take(pa.array(chance.permutation(3_000)))
    moved = pa.array(chance.integers(-400, 400, 3_000), pa.int32())
    batch = pa.record_batch(
        [times, others, moved, times.cast(pa.date32(), safe=False)], names=["t", "o", "n", "d"]
    )
    for name, arguments in (
        ("months_between", ("t", "o")),
        ("add_months", ("d", "n")),
        ("add_months", ("t", "n")),
        ("last_day", ("d",)),
    ):
        expression = call(name, *(col(batch, argument) for argument in arguments))
        whole = run(expression, batch)
        parts = [run(expression, batch.slice(at, 300)) for at in range(0, 3_000, 300)]
        assert whole.equals(pa.concat_arrays(parts)), (name, arguments)


def test_tables_have_the_months_of_numpy() -> None:
    # all days of the table, in one call and in calls that are too small for it
    days = np.arange(np.datetime64("1900-01-01").astype(int), np.datetime64("2100-01-01").astype(int))
    tables = calendar_months.months_of(days)
    parts = [calendar_months.months_of(days[at : at + 900]) for at in range(0, days.size, 900)]
    for found, pieces in zip(tables, zip(*parts, strict=True), strict=True):
        assert np.array_equal(found, np.concatenate(pieces))
    dates = days.astype("M8[D]")
    assert np.array_equal(tables[0], dates.astype("M8[M]").astype(np.int64))
    for months in (1, -11, 13, 1_200, -30_000):
        found = calendar_months.shift_months(days, np.full(days.size, months))
        few = calendar_months.shift_months(days[-900:], np.full(900, months))
        assert np.array_equal(found[-900:], few), months
