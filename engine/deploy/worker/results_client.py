"""A worker's side of results: rows go to the coordinator, and wait while the client there is behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process.result_channels import ResultChannel, ResultChannels
from penstock.engine.deploy.protocol.messages import ResultCredit, ResultEnded, ResultRows
from penstock.engine.exchange.channel import no_wakeup
from penstock.engine.network.element_codec import pieces_that_fit

BATCHES_AHEAD = 64


class SentResult(ResultChannel):
    """The face of a result channel; ``full`` while the client has not taken enough of what was sent."""

    def __init__(self, operator_id: str, send: Callable[[Any], None]) -> None:
        super().__init__()
        self._operator_id = operator_id
        self._send = send
        self._ahead = 0
        self._lock = threading.Lock()

    def offer(self, batch: Batch, taken: Callable[[], None] = no_wakeup) -> bool:
        for piece in pieces_that_fit(batch) if batch.num_rows else ():
            with self._lock:
                self._ahead += 1
            self._send(ResultRows(self._operator_id, piece))
        return True

    def credit(self, batches: int) -> None:
        """The client has taken batches."""
        with self._lock:
            self._ahead -= batches

    @property
    def full(self) -> bool:
        return self._ahead >= BATCHES_AHEAD

    def subtask_ended(self, subtask: int, parallelism: int) -> None:
        self._send(ResultEnded(self._operator_id, subtask, parallelism))


class SentResults(ResultChannels):
    """Finds the channels of a deployment's collect sinks; all subtasks of this worker share one."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        super().__init__()
        self._send = send
        self._sent: dict[str, SentResult] = {}
        self._made = threading.Lock()

    def channel(self, operator_id: str, capacity_batches: int = BATCHES_AHEAD) -> SentResult:
        with self._made:
            if operator_id not in self._sent:
                self._sent[operator_id] = SentResult(operator_id, self._send)
            return self._sent[operator_id]

    def credited(self, message: ResultCredit) -> None:
        """Take credit from the coordinator."""
        self.channel(message.operator_id).credit(message.batches)
