"""State of operators under test by way of checkpoints that tell changes, however many there are: what is
written in layers is read again.
"""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa

from penstock.engine.api.operator import Operator
from penstock.engine.checkpoint.snapshot_format import WrittenTask, read_state
from penstock.engine.checkpoint.snapshot_writer import SnapshotWriter
from penstock.engine.storage.memory import MemoryStorage
from penstock.engine.task.incremental_snapshots import IncrementalSnapshots
from penstock.engine.task.messages import TaskId
from penstock.engine.task.operator_chain import OperatorSnapshot

MAX_GROUPS = 1 << 15
_TASK = TaskId(0, 0)


class EveryChange(IncrementalSnapshots):
    """Tells changes however many there are."""

    def _most_changed(self, live: int) -> int:
        return sys.maxsize


class LayeredState:
    """The checkpoints of one operator; two of three are completed."""

    def __init__(self) -> None:
        self.storage, self.increments = MemoryStorage(), EveryChange(True)
        self._writer = SnapshotWriter(self.storage, 1, 1)
        self._number = 0

    def take(self, operator: Operator) -> tuple[dict[str, pa.Table], dict[str, list[dict[str, Any]]]]:
        """Return the keyed states as a restore reads them, those that are empty included, and the items of
        the others.
        """
        self._number += 1
        states = operator.keyed_states()
        frozen = {
            name: self.increments.freeze("op", name, state, self._number) for name, state in states.items()
        }
        written = self._writer.write(self._number, _TASK, [OperatorSnapshot("op", frozen)])
        if self._number % 3:
            self.increments.complete(self._number)
        empty = {name: state.snapshot().schema.empty_table() for name, state in states.items()}
        tables = {name: read_whole(self.storage, written, "op", name) or empty[name] for name in states}
        return tables, {name: state.snapshot_items() for name, state in operator.list_states().items()}


def read_whole(storage: MemoryStorage, written: WrittenTask, operator_id: str, name: str) -> pa.Table | None:
    """Return a state of a written task, all key groups of it."""
    return read_state(storage, written, written.increments(operator_id, name), 0, MAX_GROUPS)


def checkpoint(operator: Operator) -> tuple[dict[str, pa.Table], dict[str, list[dict[str, Any]]]]:
    """Take a checkpoint of an operator, above the earlier ones of it."""
    layered = operator.__dict__.setdefault("layered", LayeredState())
    return layered.take(operator)
