"""Reads a table of PostgreSQL: its rows in the order of its key, then its changes, transaction by
transaction.

A lost connection is opened again where the reader is. The server keeps its log from the position of the last
durable checkpoint on.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from penstock.catalog.connectors.postgres_cdc import APPEND_ONLY
from penstock.catalog.connectors.registry import emits_upserts, option
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.database.postgres import csv_rows
from penstock.engine.connectors.postgres_cdc.background import Background
from penstock.engine.connectors.postgres_cdc.columns import key_text
from penstock.engine.connectors.postgres_cdc.key_ranges import KeyRanges
from penstock.engine.connectors.postgres_cdc.layouts import addition, late_column
from penstock.engine.connectors.postgres_cdc.link import CopyMessages
from penstock.engine.connectors.postgres_cdc.opening import (
    OpenConnections,
    Progress,
    open_at,
    stream_after_copy,
)
from penstock.engine.connectors.postgres_cdc.output_rows import OutputRows
from penstock.engine.connectors.postgres_cdc.pgoutput import EPOCH_US, ChangeDecoder, DecodedChanges
from penstock.engine.connectors.postgres_cdc.server_checks import publication_of
from penstock.engine.connectors.postgres_cdc.socket_arrivals import SocketArrivals
from penstock.engine.connectors.postgres_cdc.watching import SlotFigures, watch

NEWS = logging.getLogger("penstock.postgres")
"""Messages about a table that was altered on its server."""

RETRY_MS = 1000.0
WAIT_MS = 50.0
"""How long messages of an incomplete transaction may wait for others."""

SHORT_BYTES = 64 << 10
"""The next bytes of a shorter transaction are waited for: its end comes at once. Those of a longer one are
looked for now and then, since each look costs as much as some hundred rows.
"""

HELD_BYTES = 64 << 20
"""Of a larger transaction the rows are emitted in pieces: a checkpoint may fall between two of them."""


class PostgresCdcReader:
    """The one split of a table."""

    def __init__(self, request: ScanRequest, columns: tuple[int, ...], position: Position | None) -> None:
        self._request, self._table, self._columns = request, request.table, columns
        told = position or {}
        self._progress = Progress(
            KeyRanges(told.get("ranges", ())),
            bool(told.get("snapshot", option(self._table, "scan.startup.mode") == "initial")),
            told.get("key"),
            int(told.get("position", 0)),
            told.get("partial"),
            dict(told.get("columns", {})),
        )
        self._notices: set[str] = set()
        self._append_only = bool(option(self._table, APPEND_ONLY))
        self._output = OutputRows(request.table, request.columns, columns)
        self._messages = CopyMessages()
        self._opened: OpenConnections | None = None
        self._opening: Background[OpenConnections] | None = None
        self._watching: Background[SlotFigures] | None = None
        self._decoder: ChangeDecoder | None = None
        self._arrivals: SocketArrivals | None = None
        # whether the last poll found no message: the next one is reported
        self._emptied = False
        # rows of a transaction that is not complete
        self._held: list[Batch] = []
        self._confirmed = 0
        self._held_bytes = 0
        self._waits_until_ms = 0.0
        self._next_status_ms = 0.0
        self._retry_at_ms = 0.0
        self._failures = 0

    ended = False
    """The changes of a table never end."""

    @property
    def reports_arrivals(self) -> bool:
        return self._emptied

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        self._emptied = False
        try:
            return self._poll(max_rows)
        except PenstockError as error:
            self._lose(error)
            return None

    def position(self) -> Position:
        now = self._progress
        return {
            "position": now.position,
            "partial": now.partial,
            "snapshot": now.snapshot,
            "key": now.reached,
            "ranges": [list(item) for item in now.ranges.items],
            "columns": {key: list(names) for key, names in now.columns.items()},
        }

    def checkpoint_completed(self, position: Position) -> None:
        """Tell the server what it may discard."""
        self._confirmed = max(self._confirmed, int(position["position"]))
        # with the next poll: a lost connection is dealt with there
        self._next_status_ms = 0.0

    def close(self) -> None:
        for background in (self._opening, self._watching):
            if background is not None:
                background.drop()
        self._opening = None
        self._close_opened()

    def _close_opened(self) -> None:
        if self._arrivals is not None:
            self._arrivals.close()
            self._arrivals = None
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        if self._opened is None:
            self._open()
            return None
        if self._opened.copying:
            return self._copy(self._opened, max_rows)
        return self._stream(self._opened)

    def _open(self) -> None:
        """Begin to open the connections, or take them over once they are there."""
        now_ms = self._request.clock.monotonic_ms()
        if self._opening is None:
            if now_ms < self._retry_at_ms:
                return
            self._forget_open()
            act = partial(open_at, self._table, self._columns, self._progress, resumes=self._request.resumes)
            self._opening = Background(act, OpenConnections.close, f"postgres-cdc {self._table.name}")
        opened = self._opening.take()
        if opened is None:
            return
        self._opening, self._opened = None, opened
        self._messages = CopyMessages()
        self._compare_columns(opened)
        if not opened.copying:
            self._begin_stream(opened)

    def _forget_open(self) -> None:
        # rows that were not emitted are sent again
        self._held, self._held_bytes, self._decoder = [], 0, None

    def _compare_columns(self, opened: OpenConnections) -> None:
        """Report columns that there were none of when the table was last opened."""
        relation, before = opened.facts.relation, self._progress.columns
        read = [one.name for one in opened.facts.fields]
        if before:
            late = [name for name in read if name not in before["read"]]
            self._notify([late_column(relation, name) for name in late])
            added = [name for name in relation.columns if name not in [*before["there"], *read]]
            self._notify([addition(relation, name, relation.columns[name]) for name in added])
        self._progress.columns = {"there": list(relation.columns), "read": read}

    def _notify(self, notices: Sequence[str]) -> None:
        for notice in notices:
            # the server sends a layout again now and then
            if notice not in self._notices:
                self._notices.add(notice)
                self._request.metrics.count("schema_changes")
                NEWS.warning("%s", notice)

    def _begin_stream(self, opened: OpenConnections) -> None:
        progress = self._progress
        self._failures = 0
        self._arrivals = SocketArrivals(opened.stream.descriptor, self._request.arrivals.notify)
        self._decoder = ChangeDecoder(
            opened.facts.relation,
            opened.facts.fields,
            opened.facts.keys,
            progress.ranges,
            progress.position,
            progress.partial,
            upserts=emits_upserts(self._table),
            inserts_only=option(self._table, "scan.startup.mode") != "initial",
        )

    def _copy(self, opened: OpenConnections, max_rows: int) -> pa.RecordBatch | Batch | None:
        """Return rows of the table's snapshot."""
        messages = self._messages
        more = opened.sql.drain(messages.limited(max_rows))
        rows = None
        if messages.count:
            data = messages.data.data[: messages.used]
            table = csv_rows([data], opened.facts.fields, opened.facts.relation.name)
            last = table.num_rows - 1
            self._progress.reached = [key_text(table.column(index)[last]) for index in opened.facts.keys]
            self._failures = 0
            self._request.metrics.count("snapshot_rows", table.num_rows)
            rows = self._output.snapshot(table, self._progress.ranges.items[-1][1])
            messages.clear()
        if not more:
            self._progress.snapshot, self._progress.reached = False, None
            act = partial(stream_after_copy, self._table, opened)
            self._opened = None
            self._opening = Background(act, OpenConnections.close, f"postgres-cdc {self._table.name}")
        return rows

    def _stream(self, opened: OpenConnections) -> Batch | pa.RecordBatch | None:
        """Return the rows of complete transactions."""
        assert self._decoder is not None
        self._watch(opened)
        messages = self._messages
        if not opened.stream.drain(messages.limited(None)):
            raise PenstockError(
                "DAT-5402",
                "the PostgreSQL server has ended the stream of changes",
                hint="it is opened again; the server's log says why",
                kind=Kind.EXTERNAL,
                retriable=True,
                sqlstate="57P01",
            )
        now_ms = self._request.clock.monotonic_ms()
        if not messages.count:
            self._report(opened, answer=False)
            if self._arrivals is not None:
                self._arrivals.arm()
                self._emptied = True
            return None
        # rows of a large transaction are decoded together, as long as nobody waits for them
        if messages.incomplete and now_ms < self._waits_until_ms:
            if self._arrivals is not None and messages.used < SHORT_BYTES:
                self._arrivals.arm()
            return None
        self._waits_until_ms = now_ms + WAIT_MS
        changes = self._decoder.decode(messages)
        messages.clear()
        self._notify(changes.notices)
        counters = self._request.metrics.counters
        self._request.metrics.count("changes_received", len(changes.weights))
        if len(changes.times):
            # by the clocks of two machines
            age_us = self._request.clock.wall_ms() * 1000 - int(changes.times[-1])
            counters["commit_lag_ms"] = max(0, age_us // 1000)
        rows = self._release(changes)
        self._report(opened, answer=changes.answer)
        # empty: there was something, so there may be more
        return rows if rows is not None else self._output.nothing()

    def _release(self, changes: DecodedChanges) -> Batch | pa.RecordBatch | None:
        """Return the rows of transactions that are complete, and hold those of the open one."""
        decoder, progress = self._decoder, self._progress
        assert decoder is not None
        whole = self._output.changes(changes)
        released: list[Batch] = []
        if changes.complete:
            released, self._held, self._held_bytes = [*self._held, whole.slice(0, changes.whole)], [], 0
            whole = whole.slice(changes.whole, whole.num_rows - changes.whole)
            progress.partial = None
        if whole.num_rows:
            self._held.append(whole)
            self._held_bytes += whole.size_bytes
        if self._held_bytes > HELD_BYTES:
            released, self._held, self._held_bytes = [*released, *self._held], [], 0
            progress.partial = decoder.partial
            self._request.metrics.count("transactions_cut")
        progress.position = max(progress.position, decoder.safe)
        return self._output.together([batch for batch in released if batch.num_rows])

    def _report(self, opened: OpenConnections, *, answer: bool) -> None:
        """Tell the server how far we are: when it asks, after a checkpoint, and once an interval."""
        now_ms = self._request.clock.monotonic_ms()
        if not answer and now_ms < self._next_status_ms:
            return
        self._next_status_ms = now_ms + int(str(option(self._table, "heartbeat.interval")))
        received = self._decoder.safe if self._decoder is not None else 0
        # without checkpoints nothing is read again
        flushed = self._confirmed if self._request.resumes else self._progress.position
        clock_us = self._request.clock.wall_ms() * 1000 - EPOCH_US
        # the server answers a heartbeat with its position, also when our table is idle
        opened.stream.send(
            struct.pack(">cQQQqB", b"r", received, flushed, flushed, clock_us, 0 if answer else 1)
        )
        if self._watching is None and not answer:
            act = partial(watch, opened.sql, opened.slot, opened.facts.relation, publication_of(self._table))
            self._watching = Background(act, lambda _: None, f"postgres-cdc slot {opened.slot}")

    def _watch(self, opened: OpenConnections) -> None:
        """Take over what was learned of the slot."""
        watched = self._watching.take() if self._watching is not None else None
        if watched is None:
            return
        self._watching = None
        self._request.metrics.counters["slot_lag_bytes"] = watched.lag_bytes

    def _lose(self, error: PenstockError) -> None:
        """Close the connections and try again a second later. Raise what does not pass."""
        self._opening = None
        if self._watching is not None:
            self._watching.drop()
            self._watching = None
        self._close_opened()
        self._failures += 1
        most = int(str(option(self._table, "connect.max-retries")))
        # a slot of the connection's own is gone with it
        begun = not self._request.resumes and self._progress.position > 0
        if not error.retriable or self._failures > most or begun:
            raise error
        self._request.metrics.count("reconnects")
        self._retry_at_ms = self._request.clock.monotonic_ms() + RETRY_MS
