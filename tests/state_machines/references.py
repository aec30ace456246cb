"""Naive references: what each operator's query means, over lists of rows (id, k, v, ts)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from tests.harness.direct import lateness
from tests.harness.direct.feeds import Row
from tests.harness.direct.lateness import SessionOf, sessions_in_turn
from tests.state_machines.harness import ID, TS, Given, K, Rows, V

SECOND = timedelta(seconds=1)
NOTHING: Row = (None,) * 4


def aggregates(rows: Iterable[Row]) -> tuple[Any, ...]:
    """count(*), sum(v), min(v), max(v), count(DISTINCT v)."""
    every = list(rows)
    values = [row[V] for row in every if row[V] is not None]
    return (
        len(every),
        sum(values) if values else None,
        min(values, default=None),
        max(values, default=None),
        len(set(values)),
    )


def by(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def grouped(given: Given) -> Rows:
    return Counter((k, *aggregates(rows)) for k, rows in by(given.rows(), lambda row: row[K]).items())


def whole(given: Given) -> Rows:
    return Counter([aggregates(given.rows())])


def filtered(given: Given) -> Rows:
    return Counter(
        (k, n, big)
        for k, rows in by(given.rows(), lambda row: row[K]).items()
        for n, big in [(len(rows), sum((r[V] or 0) > 1 for r in rows))]
        if n > 1
    )


def distinct(given: Given) -> Rows:
    return Counter({(row[K], row[V]) for row in given.rows()})


def sets(word: str) -> Callable[[Given], Rows]:
    def of(given: Given) -> Rows:
        one, two = (Counter((row[K], row[V]) for row in given.rows(name)) for name in ("a", "b"))
        found = {"UNION": one | two, "INTERSECT": one & two, "EXCEPT": one - two}
        if word.endswith("ALL"):
            return one + two if word.startswith("UNION") else found[word.split(maxsplit=1)[0]]
        return Counter(set(one) - set(two)) if word == "EXCEPT" else Counter(set(found[word]))

    return of


# joins


def equal(one: Row, two: Row) -> bool:
    return one[K] is not None and one[K] == two[K]


def equal_and_less(one: Row, two: Row) -> bool:
    return equal(one, two) and one[V] is not None and two[V] is not None and one[V] < two[V]


def joined(left: list[Row], right: list[Row], meets: Callable[[Row, Row], bool], kind: str) -> Rows:
    """Pairs (a.id, a.v, b.id, b.v), or rows (id, v) of a semi or anti join."""
    if kind in ("semi", "anti"):
        return Counter((a[ID], a[V]) for a in left if any(meets(a, b) for b in right) is (kind == "semi"))
    pairs = [(a, b) for a in left for b in right if meets(a, b)]
    if kind in ("left", "full"):
        pairs += [(a, NOTHING) for a in left if not any(meets(a, b) for b in right)]
    if kind in ("right", "full"):
        pairs += [(NOTHING, b) for b in right if not any(meets(a, b) for a in left)]
    return Counter((a[ID], a[V], b[ID], b[V]) for a, b in pairs)


def join(kind: str, meets: Callable[[Row, Row], bool] = equal) -> Callable[[Given], Rows]:
    return lambda given: joined(given.rows("a"), given.rows("b"), meets, kind)


def near(one: Row, two: Row) -> bool:
    return equal(one, two) and -3 * SECOND <= one[TS] - two[TS] <= 2 * SECOND


def near_in_time(kind: str) -> Callable[[Given], Rows]:
    """An interval join; a row without a match comes alone when none can come any more.

    A row waits until its split's time has passed its last partner. Two rows meet if neither came when the
    other had gone; one is late that came when the last partner it might have had was gone, or, without a key,
    behind the watermark.
    """
    waits = {"a": 3 * SECOND, "b": 2 * SECOND}

    def of(given: Given) -> Rows:
        behind = {entry.row[ID]: entry.behind for entry in (*given.tables["a"], *given.tables["b"])}

        def timely(name: str) -> list[Row]:
            return [
                row
                for row in (entry.row for entry in given.tables[name])
                if row[TS] + (row[K] is not None) * 5 * SECOND >= behind[row[ID]]
            ]

        def meets(a: Row, b: Row) -> bool:
            return near(a, b) and a[TS] + waits["a"] >= behind[b[ID]] and b[TS] + waits["b"] >= behind[a[ID]]

        left, right = timely("a"), timely("b")
        alone_left = {row[ID] for row in left if row[K] is None or row[TS] + waits["a"] < given.now}
        if kind in ("semi", "anti"):
            return Counter(
                {
                    row: n
                    for row, n in joined(left, right, meets, kind).items()
                    if kind == "semi" or row[0] in alone_left
                }
            )
        alone_right = {row[ID] for row in right if row[K] is None or row[TS] + waits["b"] < given.now}
        pairs = joined(left, right, meets, kind)
        return Counter(
            {
                row: n
                for row, n in pairs.items()
                if None not in (row[0], row[2]) or row[0] in alone_left or row[2] in alone_right
            }
        )

    return of


# windows: (start, end) pairs a time falls in

Ends = Callable[[datetime], list[tuple[datetime, datetime]]]


def tumble(time: datetime) -> list[tuple[datetime, datetime]]:
    start = floor(time, 5)
    return [(start, start + 5 * SECOND)]


def hop(time: datetime) -> list[tuple[datetime, datetime]]:
    return [
        (floor(time, 3) - back * 3 * SECOND, floor(time, 3) - back * 3 * SECOND + 6 * SECOND)
        for back in (0, 1)
    ]


def cumulate(time: datetime) -> list[tuple[datetime, datetime]]:
    start = floor(time, 6)
    return [(start, start + n * 2 * SECOND) for n in (1, 2, 3) if time < start + n * 2 * SECOND]


def floor(time: datetime, seconds: int) -> datetime:
    return time - ((time - datetime(1970, 1, 1)) % timedelta(seconds=seconds))


def in_windows(given: Given, ends: Ends, table: str = "a") -> dict[tuple[Any, ...], list[Row]]:
    """Closed windows by key and bounds: the rows, each counted by its weight, that were not behind the
    window's end.
    """
    groups: dict[tuple[Any, ...], Counter[Row]] = defaultdict(Counter)
    for entry in given.tables[table]:
        for start, end in ends(entry.row[TS]):
            if entry.behind < end:
                groups[entry.row[K], start, end][entry.row] += entry.weight
    return {group: list(rows.elements()) for group, rows in groups.items() if group[2] <= given.now and +rows}


def window_groups(ends: Ends) -> Callable[[Given], Rows]:
    return lambda given: Counter(
        (*group, *aggregates(rows)) for group, rows in in_windows(given, ends).items()
    )


def _sessions(given: Given) -> list[SessionOf]:
    entries = [
        lateness.Entry(entry.row[K], entry.row[TS], entry.behind, entry.row) for entry in given.tables["a"]
    ]
    return [one for one in sessions_in_turn(entries, 4 * SECOND)[0] if one.end < given.now]


def sessions(given: Given) -> Rows:
    return Counter((one.key, one.start, one.end, *aggregates(one.rows)) for one in _sessions(given))


def rows_of_sessions(given: Given) -> Rows:
    return Counter((row[ID], row[K], one.start, one.end) for one in _sessions(given) for row in one.rows)


def sessions_of_changes(given: Given) -> Rows:
    """Runs of rows of a key less than four seconds apart, closed when time has passed their end."""
    found: Rows = Counter()
    for k, rows in by(given.rows(), lambda row: row[K]).items():
        run: list[Row] = []
        for row in [*sorted(rows, key=lambda row: row[TS]), None]:
            if run and (row is None or row[TS] >= run[-1][TS] + 4 * SECOND):
                end = run[-1][TS] + 4 * SECOND
                if end <= given.now:
                    found[k, run[0][TS], end, *aggregates(run)] += 1
                run = []
            if row is not None:
                run.append(row)
    return found


def window_top(given: Given) -> Rows:
    """The two rows of greatest v of each closed window."""
    found: Rows = Counter()
    for (start, end), rows in _by_window(in_windows(given, tumble)).items():
        for row in sorted(rows, key=lambda row: (-(row[V] if row[V] is not None else -1), row[ID]))[:2]:
            found[start, end, row[ID]] += 1
    return found


def _by_window(groups: dict[tuple[Any, ...], list[Row]]) -> dict[tuple[datetime, datetime], list[Row]]:
    windows: dict[tuple[datetime, datetime], list[Row]] = defaultdict(list)
    for (_, start, end), rows in groups.items():
        windows[start, end] += rows
    return windows


# orders


def place(value: Any) -> tuple[bool, Any]:
    """NULLs first."""
    return (value is not None, value if value is not None else 0)


def top(given: Given) -> Rows:
    rows = sorted(given.rows(), key=lambda row: (place(row[V]), row[ID]))
    return Counter((row[ID], row[V]) for row in rows[1:4])


def top_of_keys(rank: str) -> Callable[[Given], Rows]:
    def of(given: Given) -> Rows:
        found: Rows = Counter()
        for rows in by(given.rows(), lambda row: row[K]).values():
            ordered = sorted(rows, key=lambda row: (place(row[V]), row[ID]))
            for index, row in enumerate(ordered):
                before = [other for other in ordered if place(other[V]) < place(row[V])]
                number = {
                    "row_number": index,
                    "rank": len(before),
                    "dense_rank": len({other[V] for other in before}),
                }[rank] + 1
                if number <= 2:
                    found[row[ID], row[K], number] += 1
        return found

    return of


def first_of_keys(given: Given) -> Rows:
    """The first row by time of each key, given when time has passed it."""
    rows = [row for row in given.timely() if row[TS] < given.now]
    return Counter(
        (min(group, key=lambda row: row[TS])[ID],) for group in by(rows, lambda row: row[K]).values()
    )


def last_of_keys(given: Given) -> Rows:
    return Counter(
        (max(group, key=lambda row: row[TS])[ID],) for group in by(given.rows(), lambda row: row[K]).values()
    )


def running_in_time(given: Given) -> Rows:
    """Per row that time has passed: the sum of v in the five seconds before it, the number of its key's
    rows, the v two rows earlier.
    """
    found: Rows = Counter()
    for rows in by((row for row in given.timely() if row[TS] < given.now), lambda row: row[K]).values():
        ordered = sorted(rows, key=lambda row: row[TS])
        for index, row in enumerate(ordered):
            near_ones = [
                other[V]
                for other in ordered[: index + 1]
                if other[TS] >= row[TS] - 5 * SECOND and other[V] is not None
            ]
            found[
                row[ID],
                sum(near_ones) if near_ones else None,
                index + 1,
                ordered[index - 2][V] if index >= 2 else None,
            ] += 1
    return found


def over_changes(given: Given) -> Rows:
    """Per row: the sum of v of the rows of its key up to it, the next row's id, and the count of its key."""
    found: Rows = Counter()
    for rows in by(given.rows(), lambda row: row[K]).values():
        ordered = sorted(rows, key=lambda row: (place(row[V]), row[ID]))
        for index, row in enumerate(ordered):
            values = [other[V] for other in ordered[: index + 1] if other[V] is not None]
            found[
                row[ID],
                sum(values) if values else None,
                ordered[index + 1][ID] if index + 1 < len(ordered) else None,
                len(ordered),
            ] += 1
    return found
