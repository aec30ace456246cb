"""Edge kinds: how rows travel from the tasks of one operator to the tasks of the next, and what an input
may ask for.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.catalog.frozen_dataclass import dataclass


@dataclass(frozen=True)
class Edge:
    """Base of edge kinds; an edge is a value with its own sign."""

    @property
    def sign(self) -> str:
        """The sign EXPLAIN prints."""
        return "?"

    @property
    def overtakable(self) -> bool:
        """Whether a barrier may overtake its rows, which are then kept with the checkpoint and must find
        their subtask at any parallelism.

        Not so where a row's place is known by its subtask alone (forward: whose key it has is decided further
        up), or where each subtask has come another way through the same rows (broadcast).
        """
        return False


@dataclass(frozen=True)
class Forward(Edge):
    """Subtask i feeds subtask i; the only edge operators may be chained over."""

    @property
    def sign(self) -> str:
        return "→ forward"


@dataclass(frozen=True)
class Partition(Edge):
    """Rows go to the subtask that owns the key group of their key columns; no keys means everything to
    subtask 0.
    """

    keys: tuple[int, ...]

    @property
    def sign(self) -> str:
        return (
            f"⤨ partition({', '.join(f'${key}' for key in self.keys)})"
            if self.keys
            else "⤨ partition(single)"
        )

    @property
    def overtakable(self) -> bool:
        return True


@dataclass(frozen=True)
class Shuffle(Edge):
    """Batches go round robin over the subtasks, to rebalance after a change of parallelism."""

    @property
    def sign(self) -> str:
        return "⤨ shuffle"

    @property
    def overtakable(self) -> bool:
        return True


@dataclass(frozen=True)
class Broadcast(Edge):
    """Every subtask gets every row."""

    @property
    def sign(self) -> str:
        return "⇶ broadcast"


@dataclass(frozen=True)
class Requirement:
    """What an operator asks of one input: ``any``, ``keys`` (rows with equal keys meet), ``all`` (all rows
    everywhere) or ``single``.
    """

    kind: str
    keys: tuple[int, ...] = ()


ANY = Requirement("any")
ALL = Requirement("all")
SINGLE = Requirement("single")


def by_keys(keys: tuple[int, ...]) -> Requirement:
    """Return the requirement that rows with equal values in these columns meet; no columns means one task."""
    return Requirement("keys", keys) if keys else SINGLE


Partitioning = frozenset[tuple[int, ...]]
"""Ordered key lists; rows went to the owner of the hash of each of them (several, when a join made columns
equal).
"""

UNKNOWN: Partitioning = frozenset()


def move_keys(known: Partitioning, places: Mapping[int, int]) -> Partitioning:
    """Return the key lists all of whose columns a node still has, given where these are now."""
    return frozenset(tuple(places[key] for key in keys) for keys in known if places.keys() >= set(keys))


@dataclass(frozen=True)
class InputFacts:
    """What a node's requirement may depend on: whether the rows of an input are never retracted, and the
    columns that identify one.
    """

    insert_only: bool
    upsert_key: tuple[int, ...] | None
