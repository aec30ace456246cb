"""Writes the snapshots of one deployment's tasks. Each is a new segment file that references earlier files
for unchanged state.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import numbers_of
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.row_pieces import LIMITS, TooLarge, joined
from penstock.engine.checkpoint.snapshot_format import (
    BLOCK_BYTES,
    FileEntry,
    GroupEntry,
    ItemsPart,
    KeyedPart,
    WrittenTask,
    schema_fingerprint,
)
from penstock.engine.exchange.channel_state import RESERVED
from penstock.engine.state.state_snapshot import FrozenState, Snapshot
from penstock.engine.storage.storage import Storage
from penstock.engine.task.messages import TaskId
from penstock.engine.task.operator_chain import OperatorSnapshot

# Arrow buffers must begin at multiples of 8 bytes
ALIGNMENT = 8
# the end-of-stream marker of Arrow IPC
STREAM_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
PIECE_BYTES = 1 << 16
"""Neighbouring key groups of about this many bytes share a record batch: a reader of a range reads little
else.
"""


class _Segment:
    """A new file, created with its first bytes; it computes their checksums."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self.name = name
        self._sha = hashlib.sha256()
        self._crcs: list[int] = []
        self._block_left = 0
        self.length = 0
        self.begun = False

    # Created at the first bytes: a task without state leaves no file.
    def append(self, data: bytes | pa.Buffer) -> int:
        """Append bytes, padded to ALIGNMENT; return their offset. FileExistsError when the name exists."""
        if not self.begun:
            self._storage.create(self.name)
            self.begun = True
        offset = self.length
        padded = b"".join((data, bytes(-len(data) % ALIGNMENT)))
        self._storage.append(self.name, padded)
        self._sha.update(padded)
        self.length += len(padded)
        view = memoryview(padded)
        # a write may span blocks: each block has a CRC of its own
        while view:
            if not self._block_left:
                self._crcs.append(0)
                self._block_left = BLOCK_BYTES
            piece, view = view[: self._block_left], view[self._block_left :]
            # A running CRC-32: a block is filled by several writes.
            self._crcs[-1] = zlib.crc32(piece, self._crcs[-1])
            self._block_left -= len(piece)
        return offset

    def finish(self) -> list[FileEntry]:
        """Sync the file, if one was created, and return its expected length and checksums."""
        if not self.begun:
            return []
        failpoint("W8")
        self._storage.sync(self.name)
        return [FileEntry(self.name, self.length, tuple(self._crcs), self._sha.hexdigest())]


@dataclass(frozen=True)
class _WrittenBase:
    """A task's part of an earlier checkpoint, and the digests of the states it wrote in full."""

    written: WrittenTask
    digests: dict[tuple[str, str], bytes]


# A base without parts, for states that are written in full.
_NOTHING = _WrittenBase(WrittenTask(TaskId(0, 0), (), (), (), ()), {})


class SnapshotWriter:
    """Writes snapshots, and remembers the earlier parts that increments build on. One per deployment
    (``attempt``).
    """

    def __init__(self, storage: Storage, epoch: int, attempt: int) -> None:
        self._storage = storage
        self._epoch = epoch
        self.attempt = attempt
        self._written_bases: dict[TaskId, dict[int, _WrittenBase]] = {}

    def write(self, checkpoint_id: int, task: TaskId, operators: Sequence[OperatorSnapshot]) -> WrittenTask:
        """Write and sync a task's snapshot; without state no file is written. Raises OSError, after trying to
        remove the file.
        """
        # Epoch, attempt, checkpoint and task: no name is used twice, so no durable file is rewritten.
        segment = _Segment(self._storage, f"seg-e{self._epoch}-a{self.attempt}-c{checkpoint_id}-t{task}")
        try:
            written_base = self._write(segment, task, operators)
        except OSError:
            if segment.begun:  # else the name exists: not ours to delete
                # report the first failure; the file is garbage in any case
                with contextlib.suppress(OSError):
                    self._storage.delete(segment.name)
            raise
        # forget parts older than the oldest base an increment may still build on
        bases = [
            state.base
            for o in operators
            for state in o.keyed.values()
            if isinstance(state, FrozenState) and state.base is not None
        ]
        mine = self._written_bases.get(task, {})
        self._written_bases[task] = {
            number: earlier for number, earlier in mine.items() if number >= min(bases, default=-1)
        } | {checkpoint_id: written_base}
        return written_base.written

    def _write(self, segment: _Segment, task: TaskId, operators: Sequence[OperatorSnapshot]) -> _WrittenBase:
        keyed: list[KeyedPart] = []
        items: list[ItemsPart] = []
        digests: dict[tuple[str, str], bytes] = {}
        files: dict[str, FileEntry] = {}
        for operator in operators:
            # Sorted, so that equal states make equal bytes.
            for name, state in sorted(operator.keyed.items()):
                base = self._base(task, state)
                increments, digest = _write_increments(segment, operator.operator_id, name, state, base)
                keyed += increments
                # Files of the base: which of them are still needed is decided at the end.
                files |= {file.name: file for file in base.written.files}
                if digest is not None:
                    digests[operator.operator_id, name] = digest
            failpoint("W7")
            items += [
                _write_items(segment, operator.operator_id, name, rows)
                for name, rows in sorted(operator.items.items())
            ]
        files |= {file.name: file for file in segment.finish()}
        # files of earlier checkpoints stay listed only while an increment in them is used
        needed = {part.file for part in keyed} | {item.file for item in items}
        ids = tuple(operator.operator_id for operator in operators)
        return _WrittenBase(
            WrittenTask(task, ids, tuple(files[name] for name in sorted(needed)), tuple(keyed), tuple(items)),
            # Digests only of states that do not track changes: they are compared with what comes next.
            digests,
        )

    def _base(self, task: TaskId, state: Snapshot) -> _WrittenBase:
        base = state.base if isinstance(state, FrozenState) else None
        return _NOTHING if base is None else self._written_bases[task][base]


def _write_increments(
    segment: _Segment, operator_id: str, name: str, state: Snapshot, base: _WrittenBase
) -> tuple[list[KeyedPart], bytes | None]:
    """Write the new part of a state. Return all its increments, and its digest if changes are not tracked."""
    # Of a full snapshot there are none: its base is _NOTHING.
    earlier = list(base.written.increments(operator_id, name))
    if isinstance(state, FrozenState) and state.changed is not None:
        # nothing changed since the base: reference the earlier increments only
        if not state.changed.size:
            return earlier, None
        increment = _write_keyed(segment, operator_id, name, state.pieces(), state.changed)
        return [*earlier, increment], None

    def pieces() -> Iterator[pa.Table]:
        return state.pieces() if isinstance(state, FrozenState) else iter((state,))

    # a state without change tracking: equal bytes need not be written again
    compared = hashlib.sha256() if isinstance(state, FrozenState) and not state.tracked else None
    if earlier and base.digests.get((operator_id, name)) == (
        digest := _digest(pieces(), f"{operator_id}.{name}")
    ):
        return earlier, digest
    increment = _write_keyed(segment, operator_id, name, pieces(), None, compared)
    return [increment], compared.digest() if compared else None


@dataclass(frozen=True)
class _Message:
    """A record batch in bytes, with its first and last key group and its rows."""

    first: int
    last: int
    rows: int
    data: pa.Buffer


def _encoded(pieces: Iterator[pa.Table], name: str) -> tuple[pa.Schema, Iterator[_Message]]:
    """Return the schema of a state, and its record batches, each encoded on demand."""
    pieces = _fitting(pieces, name)
    piece = next(pieces)

    def messages() -> Iterator[_Message]:
        # A piece at a time: of a large state only one is in memory.
        for table in itertools.chain((piece,), pieces):
            for batch in joined(table.to_batches(), LIMITS.chunk_bytes):
                for first, last, rows in _by_groups(batch, name):
                    yield _Message(first, last, rows.num_rows, rows.serialize())

    return piece.schema.remove_metadata(), messages()


def _fitting(pieces: Iterator[pa.Table], name: str) -> Iterator[pa.Table]:
    """Yield the pieces of a state. RUN-2023 names it where the values of one key fit no record batch."""
    try:
        yield from pieces
    except TooLarge as error:
        raise PenstockError(
            "RUN-2023",
            f"the values of one key are too large for a checkpoint: {error.message}",
            detail=f"state {name}",
            hint="let one key have fewer, or shorter, values: of a DISTINCT, a list, or a MIN or MAX over "
            "rows that change",
            sqlstate="54000",
        ) from error


def _digest(pieces: Iterator[pa.Table], name: str) -> bytes:
    """Return the digest of a state's bytes."""
    # The same bytes that would be written, without writing them.
    schema, messages = _encoded(pieces, name)
    sha = hashlib.sha256(schema.serialize())
    for message in messages:
        sha.update(message.data)
    return sha.digest()


def _write_keyed(
    segment: _Segment,
    operator_id: str,
    name: str,
    pieces: Iterator[pa.Table],
    changed: np.ndarray | None,
    compared: hashlib._Hash | None = None,
) -> KeyedPart:
    """Write an increment piece by piece and return it. ``compared`` is updated by its bytes; a second digest
    of a large state would cost as much as writing it.
    """
    schema, messages = _encoded(pieces, f"{operator_id}.{name}")
    encoded = schema.serialize()
    if compared is not None:
        compared.update(encoded)
    offset = segment.append(encoded)
    # With its padding.
    schema_length = segment.length - offset
    groups = []
    # The offset of each record batch, so that a reader finds a key group without the others.
    for message in messages:
        if compared is not None:
            compared.update(message.data)
        start = segment.append(message.data)
        groups.append(GroupEntry(message.first, start, segment.length - start, message.rows, message.last))
        if len(groups) == 1 and name.startswith(RESERVED):
            failpoint("W11")
    # With it the part is a complete IPC stream that any Arrow reader reads.
    segment.append(STREAM_END)
    superseded = None
    if changed is not None:
        data = changed.astype("<u4").tobytes()
        superseded = (segment.append(data), len(data))
    return KeyedPart(
        operator_id,
        name,
        offset,
        schema_length,
        schema_fingerprint(schema),
        tuple(groups),
        segment.name,
        superseded,
    )


def _write_items(
    segment: _Segment, operator_id: str, name: str, items: Sequence[dict[str, Any]]
) -> ItemsPart:
    # No blanks and sorted keys: equal items are equal bytes.
    data = json.dumps(list(items), sort_keys=True, separators=(",", ":")).encode()
    return ItemsPart(operator_id, name, segment.append(data), len(data), len(items), segment.name)


def _by_groups(batch: pa.RecordBatch, name: str) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Split a batch between key groups into pieces of at least about PIECE_BYTES. Its first column is the
    ascending key group; INT-9015 if it is not.
    """
    if batch.num_rows == 0:
        return
    # uint16: differences would wrap.
    groups = numbers_of(batch.column(0)).astype(np.int64)
    steps = np.diff(groups)
    if batch.schema.field(0).name != "key_group" or (steps < 0).any():
        raise PenstockError(
            "INT-9015", f"state {name} is not ordered by key group", kind=Kind.INTERNAL, sqlstate="XX000"
        )
    # PIECE_BYTES in rows of average size
    most = max(1, PIECE_BYTES * batch.num_rows // max(1, batch.nbytes))
    start = 0
    # only at the end of a key group: a reader finds each group in one batch
    for end in [*(np.flatnonzero(steps) + 1).tolist(), batch.num_rows]:
        if end - start >= most or end == batch.num_rows:
            yield int(groups[start]), int(groups[end - 1]), batch.slice(start, end - start)
            start = end
