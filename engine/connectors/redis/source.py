"""The source of Redis streams: a split a stream, read by entry ids."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.redis import FROM_ID, LATEST
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.blocking_reader import Pump
from penstock.engine.connectors.messages.message_reader import KeyColumns, MessageBatch, MessageReader
from penstock.engine.connectors.redis.client import RedisServer

# entries of one read, and reads ahead of the operator
_ENTRIES = 4_096
_READS_AHEAD = 4
# a read that waits for entries returns after this time, so that a closed reader ends
_BLOCK_MS = 500
_PAUSE_S = 1.0
START = "0-0"


@dataclass(frozen=True)
class Entries:
    """Entries of a stream, in order: their ids, and their fields. ``ordinal``: how many entries were ever
    added before the first; ``None`` where the server does not count them (before Redis 7).
    """

    ids: list[bytes]
    fields: list[dict[bytes, bytes]]
    ordinal: int | None

    def cut(self, count: int) -> tuple[Entries, Entries]:
        """Return the first entries, and the others."""
        later = None if self.ordinal is None else self.ordinal + min(count, len(self.ids))
        return (
            Entries(self.ids[:count], self.fields[:count], self.ordinal),
            Entries(self.ids[count:], self.fields[count:], later),
        )


class RedisStreamSource:
    """Lists the streams of one table. A stream that is not there yet is empty."""

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._streams = sorted({name.strip() for name in request.table.options["stream"].split(";")} - {""})

    def splits(self) -> list[str]:
        return self._streams

    def recall(self, split_ids: list[str]) -> None:
        """Nothing: a stream keeps its ids."""

    def open(self, split_id: str, position: Position | None) -> RedisStreamReader:
        """Begin behind an entry. DAT-5801, DAT-5802."""
        server = RedisServer(self._request.table)
        with server.translated_errors():
            newest, added = _newest(server, split_id)
        table = self._request.table
        if position is None:
            mode = option(table, "scan.startup.mode")
            begin = str(option(table, "scan.startup.id")) if mode == FROM_ID else START
            position = {"id": begin, "row": 0}
            if mode == LATEST:
                position |= {"id": newest, "added": added}
            if option(table, "scan.bounded.mode") == LATEST:
                position["end"] = newest
        return RedisStreamReader(self._request, server, split_id, position)

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0


class RedisStreamReader:
    """Reads one stream. ``position``: the id of the last entry read, how many were read, and how many were
    ever added up to it. Of a bounded table also the id of its last entry.
    """

    reports_arrivals = True
    """Its thread reports what it has received."""

    def __init__(self, request: ScanRequest, server: RedisServer, stream: str, position: Position) -> None:
        self._server, self._stream = server, stream
        self._metrics = request.metrics
        self._field = str(option(request.table, "value.field")).encode()
        self._skips = option(request.table, "scan.on-trimmed") == "skip"
        self._id: str = position["id"]
        self._row: int = position["row"]
        self._added: int | None = position.get("added")
        self._end: str | None = position.get("end")
        self._reader = MessageReader(request, stream, f"stream {stream}", "entry", KeyColumns())
        self._stopped = threading.Event()
        self._waiting: deque[Entries] = deque()
        self._pump = Pump(
            self._read(self._id, self._added), f"stream {stream}", _READS_AHEAD, request.arrivals.notify
        )

    @property
    def ended(self) -> bool:
        return not self._waiting and self._pump.ended

    def _read(self, last: str, added: int | None) -> Iterator[Entries]:
        """Yield entries as they come, in a thread of their own, which closes the connection at the end.
        ``added``: how many were ever added up to the last one.
        """
        with closing(self._server):
            yield from self._entries(last, added)

    def _entries(self, last: str, added: int | None) -> Iterator[Entries]:
        while not self._stopped.is_set() and (self._end is None or _key(last) < _key(self._end)):
            try:
                with self._server.translated_errors():
                    entries, lost = self._next(last, added)
            except PenstockError as error:
                if self._stopped.is_set():
                    return
                # a server that is away may come back: the reader waits, and the metric says so
                if not error.retriable or self._end is not None:
                    raise
                self._metrics.count("redis_reconnects")
                self._stopped.wait(_PAUSE_S)
                continue
            if lost:
                self._report_lost(last, lost)
            if entries.ids:
                last = entries.ids[-1].decode()
                added = None if entries.ordinal is None else entries.ordinal + len(entries.ids)
                yield self._until_end(entries)
            elif self._end is not None:
                return

    def _next(self, last: str, added: int | None) -> tuple[Entries, int]:
        """Return the entries behind an id, and how many are gone that were not read."""
        client = self._server.client
        if self._end is None:
            # at most half of the time after which the server counts as gone
            block_ms = max(1, min(_BLOCK_MS, self._server.timeout_ms // 2))
            if not client.xread({self._stream: last}, count=1, block=block_ms):
                return Entries([], [], added), 0
        # in one step, so that the counts are those of the entries
        with client.pipeline(transaction=True) as both:
            both.xrange(self._stream, min=f"({last}", count=_ENTRIES).xinfo_stream(self._stream)
            found, info = both.execute()
        entries = [entry[0] for entry in found], [entry[1] for entry in found]
        if "entries-added" not in info:
            return Entries(*entries, None), 0
        removed = int(info["entries-added"]) - int(info["length"])
        first = info["first-entry"]
        # trimming begins at the first entry: while one is there that was read, none is lost
        if first is not None and _key(first[0].decode()) <= _key(last):
            return Entries(*entries, added), 0
        return Entries(*entries, removed), 0 if added is None else max(0, removed - added)

    def _report_lost(self, last: str, lost: int) -> None:
        self._metrics.count("entries_lost", lost)
        if not self._skips:
            raise PenstockError(
                "DAT-5803",
                f"stream {self._stream}: {lost:,} entries behind {last} are gone and were not read",
                hint="keep more entries in the stream, or set 'scan.on-trimmed' = 'skip' and lose them",
                kind=Kind.EXTERNAL,
                sqlstate="22000",
            )

    def _until_end(self, entries: Entries) -> Entries:
        if self._end is None:
            return entries
        end = _key(self._end)
        return entries.cut(sum(_key(entry.decode()) <= end for entry in entries.ids))[0]

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        if not self._waiting:
            self._waiting.extend(self._pump.take(1))
        if not self._waiting:
            return None
        entries = self._waiting.popleft()
        if len(entries.ids) > max_rows:
            entries, rest = entries.cut(max_rows)
            self._waiting.appendleft(rest)
        return self._rows_of(entries)

    def _rows_of(self, entries: Entries) -> pa.RecordBatch | Batch:
        # the client makes objects of each entry; here they become columns
        values = pa.array([fields.get(self._field) for fields in entries.fields], pa.binary())
        numbers = np.arange(self._row, self._row + len(values))
        rows = self._reader.read(MessageBatch(values, numbers, None, self._facts(entries)))
        self._row += len(values)
        if entries.ids:
            self._id = entries.ids[-1].decode()
            self._added = None if entries.ordinal is None else entries.ordinal + len(entries.ids)
        return rows

    def _facts(self, entries: Entries) -> dict[str, pa.Array]:
        wanted, facts = self._reader.metadata, dict[str, pa.Array]()
        if "stream" in wanted:
            facts["stream"] = pa.array([self._stream] * len(entries.ids), pa.string())
        if "id" in wanted:
            facts["id"] = pa.array(entries.ids, pa.binary()).cast(pa.string())
        if "timestamp" in wanted:
            millis = np.array([int(entry.partition(b"-")[0]) for entry in entries.ids], np.int64)
            facts["timestamp"] = (
                pa.array(millis).cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
            )
        if "fields" in wanted:
            pairs = [
                [
                    (name.decode("utf-8", "replace"), value.decode("utf-8", "replace"))
                    for name, value in one.items()
                ]
                for one in entries.fields
            ]
            facts["fields"] = pa.array(pairs, pa.map_(pa.string(), pa.string()))
        return facts

    def position(self) -> Position:
        position: Position = {"id": self._id, "row": self._row, "added": self._added}
        return position if self._end is None else position | {"end": self._end}

    def lag(self) -> int | None:
        """Return ``None``: a server does not count the entries behind an id."""
        return None

    def close(self) -> None:
        """End the reading; a read that blocks ends within half a second."""
        self._stopped.set()
        self._pump.close()


def _key(entry_id: str) -> tuple[int, int]:
    millis, _, number = entry_id.partition("-")
    return int(millis), int(number)


def _newest(server: RedisServer, stream: str) -> tuple[str, int | None]:
    """Return the id of the last entry there ever was, ``0-0`` for a stream that is not there, and how many
    were added.
    """
    if not server.client.exists(stream):
        return START, 0
    info: dict[str, Any] = server.client.xinfo_stream(stream)
    return str(info["last-generated-id"].decode()), info.get("entries-added")
