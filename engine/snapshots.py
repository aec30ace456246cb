"""The bytes of a snapshot: one segment file per task, its parts addressable by key group, every block with a checksum that is checked before use.

A keyed part is an Arrow IPC stream whose record batches each hold one key group and are found by offset; a list part is a JSON array.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from catalog.errors import Kind, PenstockError
from engine.chain import OperatorSnapshot
from engine.failpoints import failpoint
from engine.job_messages import TaskId
from engine.storage import Storage

BLOCK_BYTES = 1 << 20
ALIGNMENT = 8
STREAM_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
MAX_MESSAGE_BYTES = 1 << 31


@dataclass(frozen=True)
class FileEntry:
    """A segment file as it must be: length in bytes, CRC-32 of every block, SHA-256 of the whole."""

    name: str
    length: int
    crc32: tuple[int, ...]
    sha256: str


@dataclass(frozen=True)
class GroupEntry:
    """Where one record batch of one key group lies in its file."""

    group: int
    offset: int
    length: int
    rows: int


@dataclass(frozen=True)
class KeyedPart:
    """One keyed state of one operator of one subtask: where its schema and each key group lie."""

    operator_id: str
    state: str
    offset: int
    schema_length: int
    fingerprint: str
    groups: tuple[GroupEntry, ...]


@dataclass(frozen=True)
class ItemsPart:
    """One list state of one operator of one subtask."""

    operator_id: str
    state: str
    offset: int
    length: int
    count: int


@dataclass(frozen=True)
class WrittenTask:
    """What a checkpoint holds of one task; ``file`` is None when its operators have no state."""

    task: TaskId
    operators: tuple[str, ...]
    file: FileEntry | None
    keyed: tuple[KeyedPart, ...]
    items: tuple[ItemsPart, ...]


class _SegmentWriter:
    """Appends to a new file, counting and checking bytes on the way."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self._name = name
        self._sha = hashlib.sha256()
        self._crcs: list[int] = []
        self._room = 0
        self.length = 0
        storage.create(name)

    def append(self, data: bytes | pa.Buffer) -> int:
        """Append bytes, padded to the alignment; return where they begin."""
        offset = self.length
        padded = bytes(data) + bytes(-len(data) % ALIGNMENT)
        self._storage.append(self._name, padded)
        self._sha.update(padded)
        self.length += len(padded)
        view = memoryview(padded)
        while view:
            if not self._room:
                self._crcs.append(0)
                self._room = BLOCK_BYTES
            piece, view = view[: self._room], view[self._room :]
            self._crcs[-1] = zlib.crc32(piece, self._crcs[-1])
            self._room -= len(piece)
        return offset

    def finish(self) -> FileEntry:
        """Sync the file and return what must be found in it."""
        failpoint("W8")
        self._storage.sync(self._name)
        return FileEntry(self._name, self.length, tuple(self._crcs), self._sha.hexdigest())


def write_task(storage: Storage, name: str, task: TaskId, operators: Sequence[OperatorSnapshot]) -> WrittenTask:
    """Write a task's snapshot into a new file ``name`` and sync it; tasks without state write none. Raises OSError."""
    ids = tuple(operator.operator_id for operator in operators)
    if not any(operator.keyed or operator.items for operator in operators):
        return WrittenTask(task, ids, None, (), ())
    writer = _SegmentWriter(storage, name)
    keyed, items = [], []
    for operator in operators:
        keyed += [_write_keyed(writer, operator.operator_id, state, table) for state, table in sorted(operator.keyed.items())]
        failpoint("W7")
        items += [_write_items(writer, operator.operator_id, state, rows) for state, rows in sorted(operator.items.items())]
    return WrittenTask(task, ids, writer.finish(), tuple(keyed), tuple(items))


def _write_keyed(writer: _SegmentWriter, operator_id: str, state: str, table: pa.Table) -> KeyedPart:
    schema = table.schema.remove_metadata()
    offset = writer.append(schema.serialize())
    schema_length = writer.length - offset
    groups = []
    for batch in table.combine_chunks().to_batches():
        for group, piece in _by_group(batch, f"{operator_id}.{state}"):
            start = writer.append(piece.serialize())
            groups.append(GroupEntry(group, start, writer.length - start, piece.num_rows))
    writer.append(STREAM_END)
    return KeyedPart(operator_id, state, offset, schema_length, schema_fingerprint(schema), tuple(groups))


def _write_items(writer: _SegmentWriter, operator_id: str, state: str, items: Sequence[dict[str, Any]]) -> ItemsPart:
    data = json.dumps(list(items), sort_keys=True, separators=(",", ":")).encode()
    return ItemsPart(operator_id, state, writer.append(data), len(data), len(items))


def _by_group(batch: pa.RecordBatch, name: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Cut a batch whose first column is its ascending key group into one piece per group."""
    if batch.num_rows == 0:
        return
    groups = batch.column(0).to_numpy(zero_copy_only=False).astype(np.int64)
    steps = np.diff(groups)
    if batch.schema.field(0).name != "key_group" or (steps < 0).any():
        raise PenstockError("INT-9015", f"state {name} is not ordered by key group", kind=Kind.INTERNAL, sqlstate="XX000")
    starts = np.concatenate(([0], np.flatnonzero(steps) + 1))
    ends = np.append(starts[1:], batch.num_rows)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield int(groups[start]), batch.slice(start, end - start)


def schema_fingerprint(schema: pa.Schema) -> str:
    """Return what two states must agree on: the names and types of their columns, in order."""
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def read_keyed(storage: Storage, file: FileEntry, part: KeyedPart, start_group: int, end_group: int) -> pa.Table | None:
    """Return the entries of groups ``start_group <= group < end_group``, or ``None`` when there are none; reads no other part of the file."""
    wanted = [entry for entry in part.groups if start_group <= entry.group < end_group]
    if not wanted:
        return None
    schema = pa.ipc.read_schema(pa.py_buffer(read_checked(storage, file, part.offset, part.schema_length)))
    first = wanted[0].offset
    data = read_checked(storage, file, first, wanted[-1].offset + wanted[-1].length - first)
    view = memoryview(data)
    pieces = [view[entry.offset - first : entry.offset - first + entry.length] for entry in wanted]
    return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(piece), schema) for piece in pieces], schema)


def read_items(storage: Storage, file: FileEntry, part: ItemsPart) -> list[dict[str, Any]]:
    """Return the items of a list state."""
    items: list[dict[str, Any]] = json.loads(read_checked(storage, file, part.offset, part.length))
    return items


def read_checked(storage: Storage, file: FileEntry, offset: int, length: int) -> bytes:
    """Return bytes of a segment after checking every block they lie in; raises STA-3005 naming file, block and checksums."""
    first, last = offset // BLOCK_BYTES, max(offset + length - 1, offset) // BLOCK_BYTES
    begin = first * BLOCK_BYTES
    end = min((last + 1) * BLOCK_BYTES, file.length)
    if offset + length > file.length or last >= len(file.crc32):
        raise damaged(file.name, f"bytes {offset}..{offset + length} are wanted of {file.length}")
    data = storage.read(file.name, begin, end - begin)
    if len(data) != end - begin:
        raise damaged(file.name, f"{begin + len(data)} bytes instead of {file.length}")
    view = memoryview(data)
    for block in range(first, last + 1):
        found = zlib.crc32(view[block * BLOCK_BYTES - begin : (block + 1) * BLOCK_BYTES - begin])
        if found != file.crc32[block]:
            raise damaged(file.name, f"block at {block * BLOCK_BYTES}: crc32 {found:08x}, expected {file.crc32[block]:08x}")
    if begin == 0 and end == file.length and (found_sha := hashlib.sha256(data).hexdigest()) != file.sha256:
        raise damaged(file.name, f"sha256 {found_sha}, expected {file.sha256}")
    return data[offset - begin : offset - begin + length]


def check_file(storage: Storage, file: FileEntry) -> None:
    """Read a whole segment and check all of it; raises STA-3005 naming file, block and checksums."""
    whole = hashlib.sha256()
    for begin in range(0, file.length, BLOCK_BYTES):
        data = storage.read(file.name, begin, BLOCK_BYTES)
        block = begin // BLOCK_BYTES
        if block >= len(file.crc32) or len(data) != min(BLOCK_BYTES, file.length - begin):
            raise damaged(file.name, f"{begin + len(data)} bytes instead of {file.length}")
        if (found := zlib.crc32(data)) != file.crc32[block]:
            raise damaged(file.name, f"block at {begin}: crc32 {found:08x}, expected {file.crc32[block]:08x}")
        whole.update(data)
    if (found_sha := whole.hexdigest()) != file.sha256:
        raise damaged(file.name, f"sha256 {found_sha}, expected {file.sha256}")


def damaged(name: str, facts: str, hint: str | None = None) -> PenstockError:
    """Return the error for a checkpoint file that is not what was written."""
    return PenstockError("STA-3005", f"checkpoint file {name} is damaged", detail=facts, hint=hint, kind=Kind.EXTERNAL, sqlstate="58030")
