"""The blackhole sink: counts rows and discards them."""

from __future__ import annotations

from penstock.engine.api.sink import DirectSink, SinkRequest
from penstock.engine.api.stream_elements import Batch


class BlackholeSink(DirectSink):
    """Discards rows and counts them."""

    def __init__(self, request: SinkRequest) -> None:
        self._metrics = request.metrics

    def write(self, batch: Batch) -> None:
        self._metrics.count("rows_forgotten", batch.num_rows)
