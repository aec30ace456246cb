"""Queries by time over rows in disorder, each with its naive answer: row by row as their splits hold them,
however they are run.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.harness.direct.feeds import Feed, Row
from tests.harness.direct.lateness import Entry, sessions_in_turn
from tests.state_machines.harness import ID, LONG_AGO, SCHEMA, START, TS, K, V

Rows = Counter[tuple[Any, ...]]
Came = list[Entry]
DELAYS = (0, 2, 5)
KINDS = (
    "tumble",
    "hop",
    "cumulate",
    "session",
    "rows of sessions",
    "inner",
    "left",
    "right",
    "full",
    "semi",
    "anti",
    "number",
    "lag",
    "last",
)
BY_CLOCK = ("number", "lag", "last")
_NOTHING: Row = (None,) * 4


@dataclass(frozen=True)
class Case:
    """A query, the rows it reads, and its answer as a function of how rows came."""

    kind: str
    query: str
    feeds: dict[str, Feed]
    delay: int
    answer: Callable[[dict[str, Came]], Rows]

    @property
    def expected(self) -> Rows:
        return self.answer({name: came(feed) for name, feed in self.feeds.items()})

    @property
    def wrong(self) -> Rows:
        """What a runtime would return that drops every row behind its split's watermark, or that orders rows
        of one time by value.
        """
        found = {}
        for name, feed in self.feeds.items():
            rows = [entry for entry in came(feed) if entry.time is None or entry.time >= entry.behind]
            found[name] = (
                sorted(came(feed), key=lambda entry: (entry.row[V], entry.row[ID]))
                if self.kind in BY_CLOCK
                else rows
            )
        return self.answer(found)


def case(seed: int) -> Case:
    """Return the case of a number: kinds take turns."""
    dice, kind = random.Random(seed), KINDS[seed % len(KINDS)]
    delay = dice.choice(DELAYS)
    splits = 1 if kind in BY_CLOCK else dice.randint(1, 3)
    feeds = {name: _feed(dice, splits, delay, 1_000 * number) for number, name in enumerate(("a", "b"))}
    query, answer = _MAKERS.get(kind, _join)(kind, dice)
    return Case(kind, query, feeds, delay, answer)


def _feed(dice: random.Random, splits: int, delay: int, first: int) -> Feed:
    found, number = [], first
    for _ in range(splits):
        now, rows = 0, []
        for _ in range(dice.randint(2, 16)):
            now += dice.randint(0, 4)
            number += 1
            at = START + timedelta(seconds=now - max(0, dice.randint(-14, 12)))
            time = None if dice.random() < 0.04 else at
            rows.append(((number, dice.choice((None, 1, 1, 2)), dice.randint(0, 9), time), 1))
        found.append(tuple(rows))
    return Feed(SCHEMA, tuple(found), "ts", delay)


def came(feed: Feed) -> Came:
    """The rows of a feed, each with what the watermark of its split was."""
    found = []
    for split in feed.splits:
        behind = LONG_AGO
        for row, _ in split:
            found.append(Entry(row[K], row[TS], behind, row))
            behind = behind if row[TS] is None else max(behind, row[TS] - timedelta(seconds=feed.delay))
    return found


def _grouped(groups: dict[tuple[Any, ...], list[Row]]) -> Rows:
    return Counter((*key, len(rows), sum(row[V] for row in rows)) for key, rows in groups.items())


def _window(kind: str, dice: random.Random) -> tuple[str, Callable[[dict[str, Came]], Rows]]:
    step, times = dice.randint(2, 6), 1 if kind == "tumble" else dice.randint(2, 3)
    sizes = {
        "tumble": f"'{step}'",
        "hop": f"'{step}' SECONDS, INTERVAL '{step * times}'",
        "cumulate": f"'{step}' SECONDS, INTERVAL '{step * times}'",
    }
    call = f"{kind.upper()}(TABLE a, DESCRIPTOR(ts), INTERVAL {sizes[kind]} SECONDS)"
    size, one = timedelta(seconds=step * times), timedelta(seconds=step)

    def windows(time: datetime) -> list[tuple[datetime, datetime]]:
        if kind == "cumulate":
            start = _floor(time, size)
            return [(start, start + one * n) for n in range(1, times + 1) if time < start + one * n]
        return [(_floor(time, one) - one * n, _floor(time, one) - one * n + size) for n in range(times)]

    def answer(tables: dict[str, Came]) -> Rows:
        groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for entry in tables["a"]:
            for start, end in [] if entry.time is None else windows(entry.time):
                if end > entry.behind:
                    groups[entry.key, start, end].append(entry.row)
        return _grouped(groups)

    return (
        f"SELECT k, window_start, window_end, COUNT(*), SUM(v) FROM {call} GROUP BY k, window_start, window_end",
        answer,
    )


def _floor(time: datetime, size: timedelta) -> datetime:
    epoch = datetime(1970, 1, 1)
    return epoch + (time - epoch) // size * size


def _session(kind: str, dice: random.Random) -> tuple[str, Callable[[dict[str, Came]], Rows]]:
    gap = dice.randint(1, 8)
    call = f"SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), INTERVAL '{gap}' SECONDS)"

    def answer(tables: dict[str, Came]) -> Rows:
        found, _ = sessions_in_turn(
            [entry for entry in tables["a"] if entry.time is not None], timedelta(seconds=gap)
        )
        if kind == "session":
            sums: Rows = Counter()
            for one in found:
                sums += _grouped({(one.key, one.start, one.end): one.rows})
            return sums
        return Counter((row[ID], one.start, one.end) for one in found for row in one.rows)

    if kind == "session":
        return (
            f"SELECT k, window_start, window_end, COUNT(*), SUM(v) FROM {call} GROUP BY k, window_start, window_end",
            answer,
        )
    return f"SELECT id, window_start, window_end FROM {call}", answer


def _join(kind: str, dice: random.Random) -> tuple[str, Callable[[dict[str, Came]], Rows]]:
    low, high = dice.randint(0, 6), dice.randint(0, 6)
    waits = {"a": timedelta(seconds=low), "b": timedelta(seconds=high)}
    on = f"a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '{low}' SECOND AND b.ts + INTERVAL '{high}' SECOND"

    def late(entry: Entry) -> bool:
        if entry.time is None:
            return False
        return entry.time + (timedelta() if entry.key is None else waits["a"] + waits["b"]) < entry.behind

    def meet(a: Entry, b: Entry) -> bool:
        if (
            a.key is None
            or a.key != b.key
            or a.time is None
            or b.time is None
            or not b.time - waits["a"] <= a.time <= b.time + waits["b"]
        ):
            return False
        return a.time + waits["a"] >= b.behind and b.time + waits["b"] >= a.behind

    def answer(tables: dict[str, Came]) -> Rows:
        left, right = ([entry for entry in tables[name] if not late(entry)] for name in ("a", "b"))
        if kind in ("semi", "anti"):
            return Counter((a.row[ID],) for a in left if any(meet(a, b) for b in right) is (kind == "semi"))
        pairs = [(a.row, b.row) for a in left for b in right if meet(a, b)]
        if kind in ("left", "full"):
            pairs += [(a.row, _NOTHING) for a in left if not any(meet(a, b) for b in right)]
        if kind in ("right", "full"):
            pairs += [(_NOTHING, b.row) for b in right if not any(meet(a, b) for a in left)]
        return Counter((a[ID], b[ID]) for a, b in pairs)

    word = f"LEFT {kind.upper()}" if kind in ("semi", "anti") else kind.upper()
    return (
        f"SELECT {'a.id' if kind in ('semi', 'anti') else 'a.id, b.id'} FROM a {word} JOIN b ON {on}",
        answer,
    )


def _clock(kind: str, dice: random.Random) -> tuple[str, Callable[[dict[str, Came]], Rows]]:
    """The test's clock stands still: all rows have one time."""
    back, timed = dice.randint(1, 3), "(SELECT *, PROCTIME() AS p FROM a)"

    def answer(tables: dict[str, Came]) -> Rows:
        parts: dict[Any, list[int]] = defaultdict(list)
        for entry in tables["a"]:
            parts[entry.key].append(entry.row[ID])
        if kind == "last":
            return Counter((i,) for part in parts.values() for i in part[-back:])
        if kind == "number":
            return Counter((i, n) for part in parts.values() for n, i in enumerate(part, 1))
        return Counter(
            (i, part[n - back] if n >= back else None) for part in parts.values() for n, i in enumerate(part)
        )

    if kind == "last":
        ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY p DESC) AS r FROM {timed}"
        return f"SELECT id FROM ({ranked}) WHERE r <= {back}", answer
    call = "ROW_NUMBER()" if kind == "number" else f"LAG(id, {back})"
    return f"SELECT id, {call} OVER (PARTITION BY k ORDER BY p) FROM {timed}", answer


_MAKERS: dict[str, Callable[[str, random.Random], tuple[str, Callable[[dict[str, Came]], Rows]]]] = {
    **dict.fromkeys(("tumble", "hop", "cumulate"), _window),
    **dict.fromkeys(("session", "rows of sessions"), _session),
    **dict.fromkeys(BY_CLOCK, _clock),
}
