"""The functions Spark's tasks run to push rows to us and to pull rows of ours: one connection per task.

Pushing: a task sends Arrow frames while it has credits.

It sends :data:`HELLO` (the query's token, its partition, attempt and task). The response is :data:`GO`, or
:data:`THERE` when another attempt has pushed the partition already: then it only counts its rows. Else it
sends frames (:data:`HEADER`: kind, length), each an Arrow stream of one batch. A frame costs one credit, a
byte we send. At last it sends :data:`END` with the number of rows. It shuts down its side and reads on until
we close ours. A socket closed with unread credits would be reset, and the last rows lost.

Pulling: the hello has a segment's number in place of the partition's. The response is :data:`GO` and one
frame, the segment.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pyarrow as pa

# token, partition or segment, attempt of the task, task id
HELLO = struct.Struct(">32sqqq")
# kind, then bytes of the payload (rows) or number of rows (end)
HEADER = struct.Struct(">cq")
GO, THERE, CREDIT = b"G", b"T", b"C"
ROWS, END = b"R", b"E"
FRAME_BYTES = 4 << 20
TASK_SCHEMA = "partition int, pushed long"


def pushing_task(
    host: str, port: int, token: bytes
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function Spark's tasks run: each pushes its batches to a listener, then emits one row
    (partition, number of rows).

    It imports everything it needs inside: it runs in Spark's Python workers, which need not have penstock.
    """
    hello, header, frame_bytes = HELLO.format, HEADER.format, FRAME_BYTES
    go, there, rows_kind, end_kind = GO, THERE, ROWS, END

    def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """A batch in slices of about a frame's size."""
        step = max(1, batch.num_rows * frame_bytes // max(batch.nbytes, 1))
        return (batch.slice(start, step) for start in range(0, batch.num_rows, step))

    def push(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import socket
        import struct

        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        partition, pushed, credits = context.partitionId(), 0, 0
        try:
            wire = socket.create_connection((host, port), timeout=20)
        except OSError as error:
            raise ConnectionError(
                f"PENSTOCK_UNREACHABLE {host}:{port} from {socket.gethostname()}: {error}"
            ) from None
        with wire:
            # once connected a task waits as long as the reader is slow: that is the backpressure
            wire.settimeout(None)
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wire.sendall(
                struct.pack(hello, token, partition, context.attemptNumber(), context.taskAttemptId())
            )
            verdict = wire.recv(1)
            if verdict not in (go, there):
                raise ConnectionError("PENSTOCK_REFUSED nobody takes these rows any more")
            for batch in batches:
                # another attempt has pushed the partition: these rows are only counted, to compare
                for piece in pieces(batch) if verdict == go else ():
                    # one byte a credit; several may have arrived
                    while credits == 0:
                        received = wire.recv(64)
                        if not received:
                            raise ConnectionError("PENSTOCK_REFUSED nobody takes these rows any more")
                        credits += len(received)
                    schema, message = batch.schema.serialize(), piece.serialize()
                    # schema and batch are one Arrow stream; its end marker is not needed
                    wire.sendall(struct.pack(header, rows_kind, schema.size + message.size))
                    wire.sendall(schema)
                    wire.sendall(message)
                    credits -= 1
                pushed += batch.num_rows
            if verdict == go:
                wire.sendall(struct.pack(header, end_kind, pushed))
                wire.shutdown(socket.SHUT_WR)
                while wire.recv(64):
                    pass
        # also when another attempt has pushed the rows: this says how many there must be
        names = pa.schema([("partition", pa.int32()), ("pushed", pa.int64())])
        yield pa.RecordBatch.from_arrays(
            [pa.array([partition], pa.int32()), pa.array([pushed], pa.int64())], schema=names
        )

    return push


def pulling_task(
    host: str, port: int, token: bytes, step: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function Spark's tasks run: for each id of their input they fetch the segment ``id // step``
    and emit its rows.

    It imports everything it needs inside, as ``pushing_task`` does.
    """
    hello, header, go = HELLO.format, HEADER.format, GO

    def fetched(number: int) -> bytearray:
        import socket
        import struct

        from pyspark import TaskContext

        context = TaskContext.get()
        try:
            wire = socket.create_connection((host, port), timeout=20)
        except OSError as error:
            raise ConnectionError(
                f"PENSTOCK_UNREACHABLE {host}:{port} from {socket.gethostname()}: {error}"
            ) from None
        with wire, wire.makefile("rb") as incoming:
            wire.settimeout(None)
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            wire.sendall(struct.pack(hello, token, number, context.attemptNumber(), context.taskAttemptId()))
            if incoming.read(1) != go:
                raise ConnectionError("PENSTOCK_REFUSED nobody reads these rows any more")
            _, size = struct.unpack(header, incoming.read(struct.calcsize(header)))
            segment = bytearray(size)
            # the query was closed while its task fetched
            if incoming.readinto(segment) != size:
                raise ConnectionError("PENSTOCK_REFUSED the rows ended in the middle of a segment")
            return segment

    def pull(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from pa.ipc.open_stream(pa.py_buffer(fetched(number // step)))

    return pull
