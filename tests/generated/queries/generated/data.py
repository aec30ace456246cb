"""The rows generated queries read: NULLs everywhere, few values, repeats, two splits a table, changes for
some.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.harness.direct.feeds import Feed, Row

START = datetime(2024, 1, 1)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("k", pa.int32()),
        ("s", pa.string()),
        ("v", pa.int64()),
        ("x", pa.decimal128(8, 2)),
        ("ts", pa.timestamp("us")),
    ]
)
TYPED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("k", pa.int32()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("y", pa.decimal128(20, 4)),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("l", pa.string()),
    ]
)
_NAN = float("nan")  # one object, so that Python finds the row again that is retracted
_TYPED_VALUES: tuple[tuple[Any, ...], ...] = (
    (None, 1, 2, 1, 2, 3),
    (None, _NAN, float("inf"), -float("inf"), -0.0, 0.0, 1.5, 0.5, -2.25, 1e300),
    (None, _NAN, float("inf"), -0.0, 0.0, 1.5, -2.25),
    (None, *(Decimal(text) for text in ("0.1250", "-0.1250", "12.3450", "123456.7891", "-7.0001", "0.0000"))),
    (None, True, False, True),
    (None, date(2024, 1, 1), date(2024, 2, 29), date(1969, 12, 31), date(2024, 1, 1)),
    (None, "", "a", "x" * 40, "x" * 39 + "y", "\u00e9\u4e2d\U0001f600z", "a\u0301b", " pad "),
)
DELAY_S = 20
_DISORDER_S = 8


NULLS = range(25, 30)
"""Variants whose values are mostly NULL."""
DUPLICATES = range(30, 35)
"""Variants of few values, where u and w have many equal rows and more of them are retracted."""


def feeds(variant: int) -> dict[str, Feed]:
    """Tables: t and e with event time; c with event time and changes; u with changes and a key; w without
    either; nothing; d with changes of other types.
    """
    return _feeds(variant) | {"d": _typed(random.Random(variant * 104729 + 7), variant)}


def _feeds(variant: int) -> dict[str, Feed]:
    dice = random.Random(variant * 7919 + 13)
    if variant in NULLS:
        return {name: _sparse(feed, dice) for name, feed in _feeds(variant - NULLS.start).items()}
    if variant in DUPLICATES:
        return _repeated(_feeds(variant - DUPLICATES.start), dice)
    return {
        "t": _feed([(row, 1) for row in _events(dice, 40, 0)], time_column="ts", delay=DELAY_S),
        "e": _feed([(row, 1) for row in _events(dice, 26, 1)], time_column="ts", delay=DELAY_S),
        "c": _feed(_changed_events(dice), time_column="ts", delay=DELAY_S),
        "u": _feed(_updates(dice), key=("id",)),
        "w": _feed([(_row(dice, i, _time(dice, i, 3)), 1) for i in range(18)]),
        "nothing": _feed([]),
    }


def _typed(dice: random.Random, variant: int) -> Feed:
    """Rows that are inserted, and some of them replaced or retracted; mostly NULL, or mostly equal, in the
    variants of those.
    """

    def row(number: int) -> Row:
        few = 2 if variant in DUPLICATES else 100
        rate = 0.75 if variant in NULLS else 0.0
        return (
            number,
            *(None if dice.random() < rate else dice.choice(values[:few]) for values in _TYPED_VALUES),
        )

    changes: list[tuple[Row, int]] = []
    live: dict[int, Row] = {}
    for number in (dice.randrange(24) for _ in range(40)):
        if number in live:
            changes.append((live.pop(number), -1))
        if not changes or changes[-1][1] > 0 or dice.random() < 0.6:
            live[number] = row(number)
            changes.append((live[number], 1))
    return replace(_feed(changes, key=("id",)), schema=TYPED)


def _changed_values(feed: Feed, change: Callable[[Row], Row]) -> Feed:
    """The same changes of other rows. An equal row is changed to an equal one, so retractions still match."""
    known: dict[Row, Row] = {}
    splits = []
    for split in feed.splits:
        for row, _ in split:
            if row not in known:
                known[row] = change(row)
        splits.append(tuple((known[row], weight) for row, weight in split))
    return replace(feed, splits=tuple(splits))


def _sparse(feed: Feed, dice: random.Random) -> Feed:
    """Of four values three are NULL; of times a third is."""

    def change(row: Row) -> Row:
        values = [value if dice.random() < 0.25 else None for value in row[1:5]]
        return (row[0], *values, row[5] if dice.random() < 0.67 else None)

    return _changed_values(feed, change)


def _repeated(tables: dict[str, Feed], dice: random.Random) -> dict[str, Feed]:
    """Two values of each column. In u and w times repeat too, and w retracts half of its rows."""

    def few(row: Row) -> Row:
        k, s, v, x = dice.choice(
            [(1, "a", 2, Decimal("1.25")), (2, "b", 2, Decimal("1.25")), (1, "a", 2, None)]
        )
        return (row[0], k, s, v, x, row[5])

    def equal(row: Row) -> Row:
        return (*few(row)[:5], dice.choice([None, START, START + timedelta(seconds=30)]))

    changed = {name: _changed_values(feed, equal if name in "uw" else few) for name, feed in tables.items()}
    inserted = changed["w"]
    splits = tuple(
        tuple(
            change
            for row, weight in split
            for change in (((row, weight), (row, -1)) if row[0] % 4 < 2 else ((row, weight),))
        )
        for split in inserted.splits
    )
    return changed | {"w": replace(inserted, splits=splits)}


def _feed(changes: list[tuple[Row, int]], **rest: Any) -> Feed:
    """Changes of one row stay in one split, so that they stay in order."""
    splits = tuple(tuple(change for change in changes if change[0][0] % 2 == side) for side in (0, 1))
    return Feed(SCHEMA, splits, **rest)


def _row(dice: random.Random, number: int, time: datetime | None) -> Row:
    return (
        number,
        dice.choice([None, 0, 1, 2, 3, 1, 2]),
        dice.choice([None, "a", "b", "c", "ab", "", "a"]),
        dice.choice([None, 0, 1, 2, 3, 4, 7]),
        dice.choice([None, Decimal("0.50"), Decimal("1.25"), Decimal("2.00"), Decimal("7.10")]),
        time,
    )


def _time(dice: random.Random, number: int, phase: int) -> datetime | None:
    """No two rows of a table have one time: the microseconds are the row's number."""
    return (
        None
        if dice.random() < 0.06
        else START
        + timedelta(seconds=2 * number + dice.randrange(_DISORDER_S), microseconds=number * 10 + phase)
    )


def _events(dice: random.Random, count: int, phase: int) -> list[Row]:
    return [_row(dice, i, _time(dice, i, phase)) for i in range(count)]


def _changed_events(dice: random.Random) -> list[tuple[Row, int]]:
    """Some rows are taken back, some replaced by others of their time, both soon: while their windows are
    open.
    """
    changes: list[tuple[Row, int]] = []
    due: list[tuple[int, list[tuple[Row, int]]]] = []
    for i, row in enumerate(_events(dice, 30, 2)):
        changes.append((row, 1))
        if dice.random() < 0.35:
            again = [((*row[:3], (row[3] or 0) + 1, *row[4:]), 1)] if dice.random() < 0.6 else []
            due.append((i + dice.randrange(1, 4), [(row, -1), *again]))
        for when, more in [item for item in due if item[0] <= i]:
            changes += more
            due.remove((when, more))
    return changes + [change for _, more in due for change in more]


def _updates(dice: random.Random) -> list[tuple[Row, int]]:
    live: dict[int, Row] = {}
    changes: list[tuple[Row, int]] = []
    for step in range(44):
        number = dice.randrange(18)
        if number in live and dice.random() < 0.4:
            changes.append((live.pop(number), -1))
            continue
        if number in live:
            changes.append((live[number], -1))
        live[number] = _row(dice, number, _time(dice, number * 2, step + 3))
        changes.append((live[number], 1))
    return changes
