"""Notice of messages that come to queues of librdkafka while nobody reads them.

librdkafka writes a byte into a pipe with the first message of an empty queue. A thread of ours waits at the
other end: none of librdkafka's own threads ever runs Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from penstock.engine.api.threads import EngineThread
from penstock.engine.connectors.kafka.librdkafka import Librdkafka

# bytes of one read: so many notices are one
_NOTICES = 4096


class ArrivalEvents:
    """The pipe of one client, and its thread, which calls ``arrived``."""

    def __init__(self, library: Librdkafka, arrived: Callable[[], None]) -> None:
        self._library, self._arrived = library, arrived
        self._reading, self._writing = os.pipe()
        # a full pipe has notices enough
        os.set_blocking(self._writing, False)
        EngineThread(target=self._run, name="kafka arrivals").start()

    def watch(self, queue: int) -> None:
        """Report messages that come to a queue (``rd_kafka_queue_t``)."""
        self._library.rd_kafka_queue_io_event_enable(queue, self._writing, b"1", 1)

    def unwatch(self, queue: int) -> None:
        """Report no more of a queue. Call it before ``close``: the number may be another file's then."""
        self._library.rd_kafka_queue_io_event_enable(queue, -1, None, 0)

    def close(self) -> None:
        """End the thread, which closes its end of the pipe."""
        os.close(self._writing)

    def _run(self) -> None:
        # the thread alone closes what it reads
        with os.fdopen(self._reading, "rb", buffering=0) as notices:
            while notices.read(_NOTICES):
                self._arrived()
