"""The collect sink: batches go to the client through its result channel."""

from __future__ import annotations

from penstock.engine.api.sink import DirectSink, SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process.result_channels import ResultChannels


class CollectSink(DirectSink):
    """Hands each batch over, and waits while the client is behind."""

    def __init__(self, request: SinkRequest) -> None:
        self._channel = request.services.get(ResultChannels).channel(request.operator_id)
        self._subtask, self._parallelism = request.subtask, request.parallelism

    def write(self, batch: Batch) -> None:
        self._channel.offer(batch)

    def ready(self) -> bool:
        return not self._channel.full

    def end(self) -> None:
        self._channel.subtask_ended(self._subtask, self._parallelism)
