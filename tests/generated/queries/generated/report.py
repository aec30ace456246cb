"""What is said of a query that went wrong: the smallest one that goes wrong in the same way, over as few
rows as do it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tests.generated.queries.generated.pieces import Piece, reduced
from tests.generated.queries.generated.trial import Arena, Manner, outcome
from tests.harness.direct.feeds import Feed

_VARYING = re.compile(r"[0-9]+|\"[^\"]*\"")


def kind_of(told: str) -> str:
    """The kind of a failure: its code or class, and its sentence without what varies."""
    head, _, rest = told.partition(" ")
    rest = rest if head not in ("Wrong", "AssertionError", "RUN-2900") else rest.split(":", 1)[0]
    steady = _VARYING.sub("#", rest)[:80]
    return f"{head} {steady}"


def report(arena: Arena, query: Piece, manner: Manner, told: str) -> str:
    """Reduce the query, then its rows; return at most ten lines."""
    wanted = kind_of(told)
    small = reduced(query, lambda candidate: kind_of(outcome(arena, candidate, manner)) == wanted)
    tables = fewer_rows(arena.tables, small, manner, wanted)
    lines = [
        small.text(),
        *(
            f"{name}: {_rows(feed)}"
            for name, feed in tables.items()
            if re.search(rf"\b{name}\b", small.text())
        ),
    ]
    again = Arena(tables)
    try:
        return "\n".join([f"{manner}", outcome(again, small, manner)[:300], *lines][:10])
    finally:
        again.close()


def fewer_rows(tables: dict[str, Feed], query: Piece, manner: Manner, wanted: str) -> dict[str, Feed]:
    """Leave out runs of changes, halves first, as long as the query goes wrong in the same way."""
    for name in list(tables):
        if not re.search(rf"\b{name}\b", query.text()):
            continue
        longest = tables[name].longest
        sizes = [longest >> shift for shift in range(1, longest.bit_length())]
        for size in (*sizes, 1):  # once more: what a taken-back row needed may go now
            for split in range(len(tables[name].splits)):
                place = 0
                while place < len(tables[name].splits[split]):
                    candidate = tables | {name: _without(tables[name], split, place, size)}
                    if _fails(candidate, query, manner, wanted):
                        tables = candidate
                    else:
                        place += size
    return tables


def _without(feed: Feed, split: int, place: int, size: int) -> Feed:
    splits = list(feed.splits)
    splits[split] = splits[split][:place] + splits[split][place + size :]
    return replace(feed, splits=tuple(splits))


def _fails(tables: dict[str, Feed], query: Piece, manner: Manner, wanted: str) -> bool:
    seen: dict[tuple[object, ...], int] = {}
    for feed in tables.values():  # a retraction without its row is no changelog
        for split in feed.splits:
            for row, weight in split:
                seen[row] = seen.get(row, 0) + weight
                if seen[row] < 0:
                    return False
    arena = Arena(tables)
    try:
        return kind_of(outcome(arena, query, manner)) == wanted
    finally:
        arena.close()


def _rows(feed: Feed) -> str:
    texts = []
    for number, split in enumerate(feed.splits):
        texts += [
            f"{number}{'+' if weight > 0 else '-'}({', '.join(_value(value) for value in row)})"
            for row, weight in split
        ]
    return " ".join(texts)


def _value(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text.removeprefix("2024-01-01 ")
