"""Distribution: the kinds of edges between subtasks of two operators, and the distribution that an input may
require.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.catalog.frozen_dataclass import dataclass


@dataclass(frozen=True)
class Edge:
    """Base of edge kinds; an edge is an immutable value."""

    @property
    def sign(self) -> str:
        """The edge as EXPLAIN prints it."""
        return "?"

    @property
    def overtakable(self) -> bool:
        """Whether a barrier may overtake rows of the edge (unaligned checkpoint). The checkpoint then stores
        these rows as channel state and restores them at any parallelism.

        Not so for forward edges, where only the subtask tells the key of a row. Not so for broadcast edges
        either: each subtask may be at another row when the barrier arrives.
        """
        return False


@dataclass(frozen=True)
class Forward(Edge):
    """Subtask i sends to subtask i; operators can be chained over no other edge."""

    @property
    def sign(self) -> str:
        # the only edge that chaining can remove
        return "→ forward"


@dataclass(frozen=True)
class Partition(Edge):
    """Rows go to the subtask that owns the key group of their key columns; without keys all rows go to
    subtask 0.
    """

    keys: tuple[int, ...]

    @property
    def sign(self) -> str:
        return (
            f"⤨ partition({', '.join(f'${key}' for key in self.keys)})"
            if self.keys
            # without keys all rows go to subtask 0
            else "⤨ partition(single)"
        )

    @property
    def overtakable(self) -> bool:
        return True


@dataclass(frozen=True)
class Shuffle(Edge):
    """Batches go to the subtasks round robin, to rebalance after a change of parallelism."""

    @property
    def sign(self) -> str:
        return "⤨ shuffle"

    @property
    def overtakable(self) -> bool:
        return True


@dataclass(frozen=True)
class Broadcast(Edge):
    """Every subtask receives every row."""

    @property
    def sign(self) -> str:
        return "⇶ broadcast"


@dataclass(frozen=True)
class Requirement:
    """The distribution an operator requires of one input: ``any``, ``keys`` (equal keys in one subtask),
    ``all`` (all rows in every subtask) or ``single`` (one subtask).
    """

    kind: str
    keys: tuple[int, ...] = ()


ANY = Requirement("any")
ALL = Requirement("all")
SINGLE = Requirement("single")


def by_keys(keys: tuple[int, ...]) -> Requirement:
    """Return the requirement that rows with equal values in these columns share a subtask; no columns means
    one subtask.
    """
    # ROW_NUMBER() OVER (ORDER BY ts): one partition of all rows
    return Requirement("keys", keys) if keys else SINGLE


Partitioning = frozenset[tuple[int, ...]]
"""Ordered key lists: the rows are hash-partitioned by each of them. There are several when a join made
columns equal.
"""

UNKNOWN: Partitioning = frozenset()


def move_keys(known: Partitioning, positions: Mapping[int, int]) -> Partitioning:
    """Return the key lists whose columns are all in ``places``, at their new positions."""
    # a list with a dropped column no longer tells where rows are
    return frozenset(tuple(positions[key] for key in keys) for keys in known if positions.keys() >= set(keys))


@dataclass(frozen=True)
class SubtaskHint:
    """What a hint PARALLELISM asks of operators: their number of ``subtasks``. ``text`` is the hint as
    written, ``position`` its offset in the statement.
    """

    subtasks: int
    text: str
    position: int


@dataclass(frozen=True)
class InputFacts:
    """The facts of an input that a requirement may depend on: whether it never retracts, and
    its upsert key.
    """

    insert_only: bool
    upsert_key: tuple[int, ...] | None
