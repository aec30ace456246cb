"""MATCH_RECOGNIZE computed naively: every way through the pattern in order of preference, by backtracking
over the pattern itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from penstock.planner.expressions.row_pattern import (
    Alternation,
    Concatenation,
    Exclusion,
    Pattern,
    Repetition,
    Variable,
)
from penstock.planner.logical.match_recognize import SkipTo

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Taken:
    """A row of a match: its variable, its position in the partition, whether it is shown."""

    name: str
    at: int
    shown: bool


Way = tuple[Taken, ...]


@dataclass(frozen=True)
class View:
    """A match so far (or whole) as conditions and measures see it."""

    part: list[Row]
    way: Way
    number: int = 0

    def rows(self, names: str | None) -> list[int]:
        return [taken.at for taken in self.way if names is None or taken.name in names]

    def at(self, index: int | None, column: int, before: int = 0) -> Any:
        return None if index is None or index < before else self.part[index - before][column]

    def last(self, names: str | None, column: int, offset: int = 0, before: int = 0) -> Any:
        rows = self.rows(names)
        return self.at(rows[-1 - offset] if offset < len(rows) else None, column, before)

    def first(self, names: str | None, column: int, offset: int = 0, before: int = 0) -> Any:
        rows = self.rows(names)
        return self.at(rows[offset] if offset < len(rows) else None, column, before)

    def some(self, names: str | None, column: int) -> list[Any]:
        return [value for value in (self.part[at][column] for at in self.rows(names)) if value is not None]


Condition = Callable[[View], bool | None]


@dataclass(frozen=True)
class Search:
    """A pattern with its conditions over one partition."""

    part: list[Row]
    conditions: dict[str, Condition]
    within: timedelta | None = None
    time: int = 1

    def ways(self, pattern: Pattern, way: Way, start: int, shown: bool = True) -> Iterator[Way]:
        match pattern:
            case Variable(name=name):
                at = start + len(way)
                longer = (*way, Taken(name, at, shown))
                if (
                    at < len(self.part)
                    and self._in_time(start, at)
                    and self.conditions.get(name, lambda view: True)(View(self.part, longer))
                ):
                    yield longer
            case Concatenation(members=members):
                yield from self._sequence(members, way, start, shown)
            case Alternation(branches=branches):
                for branch in branches:
                    yield from self.ways(branch, way, start, shown)
            case Exclusion(part=part):
                yield from self.ways(part, way, start, False)
            case Repetition():
                yield from self._repeated(pattern, 0, way, start, shown)

    def _in_time(self, start: int, at: int) -> bool:
        return self.within is None or self.part[at][self.time] - self.part[start][self.time] <= self.within

    def _sequence(self, members: tuple[Pattern, ...], way: Way, start: int, shown: bool) -> Iterator[Way]:
        if not members:
            yield way
            return
        for longer in self.ways(members[0], way, start, shown):
            yield from self._sequence(members[1:], longer, start, shown)

    def _repeated(self, pattern: Repetition, count: int, way: Way, start: int, shown: bool) -> Iterator[Way]:
        if not pattern.greedy and count >= pattern.least:
            yield way
        if pattern.most is None or count < pattern.most:
            for longer in self.ways(pattern.part, way, start, shown):
                if len(longer) > len(way) or count < pattern.least:
                    yield from self._repeated(pattern, count + 1, longer, start, shown)
        if pattern.greedy and count >= pattern.least:
            yield way


def matches(search: Search, pattern: Pattern, skip: SkipTo, target: str) -> list[View]:
    """Return the matches of a partition, in order; LookupError where SKIP TO leads nowhere."""
    found: list[View] = []
    start = 0
    while start < len(search.part):
        way = next(search.ways(pattern, (), start), None)
        if way is None:
            start += 1
            continue
        found.append(View(search.part, way, len(found) + 1))
        rows = [taken.at for taken in way if taken.name in target]
        after = {SkipTo.PAST_LAST_ROW: way[-1].at + 1, SkipTo.NEXT_ROW: start + 1}
        if skip not in after and (not rows or rows[0 if skip is SkipTo.FIRST else -1] == start):
            raise LookupError(target)
        start = after[skip] if skip in after else rows[0 if skip is SkipTo.FIRST else -1]
    return found
