"""The socket source: reads lines of JSON from a TCP server."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.connectors.socket import ON_RESTORE
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.blocking_reader import Pump
from penstock.engine.formats.decoded_batch import BadRecord, Decoded
from penstock.engine.formats.json_lines import JsonParser
from penstock.engine.formats.line_reader import separate
from penstock.engine.formats.record_blocks import Block, count_records

MAX_LINE_BYTES = 16 << 20
"""A longer line is refused: a sender without line ends would otherwise fill our memory."""
# bytes of one read
_RECEIVE_BYTES = 1 << 16
# Read ahead of the operator, 4 MiB at most; behind that the sender waits.
_BLOCKS_AHEAD = 64
_CONNECT_TIMEOUT_S = 10.0

Receive = Callable[[int], bytes]


class SocketSource:
    """One split, the address. A socket cannot be replayed: rows sent after a checkpoint are lost with the
    job. A job therefore resumes from a checkpoint only where ``socket.on-restore`` is ``continue``.
    """

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._host = str(option(request.table, "hostname"))
        self._port = int(str(option(request.table, "port")))

    @property
    def _address(self) -> str:
        return f"{self._host}:{self._port}"

    def splits(self) -> list[str]:
        return [self._address]

    def recall(self, split_ids: list[str]) -> None:
        """Nothing: a split has no content that could have changed."""

    def open(self, split_id: str, position: Position | None) -> SocketReader:
        """Connect. DAT-4114 where lines after ``position`` are lost, DAT-4115 where no server listens."""
        if position is not None and option(self._request.table, ON_RESTORE) == "fail":
            raise PenstockError(
                "DAT-4114",
                f"lines of {self._address} after line {position['row']:,} are lost: "
                "a socket cannot be read again",
                hint=f"begin anew without the job's state, or set '{ON_RESTORE}' = 'continue' in the table",
                kind=Kind.EXTERNAL,
            )
        try:
            connection = socket.create_connection((self._host, self._port), _CONNECT_TIMEOUT_S)
        except OSError as error:
            raise PenstockError(
                "DAT-4115",
                f"cannot connect to {self._address}: {error.strerror or error}",
                hint="start the sender first, for example: nc -lk 9999",
                kind=Kind.EXTERNAL,
            ) from error
        # a sender may be silent for ever
        connection.settimeout(None)
        return SocketReader(connection, self._address, self._request, position)

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0


class SocketReader:
    """Reads the lines of one connection until the sender closes it. ``position``: the number of lines an
    earlier run has read; the count continues from it.
    """

    reports_arrivals = True
    """Its thread reports what it has received."""

    def __init__(
        self, connection: socket.socket, name: str, request: ScanRequest, position: Position | None
    ) -> None:
        self._connection = connection
        self._name = name
        self._metrics = request.metrics
        self._skips = option(request.table, "on-error") == "skip"
        schema = request.table.source_schema
        self._parser = JsonParser(tuple(schema[index] for index in request.columns))
        self._blocks = Pump(_lines_of(connection, name), name, _BLOCKS_AHEAD, request.arrivals.notify)
        self._lines: int = (position or {}).get("row", 0)
        self._rows: pa.RecordBatch | None = None

    @property
    def ended(self) -> bool:
        return self._rows is None and self._blocks.ended

    def poll(self, max_rows: int) -> pa.RecordBatch | None:
        rows = self._rows if self._rows is not None else self._decode()
        if rows is None:
            return None
        self._rows = rows.slice(max_rows) if rows.num_rows > max_rows else None
        return rows.slice(0, max_rows)

    def position(self) -> Position:
        """Return the number of lines read. Buffered rows count as read, because the sender cannot repeat
        them.
        """
        return {"row": self._lines}

    def close(self) -> None:
        """End the connection, and so a read that blocks. The thread that reads closes it: its number would
        else be free for another file while that thread is in ``recv``.
        """
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._blocks.close()

    def _decode(self) -> pa.RecordBatch | None:
        blocks = self._blocks.take(_BLOCKS_AHEAD)
        if not blocks:
            return None
        data = b"".join(blocks)
        rows = self._parser.parse(data)
        # a bad line in the block: parse its lines apart
        if rows is None or rows.num_rows != count_records(data, None):
            decoded = separate(Block(data, 0), self._lines, None, self._parser.parse, self._parser.explain)
            self._reject(decoded)
            rows = decoded.rows
        # blank lines count, so that an error names the sender's line
        self._lines += count_records(data, None)
        return rows

    def _reject(self, decoded: Decoded) -> None:
        if decoded.bad and not self._skips:
            raise self._failure(min(decoded.bad, key=lambda record: record.ordinal))
        self._metrics.count("bad_records", len(decoded.bad))

    def _failure(self, record: BadRecord) -> PenstockError:
        column = f" column {record.column}:" if record.column else ""
        return PenstockError(
            "DAT-4201",
            f"{self._name}, line {record.ordinal + 1}:{column} {record.error}",
            detail=f"record: {record.shown}",
            hint="mend the sender, or create the table with 'on-error' = 'skip'",
            kind=Kind.EXTERNAL,
            sqlstate="22000",
        )


def _lines_of(connection: socket.socket, name: str) -> Iterator[bytes]:
    """Yield a connection's lines, and close it at their end."""
    with connection:
        yield from whole_lines(connection.recv, name)


def whole_lines(receive: Receive, name: str) -> Iterator[bytes]:
    """Yield received bytes in blocks of whole lines; the last line may lack a line end. Raises DAT-4116 for a
    line of more than ``MAX_LINE_BYTES``.
    """
    # the start of a line whose end has not been received
    begun: list[bytes] = []
    size = 0
    while data := receive(_RECEIVE_BYTES):
        end = data.rfind(b"\n") + 1
        if end:
            yield b"".join((*begun, data[:end]))
            begun, size = [], 0
        begun.append(data[end:])
        size += len(data) - end
        if size > MAX_LINE_BYTES:
            raise PenstockError(
                "DAT-4116",
                f"{name} sent a line of more than {MAX_LINE_BYTES >> 20} MiB",
                hint="end each JSON object with a line end",
                kind=Kind.EXTERNAL,
            )
    if size:
        yield b"".join(begun)
