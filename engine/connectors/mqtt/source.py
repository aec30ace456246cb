"""The source of topics: a split a filter, each with a session of its own at the broker."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from uuid import uuid4

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.mqtt import CHECKPOINT, ON_RESTORE, topics_of
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.blocking_reader import Pump
from penstock.engine.connectors.messages.message_reader import KeyColumns, MessageBatch, MessageReader
from penstock.engine.connectors.mqtt.client import Arrived, MqttConnection

# messages of one read, and reads ahead of the operator
_MESSAGES = 4_096
_READS_AHEAD = 4
_PAUSE_S = 0.5
# all versions of the protocol allow names of 23 letters and digits
_NAME_DIGITS = 14


class MqttSource:
    """Lists the topics of one table.

    A broker has no positions. With ``'qos' = '1'`` it keeps what was not acknowledged, and a message is
    acknowledged once a checkpoint has its row: at least once. Otherwise what came after a checkpoint is lost
    with the job, which then resumes only where ``mqtt.on-restore`` is ``continue``.
    """

    def __init__(self, request: ScanRequest) -> None:
        table = request.table
        self._request = request
        self._topics = topics_of(dict(table.options))
        self._keeps = (
            request.resumes and option(table, "qos") == "1" and option(table, "acknowledge") == CHECKPOINT
        )
        self._first: dict[str, Position] = {}

    def splits(self) -> list[str]:
        return sorted(self._topics)

    def recall(self, split_ids: list[str]) -> None:
        """Nothing: the broker has the sessions."""

    def first_position(self, split_id: str) -> Position:
        """Return the name of a new session: two jobs never share one, and a checkpoint has it."""
        if split_id not in self._first:
            named = self._request.table.options.get("client-id")
            name = f"penstock-{uuid4().hex[:_NAME_DIGITS]}"
            if named is not None:
                several = len(self._topics) > 1
                name = f"{named}-{self.splits().index(split_id)}" if several else named
            self._first[split_id] = {"client": name, "row": 0}
        return self._first[split_id]

    def open(self, split_id: str, position: Position | None) -> MqttReader:
        """Connect and subscribe. DAT-6001 to DAT-6003."""
        position = position or self.first_position(split_id)
        reader = MqttReader(self._request, split_id, position, keeps=self._keeps)
        reader.start()
        return reader

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0


class MqttReader:
    """Reads one topic. ``position``: the name of the session, and how many messages were read. ``opened``
    says that it was there before: what it holds was not read.
    """

    reports_arrivals = True
    """Its thread reports what it has received."""

    def __init__(self, request: ScanRequest, topic: str, position: Position, *, keeps: bool) -> None:
        table = request.table
        self._topic, self._keeps, self._metrics = topic, keeps, request.metrics
        self._client_id: str = position["client"]
        self._row: int = position["row"]
        self._restored = bool(position.get("opened"))
        self._qos = int(str(option(table, "qos")))
        self._continues = option(table, ON_RESTORE) == "continue"
        self._arrived = request.arrivals.notify
        self._reader = MessageReader(request, topic, f"topic {topic}", "message", KeyColumns())
        self._connection = MqttConnection(table, self._client_id, keeps=keeps)
        self._stopped = threading.Event()
        self._waiting: deque[list[Arrived]] = deque()
        # messages that were returned, by their row, in its order; some checkpoint will have them
        self._unacknowledged: deque[tuple[int, Arrived]] = deque()
        self._pump: Pump | None = None

    def start(self) -> None:
        """Connect and begin to read ahead."""
        self._connect(after=self._restored)
        self._pump = Pump(self._read(), f"topic {self._topic}", _READS_AHEAD, self._arrived)

    def _connect(self, *, after: bool) -> None:
        """Connect; DAT-6003 where ``after`` says that messages were read before, and the broker has not kept
        those that followed.
        """
        lost = after and not self._keeps
        if lost and not self._continues:
            raise self._lost("messages with this 'qos' or 'acknowledge' are not sent again")
        self._connection.connect()
        lost = lost or (after and not self._connection.session_present)
        if lost and not self._continues:
            # the session that was just made would look like the one that is gone
            self._connection.forget_session()
            raise self._lost(f"it has no session {self._client_id} any more")
        if lost:
            self._metrics.count("sessions_lost")
        # a session that was read has its subscription; one of a job that ended before it asked has none
        if not (after and self._connection.session_present):
            self._connection.subscribe(self._topic, self._qos)

    def _lost(self, why: str) -> PenstockError:
        return PenstockError(
            "DAT-6003",
            f"topic {self._topic}: messages after number {self._row:,} may be lost: {why}",
            hint=f"begin without the job's state, or set '{ON_RESTORE}' = 'continue' in the table",
            kind=Kind.EXTERNAL,
        )

    @property
    def ended(self) -> bool:
        return False

    def _read(self) -> Iterator[list[Arrived]]:
        """Yield messages as they come, in a thread of their own. A broker that is away may come back."""
        try:
            while not self._stopped.is_set():
                try:
                    arrived = self._connection.receive(_MESSAGES)
                except PenstockError:
                    self._stopped.wait(_PAUSE_S)
                    self._reconnect()
                    continue
                if self._connection.redelivered:
                    self._metrics.count("messages_redelivered", self._connection.redelivered)
                    self._connection.redelivered = 0
                if arrived:
                    yield arrived
        finally:
            self._connection.close()

    def _reconnect(self) -> None:
        while not self._stopped.is_set():
            self._metrics.count("mqtt_reconnects")
            try:
                # a session that is not kept loses what is sent meanwhile: that is what qos 0 is
                self._connect(after=self._keeps)
            except PenstockError as error:
                if not error.retriable:
                    raise
                self._stopped.wait(_PAUSE_S)
            else:
                return

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        if not self._waiting and self._pump is not None:
            self._waiting.extend(self._pump.take(1))
        if not self._waiting:
            return None
        messages = self._waiting.popleft()
        if len(messages) > max_rows:
            self._waiting.appendleft(messages[max_rows:])
            messages = messages[:max_rows]
        # the client makes an object of each message; here they become columns
        values = pa.array([message.payload for message in messages], pa.binary())
        numbers = np.arange(self._row, self._row + len(messages))
        rows = self._reader.read(MessageBatch(values, numbers, None, self._facts(messages)))
        self._row += len(messages)
        if self._keeps:
            self._unacknowledged.extend(zip(numbers.tolist(), messages, strict=True))
        return rows

    def _facts(self, messages: list[Arrived]) -> dict[str, pa.Array]:
        columns = {
            "topic": lambda: pa.array([message.topic for message in messages], pa.string()),
            "qos": lambda: pa.array([message.qos for message in messages], pa.int32()),
            "retain": lambda: pa.array([message.retain for message in messages], pa.bool_()),
            "properties": lambda: pa.array(
                [message.properties for message in messages], pa.map_(pa.string(), pa.string())
            ),
        }
        return {key: make() for key, make in columns.items() if key in self._reader.metadata}

    def position(self) -> Position:
        return {"client": self._client_id, "row": self._row, "opened": True}

    def checkpoint_completed(self, position: Position) -> None:
        """Acknowledge what a durable checkpoint has: the broker may forget it."""
        while self._unacknowledged and self._unacknowledged[0][0] < position["row"]:
            self._connection.acknowledge(self._unacknowledged.popleft()[1])

    def close(self) -> None:
        self._stopped.set()
        # its thread disconnects, unless there is none
        if self._pump is not None:
            self._pump.close()
        else:
            self._connection.close()
