"""What is late, naively: of rows as (key, time, what the watermark of the row's split was when it came,
row), times and watermarks of one kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A row as it came."""

    key: Any
    time: Any
    behind: Any
    row: Any


class SessionOf(NamedTuple):
    """A session and its rows."""

    key: Any
    start: Any
    end: Any
    rows: list[Any]


def sessions_in_turn(entries: Iterable[Entry], gap: Any) -> tuple[list[SessionOf], list[Any]]:
    """Return the sessions, and the late rows. Rows take turns by the watermark they were behind, those of one
    turn together.

    At its turn a row meets no session that has ended before it; it is late when its own, with those it
    touches, would have.
    """
    of_key: dict[Any, list[Entry]] = defaultdict(list)
    for entry in entries:
        of_key[entry.key].append(entry)
    found, late = [], []
    for key, mine in of_key.items():
        turns: dict[Any, list[Entry]] = defaultdict(list)
        for entry in mine:
            turns[entry.behind].append(entry)
        live: list[SessionOf] = []
        for turn in sorted(turns):
            found += [one for one in live if one.end < turn]
            runs: list[SessionOf] = []
            alone = [SessionOf(key, entry.time, entry.time + gap, [entry.row]) for entry in turns[turn]]
            for one in sorted([*(one for one in live if one.end >= turn), *alone], key=lambda one: one.start):
                if runs and one.start <= runs[-1].end:
                    runs[-1] = SessionOf(
                        key, runs[-1].start, max(runs[-1].end, one.end), runs[-1].rows + one.rows
                    )
                else:
                    runs.append(one)
            live = [one for one in runs if one.end >= turn]
            late += [row for one in runs if one.end < turn for row in one.rows]
        found += live
    return found, late
