"""Naive references of joins by windows and versions, of rows from arrays and of limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.harness.direct.feeds import Row
from tests.state_machines.harness import ID, TS, Given, K, Rows, V
from tests.state_machines.references import NOTHING, equal, tumble


def as_of(kind: str) -> Callable[[Given], Rows]:
    """Rows time has passed, each with the last version of its key that began no later; those without a key
    stand alone at once.
    """

    def version(row: Row, versions: list[Row]) -> Row:
        met = [other for other in versions if equal(row, other) and other[TS] <= row[TS]]
        return max(met, key=lambda other: other[TS], default=NOTHING)

    def of(given: Given) -> Rows:
        rows = [
            (row, version(row, given.timely("b")))
            for row in given.timely("a")
            if row[K] is None or row[TS] < given.now
        ]
        return Counter(
            (row[ID], row[V], met[ID], met[V]) for row, met in rows if kind == "left" or met is not NOTHING
        )

    return of


def in_equal_windows(kind: str) -> Callable[[Given], Rows]:
    """Pairs of one window and key; rows without one alone when their window is closed, at once where they
    have no key.
    """

    def of(given: Given) -> Rows:
        sides = [
            [entry.row for entry in given.tables[name] if entry.behind < tumble(entry.row[TS])[0][1]]
            for name in ("a", "b")
        ]

        def end(row: Row) -> object:
            return tumble(row[TS])[0][1]

        def lonely(row: Row, others: list[Row]) -> bool:
            closed = row[K] is None or tumble(row[TS])[0][1] <= given.now
            return closed and not any(equal(row, other) and end(row) == end(other) for other in others)

        left, right = sides
        alone = [row for row in left if lonely(row, right)]
        if kind == "anti":
            return Counter((row[ID], row[V]) for row in alone)
        pairs = [(a, b) for a in left for b in right if equal(a, b) and end(a) == end(b)]
        if kind == "semi":
            return Counter({(a[ID], a[V]) for a, _ in pairs})
        pairs += [(a, NOTHING) for a in alone] if kind in ("left", "full") else []
        pairs += [(NOTHING, b) for b in right if lonely(b, left)] if kind in ("right", "full") else []
        return Counter((a[ID], a[V], b[ID], b[V]) for a, b in pairs)

    return of


def elements(given: Given) -> Rows:
    """Each row with its v and its k, one after the other."""
    return Counter(
        (row[ID], value, place) for row in given.rows() for place, value in enumerate((row[V], row[K]), 1)
    )


def some(given: Given) -> Rows:
    """How many rows a limit of three leaves."""
    return Counter([(min(3, len(given.rows())),)])
