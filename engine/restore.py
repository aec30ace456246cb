"""Restoring: which parts of a checkpoint belong to a subtask at today's parallelism."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from catalog.errors import Kind, PenstockError
from catalog.names import did_you_mean
from engine.chain import ChainedOperator, OperatorChain
from engine.frozen_state import WRITTEN
from engine.manifest import Manifest
from engine.operator import KeyedState
from engine.snapshots import KeyedPart, WrittenTask, read_items, read_state, schema_fingerprint
from engine.storage import Storage


class Restorer:
    """Gives the operators of a subtask their state back out of one checkpoint."""

    def __init__(self, storage: Storage, manifest: Manifest) -> None:
        self._storage = storage
        self._manifest = manifest
        self._known = {o.operator_id: o for o in manifest.operators}

    def restore(self, chain: OperatorChain) -> None:
        """Restore every operator of a chain by its id: keyed states by the subtask's key groups, list states with the items of all subtasks."""
        for chained in chain.operators:
            if chained.context.operator_id in self._known:
                former = self._known[chained.context.operator_id].former
                if former is not None:
                    chained.operator.succeeds(former)
                self._restore_keyed(chained)
                self._restore_items(chained)

    def _restore_keyed(self, chained: ChainedOperator) -> None:
        groups = chained.context.key_groups
        for name, state in chained.operator.keyed_states().items():
            found = self._tasks_with(chained, name)
            self._check_schema(chained, name, state, found)
            for task, layers in found:
                start, end = (0, groups.max_parallelism) if name in chained.operator.copied_states() else (groups.start, groups.end)
                table = read_state(self._storage, task, layers, start, end)
                if table is not None:
                    state.restore(table)

    def _restore_items(self, chained: ChainedOperator) -> None:
        for name, state in chained.operator.list_states().items():
            items: list[dict[str, Any]] = []
            for task in sorted(self._manifest.tasks, key=lambda t: t.task):
                for part in task.items:
                    if (part.operator_id, part.state) == (chained.context.operator_id, name):
                        items += read_items(self._storage, task.file_of(part), part)
            state.restore_items(items)

    def _tasks_with(self, chained: ChainedOperator, name: str) -> list[tuple[WrittenTask, tuple[KeyedPart, ...]]]:
        """Return the tasks that hold a keyed state, with its layers there."""
        operator_id = chained.context.operator_id
        tasks = sorted(self._manifest.tasks, key=lambda t: t.task)
        found = [(task, layers) for task in tasks if (layers := task.layers(operator_id, name))]
        states = {part.state for task in tasks for part in task.keyed if part.operator_id == operator_id}
        if states and not found:
            raise _foreign(chained, f"it has no state {name}", did_you_mean(name, sorted(states), others=True))
        return found

    def _check_schema(self, chained: ChainedOperator, name: str, state: KeyedState, found: list[tuple[WrittenTask, tuple[KeyedPart, ...]]]) -> None:
        fresh: pa.Schema = state.snapshot().schema
        for part in (part for _, layers in found for part in layers):
            if len(fresh) > 1 and _lasting(part.fingerprint) != _lasting(schema_fingerprint(fresh)):
                raise _foreign(chained, f"state {name} has columns ({part.fingerprint}), wanted are ({schema_fingerprint(fresh)})", None)


def _lasting(fingerprint: str) -> str:
    """The columns of a state but for the time entries were written, which it has while they live for a time only."""
    return fingerprint.removesuffix(f", {WRITTEN} int64")


def _foreign(chained: ChainedOperator, facts: str, hint: str | None) -> PenstockError:
    message = f"the state of operator {chained.context.name} does not fit"
    return PenstockError("STA-3009", message, detail=facts, hint=hint, kind=Kind.EXTERNAL, sqlstate="55000", operator=chained.context.name)
