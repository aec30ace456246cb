"""An operator alone: a context on a manual clock, and an output that remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Context, KeyGroups, Operator, PendingOutput, Services, SplitEvent
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics


@dataclass
class Remembered:
    """What an operator put out, in order."""

    events: list[Any] = field(default_factory=list)

    def collect(self, batch: Batch) -> None:
        self.events.append(batch)

    def watermark(self, time_us: int) -> None:
        self.events.append(time_us)

    def idle(self) -> None:
        self.events.append("idle")

    def split(self, event: SplitEvent) -> None:
        self.events.append(event)

    @property
    def batches(self) -> list[Batch]:
        return [event for event in self.events if isinstance(event, Batch)]

    @property
    def times(self) -> list[Any]:
        return [event for event in self.events if not isinstance(event, Batch)]

    def rows(self) -> list[dict[str, Any]]:
        return [row for batch in self.batches for row in batch.rows.to_pylist()]


def done(rest: PendingOutput | None) -> None:
    """Emit all an operator has to emit for what it was given."""
    for _ in rest or ():
        pass


def opened(
    operator: Operator, clock: ManualClock | None = None, subtask: int = 0, parallelism: int = 1
) -> Context:
    """Open an operator and return the context it was given."""
    clock = clock or ManualClock()
    groups = KeyGroups(0, 128, 128)
    context = Context("id", "name", subtask, parallelism, groups, clock, OperatorMetrics(), Services())
    operator.open(context)
    return context
