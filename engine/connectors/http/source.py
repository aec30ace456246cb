"""The http source: one split, the address, whose records a thread receives and a reader decodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.http import EVENTS, ON_RESTORE, WEBSOCKET
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.secrets import redact_url
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.blocking_reader import Pump
from penstock.engine.connectors.http.receiver import HttpReceiver, Received
from penstock.engine.connectors.messages.message_reader import KeyColumns, MessageBatch, MessageReader

# events or messages read ahead of the operator; an answer to a request is one
_AHEAD = 4_096


class HttpSource:
    """Reads one address.

    An answer is asked for again after a restore; if it is the same, its rows are passed over that were
    emitted. Events with ids are asked for by the last id. What a websocket has sent is lost with the job.
    """

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._url = request.table.options["url"]

    def splits(self) -> list[str]:
        return [self._url]

    def recall(self, split_ids: list[str]) -> None:
        """Nothing: what a server sends is checked when it is read."""

    def open(self, split_id: str, position: Position | None) -> HttpReader:
        """Begin to receive. DAT-5705 where what came after ``position`` is lost."""
        table = self._request.table
        mode = option(table, "mode")
        lost = mode == WEBSOCKET or (mode == EVENTS and not (position or {}).get("id"))
        if position is not None and lost and option(table, ON_RESTORE) == "fail":
            what = "a websocket cannot be read again" if mode == WEBSOCKET else "the events have no ids"
            raise PenstockError(
                "DAT-5705",
                f"messages of {redact_url(self._url)} after number {position['row']:,} may be lost: {what}",
                hint=f"begin without the job's state, or set '{ON_RESTORE}' = 'continue' in the table",
                kind=Kind.EXTERNAL,
            )
        return HttpReader(self._request, split_id, position or {})

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0


class HttpReader:
    """Decodes what a thread receives. ``position``: how many records came, the last event's id, and of an
    answer its checksum and how many of its records were emitted.
    """

    reports_arrivals = True
    """Its thread reports what it has received."""

    def __init__(self, request: ScanRequest, split_id: str, position: Position) -> None:
        table = request.table
        shown = redact_url(split_id)
        self._reader = MessageReader(request, shown, shown, "record", KeyColumns())
        self._receiver = HttpReceiver(table, request.metrics)
        self._row: int = position.get("row", 0)
        self._last_id: str = position.get("id", "")
        self._checksum: int | None = position.get("checksum")
        self._passed: int = position.get("passed", 0)
        self._waiting: deque[Received] = deque()
        self._pump = Pump(self._received(str(option(table, "mode"))), shown, _AHEAD, request.arrivals.notify)

    def _received(self, mode: str) -> Iterator[Received]:
        if mode == EVENTS:
            return self._receiver.events(self._last_id)
        return self._receiver.messages() if mode == WEBSOCKET else self._receiver.answers()

    @property
    def ended(self) -> bool:
        return not self._waiting and self._pump.ended

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        if not self._waiting:
            self._waiting.extend(self._pump.take(max_rows))
        if not self._waiting:
            return None
        taken = [self._next(max_rows)]
        count = len(taken[0].records)
        # events come one by one, and are decoded together
        while self._waiting and taken[0].checksum is None and count < max_rows:
            taken.append(self._waiting.popleft())
            count += len(taken[-1].records)
        return self._read(taken)

    def _next(self, max_rows: int) -> Received:
        received = self._waiting.popleft()
        if received.checksum is None:
            return received
        if received.checksum != self._checksum:
            self._checksum, self._passed = received.checksum, 0
        rest = received.records.slice(self._passed)
        if len(rest) > max_rows:
            # the rest of an answer is taken by the next call
            self._waiting.appendleft(received)
        part = rest.slice(0, max_rows)
        self._passed += len(part)
        return Received(part, checksum=received.checksum)

    def _read(self, taken: list[Received]) -> pa.RecordBatch | Batch:
        values = pa.concat_arrays([received.records for received in taken])
        numbers = np.arange(self._row, self._row + len(values))
        self._row += len(values)
        self._last_id = taken[-1].last_id or self._last_id
        lengths = [len(received.records) for received in taken]
        facts = {
            key: pa.array(np.repeat(np.array(of_each, object), lengths), pa.string())
            for key, of_each in (
                ("event", [received.kind for received in taken]),
                ("id", [received.last_id for received in taken]),
            )
            if key in self._reader.metadata
        }
        return self._reader.read(MessageBatch(values, numbers, None, facts))

    def position(self) -> Position:
        position: Position = {"row": self._row}
        if self._last_id:
            position["id"] = self._last_id
        if self._checksum is not None:
            position |= {"checksum": self._checksum, "passed": self._passed}
        return position

    def close(self) -> None:
        """Close the connection, which ends a read that blocks."""
        self._receiver.close()
        self._pump.close()
