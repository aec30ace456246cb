"""A barrier on its way through a task: what the task's part of the checkpoint still lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.engine.api.stream_elements import Barrier, Element
from penstock.engine.exchange.channel_state import ChannelRows, EdgeTarget, kept
from penstock.engine.task.operator_chain import OperatorSnapshot


@dataclass
class BarrierPassage:
    """The snapshot of a task's operators at a barrier; rows in flight belong to it too.

    ``received``: those found before the task, ``None`` until all are known. ``unsent``: what the barrier
    overtook behind it, by where it was going.
    """

    barrier: Barrier
    operators: tuple[OperatorSnapshot, ...]
    received: Sequence[ChannelRows] | None
    unsent: list[tuple[EdgeTarget, list[Element]]]

    def snapshot(self, ways: Mapping[int, EdgeTarget], subtask: int) -> tuple[OperatorSnapshot, ...]:
        """Return the operators' state with the rows in flight: into the first, by port, and out of the
        last, as rows from this subtask.
        """
        first, *others = self.operators
        first = _with(
            first,
            {
                way.received: kept(way, [c for c in self.received or () if c.port == port])
                for port, way in ways.items()
            },
        )
        operators = [first, *others]
        for way, elements in self.unsent:
            rows = ChannelRows(way.port, subtask)
            rows.add(elements)
            operators[-1] = _with(operators[-1], {way.unsent: kept(way, [rows])})
        return tuple(operators)


def _with(operator: OperatorSnapshot, states: dict[str, pa.Table | None]) -> OperatorSnapshot:
    """Return a snapshot with further states, those that hold something."""
    found = {name: table for name, table in states.items() if table is not None}
    return replace(operator, keyed={**operator.keyed, **found}) if found else operator
