"""The bytes of a snapshot: segment files whose parts are addressed by key group. Every block has a checksum
that is checked before use.

A keyed part is an Arrow IPC stream. Its record batches have a few key groups each and are addressed by
offset. A list part is a JSON array. A keyed state is one part, or several increments. Among entries with the
same slot the last increment's is valid. If a later increment only lists the slot as changed, none is.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.row_pieces import LIMITS, cut, take_rows
from penstock.engine.exchange.channel_state import RESERVED
from penstock.engine.state.state_snapshot import SLOT
from penstock.engine.storage.storage import Storage
from penstock.engine.task.messages import TaskId

# a reader of few key groups verifies whole blocks: larger ones would cost it more bytes
BLOCK_BYTES = 1 << 20
MAX_MESSAGE_BYTES = 1 << 31


@dataclass(frozen=True)
class FileEntry:
    """A segment file with its expected length in bytes, CRC-32 of every block, and SHA-256 of the whole."""

    name: str
    length: int
    crc32: tuple[int, ...]
    sha256: str


@dataclass(frozen=True)
class GroupEntry:
    """The position in its file of the record batch with key groups ``group`` to ``last``."""

    group: int
    offset: int
    length: int
    rows: int
    last: int


@dataclass(frozen=True)
class KeyedPart:
    """One increment of one keyed state of one operator of one subtask: its file, and the offsets of its
    schema and its key groups.

    ``changed``: the position of the slots it supersedes (offset, bytes; uint32 each), None for a full
    snapshot.
    """

    operator_id: str
    state: str
    offset: int
    schema_length: int
    fingerprint: str
    groups: tuple[GroupEntry, ...]
    file: str
    changed: tuple[int, int] | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The state it belongs to: operator id and name."""
        return self.operator_id, self.state

    def among(self, start_group: int, end_group: int) -> tuple[GroupEntry, ...]:
        """Return its record batches with entries of groups ``start_group <= group < end_group``."""
        # A batch holds a range of groups, some of which may be outside of the range asked for.
        return tuple(entry for entry in self.groups if start_group <= entry.last and entry.group < end_group)

    @property
    def length(self) -> int:
        """Its bytes."""
        return (
            self.schema_length
            + sum(group.length for group in self.groups)
            + (self.changed[1] if self.changed else 0)
        )


@dataclass(frozen=True)
class ItemsPart:
    """One list state of one operator of one subtask."""

    operator_id: str
    state: str
    offset: int
    length: int
    count: int
    file: str


@dataclass(frozen=True)
class WrittenTask:
    """A task's part of a checkpoint: all files it needs, those of earlier checkpoints included, and the
    increments of each state, first to last.
    """

    task: TaskId
    operators: tuple[str, ...]
    files: tuple[FileEntry, ...]
    keyed: tuple[KeyedPart, ...]
    items: tuple[ItemsPart, ...]

    def increments(self, operator_id: str, state: str) -> tuple[KeyedPart, ...]:
        """Return the increments of a state, first to last."""
        return tuple(part for part in self.keyed if part.key == (operator_id, state))

    @property
    def channel_state_rows(self) -> int:
        """The number of rows of channel state in it."""
        return sum(
            group.rows for part in self.keyed if part.state.startswith(RESERVED) for group in part.groups
        )

    @property
    def channel_state_bytes(self) -> int:
        """The number of bytes of channel state in it."""
        return sum(part.length for part in self.keyed if part.state.startswith(RESERVED))

    @property
    def size_bytes(self) -> int:
        """The bytes of its files, those it shares with earlier checkpoints included."""
        return sum(file.length for file in self.files)

    def file_of(self, part: KeyedPart | ItemsPart) -> FileEntry:
        """Return the file of a part."""
        return next(file for file in self.files if file.name == part.file)


def schema_fingerprint(schema: pa.Schema) -> str:
    """Return the columns of a state, names and types in order. Two states with equal fingerprints have the
    same layout.
    """
    # SLOT is in the file, but not in the state's layout.
    return ", ".join(f"{field.name} {plain_type(field.type)}" for field in schema if field.name != SLOT)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return a type without the names that files use for list values and map entries, and without their
    nullability. Neither is part of our types.
    """
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, plain_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    return pa.list_(plain_type(kind.value_type)) if pa.types.is_list(kind) else kind


def read_state(
    storage: Storage, task: WrittenTask, increments: Sequence[KeyedPart], start_group: int, end_group: int
) -> pa.Table | None:
    """Return the entries of groups ``start_group <= group < end_group`` of a state, ``None`` for none. It
    reads no other entries of its files.
    """
    pieces = list(read_pieces(storage, task, increments, start_group, end_group))
    return pa.concat_tables(pieces) if pieces else None


def read_pieces(
    storage: Storage, task: WrittenTask, increments: Sequence[KeyedPart], start_group: int, end_group: int
) -> Iterator[pa.Table]:
    """Yield the result of ``read_state`` piece by piece; each is read on demand. Only a large key group may
    be split between pieces.
    """
    # The slots that each increment supersedes: uint32, little-endian.
    changed = [
        part.changed and np.frombuffer(read_checked(storage, task.file_of(part), *part.changed), "<u4")
        for part in increments
    ]
    for start, end in pairwise(_bounds(increments, start_group, end_group)):
        # a full snapshot alone: no entry is superseded, so batches need not be compared
        if len(increments) == 1:
            tables = _read_increment(storage, task, increments[0], start, end)
        else:
            tables = _superseded(storage, task, increments, changed, start, end)
        # A state has no column of slots: they only tell entries of increments apart.
        yield from (
            table.drop_columns([SLOT]) if SLOT in table.column_names else table
            for table in tables
            if table.num_rows
        )


def _bounds(increments: Sequence[KeyedPart], start_group: int, end_group: int) -> list[int]:
    """Split a range of key groups so that a piece reads about ``LIMITS.batch_bytes``; return the bounds."""
    # Where the record batches of all increments begin, and their bytes.
    wanted = sorted(
        (max(start_group, entry.group), entry.length)
        for part in increments
        for entry in part.among(start_group, end_group)
    )
    lengths = np.array([length for _, length in wanted], np.int64)
    # Cut by bytes over all increments: they are read together for a range of groups.
    firsts = {wanted[first][0] for first, _ in cut(lengths, lengths.size, LIMITS.batch_bytes)}
    return [start_group, *sorted(firsts - {start_group}), end_group]


def _superseded(
    storage: Storage,
    task: WrittenTask,
    increments: Sequence[KeyedPart],
    changed: Sequence[np.ndarray | None],
    start_group: int,
    end_group: int,
) -> Iterator[pa.Table]:
    """Yield the entries that no later increment supersedes, in the order of their slots within a group."""
    tables = []
    gone = np.zeros(0, np.uint32)
    # newest increment first: the slots it changed hide those of all older ones
    for part, slots in zip(reversed(increments), reversed(changed), strict=True):
        for table in _read_increment(storage, task, part, start_group, end_group):
            # What a later increment changed or removed is not valid here.
            tables.append(
                table.filter(array_of(~np.isin(numbers_of(table.column(SLOT)), gone))) if gone.size else table
            )
        # a full snapshot (None) is the oldest increment: it hides nothing
        gone = gone if slots is None else np.union1d(gone, slots)
    merged = pa.concat_tables(tables) if tables else None
    if merged is not None:
        groups, slots = (numbers_of(merged.column(column)) for column in (0, 1))
        # One table is in order already; several are sorted as a full snapshot would be.
        yield merged if len(tables) == 1 else take_rows(merged, np.lexsort((slots, groups)))


def _read_increment(
    storage: Storage, task: WrittenTask, part: KeyedPart, start_group: int, end_group: int
) -> Iterator[pa.Table]:
    file, wanted = task.file_of(part), part.among(start_group, end_group)
    if not wanted:
        # Nothing in this range: not even the schema is read.
        return
    schema = pa.ipc.read_schema(pa.py_buffer(read_checked(storage, file, part.offset, part.schema_length)))
    for start, end in cut(np.array([entry.length for entry in wanted]), len(wanted), LIMITS.batch_bytes):
        some = wanted[start:end]
        first = some[0].offset
        # The batches are neighbours in the file, so one read suffices.
        view = read_checked(storage, file, first, some[-1].offset + some[-1].length - first)
        pieces = [view[entry.offset - first : entry.offset - first + entry.length] for entry in some]
        table = pa.Table.from_batches(
            [pa.ipc.read_record_batch(pa.py_buffer(piece), schema) for piece in pieces], schema
        )
        # the outer batches may contain groups of other subtasks; groups are ascending
        low, high = np.searchsorted(numbers_of(table.column(0)), [start_group, end_group])
        yield table.slice(low, high - low)


def read_items(storage: Storage, file: FileEntry, part: ItemsPart) -> list[dict[str, Any]]:
    """Return the items of a list state."""
    items: list[dict[str, Any]] = json.loads(bytes(read_checked(storage, file, part.offset, part.length)))
    return items


def read_checked(storage: Storage, file: FileEntry, offset: int, length: int) -> memoryview:
    """Return bytes of a segment after checking every block that contains them; raises STA-3005 naming file,
    block and checksums.
    """
    first, last = offset // BLOCK_BYTES, max(offset + length - 1, offset) // BLOCK_BYTES
    # whole blocks, since checksums are per block
    begin = first * BLOCK_BYTES
    end = min((last + 1) * BLOCK_BYTES, file.length)
    if offset + length > file.length or last >= len(file.crc32):
        # Checked before the read: offsets come from a manifest.
        raise damaged(file.name, f"bytes {offset}..{offset + length} are wanted of {file.length}")
    data = storage.read(file.name, begin, end - begin)
    if len(data) != end - begin:
        raise damaged(file.name, f"{begin + len(data)} bytes instead of {file.length}")
    view = memoryview(data)
    for block in range(first, last + 1):
        crc = zlib.crc32(view[block * BLOCK_BYTES - begin : (block + 1) * BLOCK_BYTES - begin])
        if crc != file.crc32[block]:
            raise damaged(
                file.name,
                f"block at {block * BLOCK_BYTES}: crc32 {crc:08x}, expected {file.crc32[block]:08x}",
            )
    # the whole file was read anyway: verify the stronger digest too
    if begin == 0 and end == file.length and (sha := hashlib.sha256(data).hexdigest()) != file.sha256:
        raise damaged(file.name, f"sha256 {sha}, expected {file.sha256}")
    return view[offset - begin : offset - begin + length]


def check_file(storage: Storage, file: FileEntry) -> None:
    """Read a whole segment and check all of it; raises STA-3005 naming file, block and checksums."""
    whole = hashlib.sha256()
    for begin in range(0, file.length, BLOCK_BYTES):
        # Block by block: a file may be larger than memory.
        data = storage.read(file.name, begin, BLOCK_BYTES)
        block = begin // BLOCK_BYTES
        if block >= len(file.crc32) or len(data) != min(BLOCK_BYTES, file.length - begin):
            raise damaged(file.name, f"{begin + len(data)} bytes instead of {file.length}")
        if (crc := zlib.crc32(data)) != file.crc32[block]:
            raise damaged(file.name, f"block at {begin}: crc32 {crc:08x}, expected {file.crc32[block]:08x}")
        whole.update(data)
    if (sha := whole.hexdigest()) != file.sha256:
        raise damaged(file.name, f"sha256 {sha}, expected {file.sha256}")


def damaged(name: str, facts: str, hint: str | None = None) -> PenstockError:
    """Return the error for a damaged checkpoint file."""
    return PenstockError(
        "STA-3005",
        f"checkpoint file {name} is damaged",
        detail=facts,
        hint=hint,
        kind=Kind.EXTERNAL,
        sqlstate="58030",
    )
