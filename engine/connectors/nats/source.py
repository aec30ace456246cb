"""The source of JetStream's streams: a split a subject, read by the sequences of the stream."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.nats import FROM_SEQUENCE, FROM_TIMESTAMP, LATEST, subjects_of
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.blocking_reader import Pump
from penstock.engine.connectors.messages.message_reader import KeyColumns, MessageBatch, MessageReader
from penstock.engine.connectors.nats.client import NatsServer, stream_info
from penstock.engine.connectors.nats.consumer import Fetched, StreamConsumer, create_consumer, nothing_up_to

EPOCH_SUBJECT = "penstock.epochs"
"""What subjects of our sinks' notes begin with; they are no rows."""

# fetched messages ahead of the operator: at most 4,096 messages each
_FETCHES_AHEAD = 4
_PAUSE_S = 0.5


class NatsSource:
    """Lists the subjects of one table, or the whole stream. A position is the sequence of the last message
    read, and when the stream was made: one that was made again has other messages.
    """

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._stream = request.table.options["stream"].strip()
        subjects = subjects_of(dict(request.table.options))
        self._splits = sorted(f"{self._stream}:{subject}" for subject in subjects) or [self._stream]
        self._first: dict[str, Position] = {}
        self._listed = False

    def splits(self) -> list[str]:
        """Return the splits; the first call of a new job also decides where each begins and ends."""
        if not self._listed:
            self._listed = True
            server = NatsServer(self._request.table, self._request.metrics)
            try:
                first = self._begin(server)
            finally:
                server.close()
            self._first = dict.fromkeys(self._splits, first)
        return self._splits

    def recall(self, split_ids: list[str]) -> None:
        """A stream keeps its sequences: nothing is decided again."""
        self._listed = True

    def first_position(self, split_id: str) -> Position:
        """Return where a split begins: behind the last message that is not read. One that a checkpoint has
        begins where that says.
        """
        return self._first.get(split_id, {})

    def _begin(self, server: NatsServer) -> Position:
        table = self._request.table
        info = stream_info(server, self._stream)
        self._check_retention(info)
        state = info["state"]
        mode = option(table, "scan.startup.mode")
        # who begins has missed nothing of what the server has deleted
        sequence = max(0, int(state["first_seq"]) - 1)
        if mode == LATEST:
            sequence = int(state["last_seq"])
        elif mode == FROM_SEQUENCE:
            sequence = max(sequence, int(str(option(table, "scan.startup.sequence"))) - 1)
        elif mode == FROM_TIMESTAMP:
            millis = int(str(option(table, "scan.startup.timestamp-millis")))
            sequence = self._before(server, datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=millis))
        position: Position = {"sequence": sequence, "created": info["created"]}
        if option(table, "scan.bounded.mode") == LATEST:
            position["end"] = int(state["last_seq"])
        return position

    def _before(self, server: NatsServer, begin: datetime) -> int:
        """Return the sequence before the first message as late as a time."""
        config = {
            "deliver_policy": "by_start_time",
            "opt_start_time": begin.isoformat(),
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
        }
        name, info = create_consumer(server, self._stream, config)
        server.ask(f"$JS.API.CONSUMER.DELETE.{self._stream}.{name}", {})
        return int(info["delivered"]["stream_seq"])

    def _check_retention(self, info: dict[str, Any]) -> None:
        retention = info["config"].get("retention", "limits")
        if retention != "limits":
            raise PenstockError(
                "DAT-5904",
                f"the stream {self._stream} has the retention '{retention}': messages are deleted once they "
                "are read, and a restored job could not read them again",
                hint="read a stream whose retention is 'limits', such as one that has this one as its source",
                kind=Kind.EXTERNAL,
                sqlstate="55000",
            )

    def open(self, split_id: str, position: Position | None) -> NatsReader:
        """Begin behind a message. DAT-5901 to DAT-5904."""
        if position is None:
            self.splits()
            position = self.first_position(split_id)
        server = NatsServer(self._request.table, self._request.metrics)
        # the subject is the split's: the table may name others by now
        subject = split_id.removeprefix(self._stream).removeprefix(":") or None
        reader = NatsReader(self._request, server, self._stream, subject, position)
        try:
            reader.start()
        except PenstockError:
            reader.close()
            raise
        return reader

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0


class NatsReader:
    """Reads one subject of a stream, or all. ``position``: the sequence of the last message, and ``end``, the
    last one that is read of a bounded table.
    """

    def __init__(
        self, request: ScanRequest, server: NatsServer, stream: str, subject: str | None, position: Position
    ) -> None:
        self._server, self._stream, self._subject = server, stream, subject
        self._metrics = request.metrics
        self._skips = option(request.table, "scan.on-trimmed") == "skip"
        self._last: int = position["sequence"]
        self._created: str = position["created"]
        self._end: int | None = position.get("end")
        where = f"stream {stream}" if subject is None else f"stream {stream}, subject {subject}"
        self._arrived = request.arrivals.notify
        self._reader = MessageReader(request, where, where, "sequence", KeyColumns())
        self._stopped = threading.Event()
        self._waiting: deque[Fetched] = deque()
        # what the thread that reads has fetched, and what there was behind it
        self._fetched = self._returned = self._pending = 0
        self._pump: Pump | None = None

    def start(self) -> None:
        """Begin to read ahead. DAT-5904 for a stream that was made again."""
        created = stream_info(self._server, self._stream)["created"]
        if created != self._created:
            if not self._skips:
                raise PenstockError(
                    "DAT-5904",
                    f"the stream {self._stream} was made again after sequence {self._last:,} was read",
                    hint="begin without the job's state, or set 'scan.on-trimmed' = 'skip' to read it from "
                    "its first message",
                    kind=Kind.EXTERNAL,
                    sqlstate="55000",
                )
            self._created, self._last = created, 0
        self._pump = Pump(self._read(self._last), f"stream {self._stream}", _FETCHES_AHEAD, self._arrived)

    @property
    def reports_arrivals(self) -> bool:
        # notes of sinks are no rows: there may be more behind them
        return not self._waiting and self._pump is not None and self._pump.is_empty

    @property
    def ended(self) -> bool:
        return not self._waiting and (self._pump is None or self._pump.ended)

    def _read(self, last: int) -> Iterator[Fetched]:
        """Yield messages as they come, in a thread of their own. A server that is away may come back."""
        while not self._stopped.is_set() and (self._end is None or last < self._end):
            try:
                for fetched in self._fetch_behind(last):
                    last = fetched.last
                    self._fetched += len(fetched)
                    self._pending = fetched.pending
                    yield fetched
                return
            except PenstockError as error:
                if self._stopped.is_set():
                    return
                if not error.retriable or self._end is not None:
                    raise
                self._stopped.wait(_PAUSE_S)

    def _fetch_behind(self, last: int) -> Iterator[Fetched]:
        consumer = StreamConsumer(self._server, self._stream, self._subject, last)
        lost = self._lost(last, None)
        self._report_lost(lost, last)
        last, pending = last + lost, consumer.pending
        while not self._stopped.is_set():
            if self._end is not None and (not pending or last >= self._end):
                return
            fetched = consumer.fetch()
            if fetched is None:
                reached = consumer.reached()
                if reached is None:
                    continue
                fetched = nothing_up_to(max(last, reached))
                if fetched.last == last:
                    pending = 0
                    continue
            # while nothing was behind, the server sent each message as it came: none was deleted before
            elif pending:
                self._report_lost(self._lost(last, fetched.sequences), last)
            pending, last = fetched.pending, fetched.last
            yield self._until_end(fetched)

    def _lost(self, last: int, sequences: np.ndarray | None) -> int:
        """Return how many messages behind ``last`` are gone that are not among ``sequences``."""
        if sequences is not None and int(sequences[-1]) - last == len(sequences):
            return 0
        first = int(stream_info(self._server, self._stream)["state"]["first_seq"])
        if sequences is None:
            return max(0, first - last - 1)
        # the gaps before the stream's first message: those behind it are messages of other subjects
        before = np.concatenate([[last], sequences[:-1]])
        return int(np.maximum(0, np.minimum(sequences, first) - before - 1).sum())

    def _report_lost(self, lost: int, last: int) -> None:
        if not lost:
            return
        self._metrics.count("messages_lost", lost)
        if not self._skips:
            most = "" if self._subject is None else "up to "
            raise PenstockError(
                "DAT-5903",
                f"stream {self._stream}: {most}{lost:,} messages behind sequence {last:,} are gone and were "
                "not read",
                hint="keep more messages in the stream, or set 'scan.on-trimmed' = 'skip' and lose them",
                kind=Kind.EXTERNAL,
                sqlstate="22000",
            )

    def _until_end(self, fetched: Fetched) -> Fetched:
        if self._end is None or fetched.last <= self._end:
            return fetched
        return fetched.slice(0, int(np.searchsorted(fetched.sequences, self._end, "right")))

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        if not self._waiting and self._pump is not None:
            self._waiting.extend(self._pump.take(1))
        if not self._waiting:
            return None
        fetched = self._waiting.popleft()
        if len(fetched) > max_rows:
            self._waiting.appendleft(fetched.slice(max_rows, len(fetched) - max_rows))
            fetched = fetched.slice(0, max_rows)
        # the rows first: a message that cannot be read fails with the position before it
        rows = self._rows_of(fetched)
        self._last = fetched.last
        self._returned += len(fetched)
        return rows

    def _rows_of(self, fetched: Fetched) -> pa.RecordBatch | Batch | None:
        if self._subject is None and len(fetched):
            notes = pc.starts_with(fetched.subjects, EPOCH_SUBJECT + ".")
            if pc.any(notes).as_py():
                fetched = fetched.filter(pc.invert(notes))
        # none, so that the split can become idle
        if not len(fetched):
            return None
        return self._reader.read(MessageBatch(fetched.values, fetched.sequences, None, self._facts(fetched)))

    def _facts(self, fetched: Fetched) -> dict[str, pa.Array]:
        wanted, facts = self._reader.metadata, dict[str, pa.Array]()
        if "subject" in wanted:
            facts["subject"] = fetched.subjects
        if "sequence" in wanted:
            facts["sequence"] = pa.array(fetched.sequences)
        if "timestamp" in wanted:
            facts["timestamp"] = pa.array(fetched.times).cast(pa.timestamp("us", "UTC"))
        if "headers" in wanted:
            pairs = [None if one is None else list(one.items()) for one in fetched.headers]
            facts["headers"] = pa.array(pairs, pa.map_(pa.string(), pa.string()))
        return facts

    def position(self) -> Position:
        position: Position = {"sequence": self._last, "created": self._created}
        return position if self._end is None else position | {"end": self._end}

    def lag(self) -> int | None:
        """Return how many messages were not returned yet, as the server counted with the last one."""
        return max(0, self._fetched - self._returned) + self._pending

    def close(self) -> None:
        self._stopped.set()
        if self._pump is not None:
            self._pump.close()
        self._server.close()
