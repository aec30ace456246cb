"""Incremental snapshots: whether a checkpoint stores all of a task's state, or what has changed since the
last completed one.
"""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.operator import KeyedState, TrackedState
from penstock.engine.state.state_snapshot import FrozenState, Snapshot

MAX_INCREMENTS = 16
"""A restore reads at most so many increments; the checkpoint after them is full again."""


@dataclass(frozen=True)
class _StateBase:
    """What a checkpoint stored of a state. ``snapshot``: the number of its snapshot. ``increments``: how many
    parts it has, a full one included. ``changed``: how many entries have changed since the full one.
    """

    snapshot: int
    increments: int
    changed: int


class IncrementalSnapshots:
    """Decides, for each state of a task, between a full and an incremental snapshot. An increment builds on a
    checkpoint that is known to be complete: what an aborted one stored is stored again.
    """

    def __init__(self, incremental: bool) -> None:
        self._incremental = incremental
        self._bases: dict[int, dict[tuple[str, str], _StateBase]] = {}
        self._base: int | None = None

    def freeze(self, operator_id: str, name: str, state: KeyedState, checkpoint_id: int) -> Snapshot:
        """Return the snapshot of a state as it is now. It costs time by what has changed, or a copy of what
        cannot be shared.
        """
        # no checkpoint will build on this one
        if not self._incremental:
            return state.snapshot()
        # the state does not know what has changed: a full snapshot each time
        if not isinstance(state, TrackedState):
            table = state.snapshot()
            self._bases.setdefault(checkpoint_id, {})
            return FrozenState(lambda: iter((table,)), self._base, tracked=False)
        # what the last complete checkpoint stored of this state
        base = self._bases.get(-1 if self._base is None else self._base, {}).get((operator_id, name))
        live = len(state)
        changed = None
        if base is not None and base.increments < MAX_INCREMENTS:
            # the increments together are at most half of the live entries
            changed = state.changes.since(base.snapshot, self._most_changed(live) - base.changed)
        # full: there is no base, or too much has changed
        if base is None or changed is None:
            frozen = FrozenState(state.freeze(None))
            base_of_next = _StateBase(state.changes.seal(), 1, 0)
        else:
            frozen = FrozenState(state.freeze(changed), self._base, changed)
            # an empty increment costs a restore nothing, so it is not counted
            grows = int(changed.size > 0)
            base_of_next = _StateBase(
                state.changes.seal(), base.increments + grows, base.changed + changed.size
            )
        self._bases.setdefault(checkpoint_id, {})[operator_id, name] = base_of_next
        return frozen

    def _most_changed(self, live: int) -> int:
        """Return how many entries may have changed since the full snapshot: half of those that are live."""
        return live // 2

    def complete(self, checkpoint_id: int) -> None:
        """A checkpoint is durable: later increments build on it."""
        if checkpoint_id in self._bases:
            self._base = checkpoint_id
            # bases of earlier checkpoints are needed no more; later ones may still be in the making
            self._bases = {
                number: base_of_next
                for number, base_of_next in self._bases.items()
                if number >= checkpoint_id
            }
