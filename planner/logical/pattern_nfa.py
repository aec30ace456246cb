"""The automaton (NFA) of a row pattern: for each pattern position, the positions of the next row, the
preferred first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import field

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.expressions.row_pattern import (
    Alternation,
    Concatenation,
    Exclusion,
    Pattern,
    Repetition,
    Variable,
)

ACCEPT = -1
"""The successor that ends the match without consuming a row."""


@dataclass(frozen=True)
class Automaton:
    """A nondeterministic automaton. Positions are numbers; each has the index of its variable and a flag
    whether its rows are excluded.

    The successors of position i, best first, are ``targets[offsets[i]:offsets[i + 1]]``: positions, or
    ACCEPT. The last position is the start, before the first row.
    """

    variables: tuple[int, ...]
    excluded: tuple[bool, ...]
    offsets: tuple[int, ...]
    targets: tuple[int, ...]


@dataclasses.dataclass(eq=False)
class _Node:
    """A position that consumes a row (``place`` and its one successor), a fork (successors, best first), or
    the end (no successor).
    """

    place: int = ACCEPT
    leads: list[_Node] = field(default_factory=list)


def automaton_of(pattern: Pattern, variables: Sequence[str]) -> Automaton:
    """Return the automaton of a pattern; ``variables`` lists all variable names, whose indexes
    number them.
    """
    builder = _Builder({name: number for number, name in enumerate(variables)})
    # built from the end: each node needs its successor
    end = _Node()
    start = builder.before(pattern, end, False)
    offsets, targets = [0], []
    # position by position, the start last
    for leads in [*(node.leads[0] for node in builder.places), start]:
        targets += _reached(leads, end)
        offsets.append(len(targets))
    return Automaton(tuple(builder.variables), tuple(builder.excluded), tuple(offsets), tuple(targets))


def _reached(start: _Node, end: _Node) -> list[int]:
    """Return the positions that are reachable without consuming a row. A fork is followed once only: that
    ends an empty iteration.
    """
    targets: list[int] = []
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node is end:
            targets.append(ACCEPT)
        elif node.place != ACCEPT:
            targets.append(node.place)
        else:
            # a stack: the preferred branch is pushed last and followed first
            waiting += reversed(node.leads)
    return targets


class _Builder:
    """Builds nodes from the end of the pattern to its beginning."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self.places: list[_Node] = []
        self.variables: list[int] = []
        self.excluded: list[bool] = []

    def before(self, pattern: Pattern, after: _Node, excluded: bool) -> _Node:
        """Return the start node of a pattern that is followed by ``after``."""
        match pattern:
            # A
            case Variable(name=name):
                node = _Node(len(self.places), [after])
                self.places.append(node)
                self.variables.append(self._numbers[name])
                self.excluded.append(excluded)
                return node
            # A B C, built from the right
            case Concatenation(members=members):
                for member in reversed(members):
                    after = self.before(member, after, excluded)
                return after
            # A | B: a fork, the first branch preferred
            case Alternation(branches=branches):
                return _Node(leads=[self.before(branch, after, excluded) for branch in branches])
            # {- A -}
            case Exclusion(part=part):
                return self.before(part, after, True)
            # A*, A+, A{n,m}
            case Repetition():
                return self._repeated(pattern, after, excluded)
        raise AssertionError(type(pattern))

    def _repeated(self, pattern: Repetition, after: _Node, excluded: bool) -> _Node:
        least = pattern.least
        # A+: the last mandatory repetition loops back to itself
        if pattern.most is None and least and not pattern.part.empty:
            start, least = _Node(), least - 1
            first = self.before(pattern.part, start, excluded)
            start.leads = _fork(first, after, pattern.greedy)
            start = first
        # A*: a loop with a fork before it
        elif pattern.most is None:
            start = _Node()
            start.leads = _fork(self.before(pattern.part, start, excluded), after, pattern.greedy)
        # A{n,m}: the optional repetitions are nested, each behind a fork
        else:
            start = after
            for _ in range(pattern.most - least):
                start = _Node(leads=_fork(self.before(pattern.part, start, excluded), after, pattern.greedy))
        # the mandatory repetitions in front
        for _ in range(least):
            start = self.before(pattern.part, start, excluded)
        return start


def _fork(into: _Node, past: _Node, greedy: bool) -> list[_Node]:
    # A* prefers one more A, A*? the end
    return [into, past] if greedy else [past, into]
