"""Staged epochs: rows of a sink that wait for their checkpoint, and are part of it.

They are keyed state of the sink operator. So they are durable exactly when the checkpoint is, in whatever
storage it is. Every subtask reads all of them and keeps those of its own writers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.epoch_target import EpochWriter
from penstock.engine.api.operator import KeyedState
from penstock.engine.storage.spill_files import SpilledRows, SpillFiles

SPILL_BYTES = 64 << 20
"""Compressed rows kept in memory; more of them are kept in mapped temporary files."""

# compressed several times as fast as zstd, and rows of one epoch are written and read once
_COMPRESSION = pa.ipc.IpcWriteOptions(compression="lz4")
_PAYLOAD = pa.schema([pa.field("payload", pa.large_binary(), nullable=False)])
_SCHEMA = pa.schema(
    [
        pa.field("key_group", pa.uint16()),
        pa.field("owner", pa.string()),
        pa.field("operator_id", pa.string()),
        pa.field("subtask", pa.int32()),
        pa.field("epoch", pa.int64()),
        *_PAYLOAD,
    ]
)


OPEN_EPOCH = 0
"""The number of an epoch whose checkpoint has not begun; checkpoints are numbered from 1 on."""


@dataclass(frozen=True)
class StagedEpoch:
    """The rows of one writer between two checkpoints; ``epoch`` is the later one."""

    writer: EpochWriter
    epoch: int


@dataclass(frozen=True)
class _Payload:
    """A compressed batch as an array of one value; ``spilled`` keeps its mapped file."""

    value: pa.LargeBinaryArray
    spilled: SpilledRows | None = None


class StagedEpochs(KeyedState):
    """Batches by writer and epoch, compressed as Arrow IPC.

    ``group``: the key group they are stored under, any of the subtask's own. ``mine``: whether this subtask
    commits for a writer; what others commit is not restored here.
    """

    def __init__(
        self, group: int, mine: Callable[[EpochWriter], bool], spill: SpillFiles | None = None
    ) -> None:
        self._group = group
        self._mine = mine
        self._spill = spill or SpillFiles()
        self._payloads: dict[StagedEpoch, list[_Payload]] = {}
        self._bytes_in_memory = 0

    def add(self, staged: StagedEpoch, rows: pa.RecordBatch) -> None:
        """Stage a batch. STA-3051 when it must be spilled and cannot be written."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema, options=_COMPRESSION) as writer:
            writer.write_batch(rows)
        self._store(staged, _one_value(sink.getvalue()))

    def _store(self, staged: StagedEpoch, value: pa.LargeBinaryArray) -> None:
        payload = _Payload(value)
        if self._bytes_in_memory + value.nbytes > SPILL_BYTES:
            rows = self._spill.write([pa.RecordBatch.from_arrays([value], schema=_PAYLOAD)], _PAYLOAD)
            payload = _Payload(rows.batches[0].column(0), rows)
        else:
            self._bytes_in_memory += value.nbytes
        self._payloads.setdefault(staged, []).append(payload)

    def close_epoch(self, writer: EpochWriter, epoch: int) -> int:
        """Give the writer's open epoch its number; return how many batches it has."""
        payloads = self._payloads.pop(StagedEpoch(writer, OPEN_EPOCH), [])
        if payloads:
            self._payloads[StagedEpoch(writer, epoch)] = payloads
        return len(payloads)

    def epochs(self, up_to: int | None = None) -> list[StagedEpoch]:
        """Return what is staged up to an epoch (``None``: all) but the open ones, in the order of epochs."""
        closed = [staged for staged in self._payloads if staged.epoch != OPEN_EPOCH]
        chosen = [staged for staged in closed if up_to is None or staged.epoch <= up_to]
        return sorted(chosen, key=lambda staged: (staged.epoch, staged.writer.name))

    def rows(self, staged: StagedEpoch) -> Iterator[pa.RecordBatch]:
        """Yield the batches of an epoch in the order they were staged."""
        for payload in self._payloads.get(staged, ()):
            with pa.ipc.open_stream(payload.value[0].as_buffer()) as reader:
                yield from reader

    def drop(self, staged: StagedEpoch) -> None:
        """Forget an epoch that is committed."""
        payloads = self._payloads.pop(staged, [])
        self._bytes_in_memory -= sum(p.value.nbytes for p in payloads if p.spilled is None)

    def snapshot(self) -> pa.Table:
        pieces = [
            pa.RecordBatch.from_arrays(
                [
                    pa.array(np.array([self._group], np.uint16)),
                    pa.array([staged.writer.owner]),
                    pa.array([staged.writer.operator_id]),
                    pa.array([staged.writer.subtask], pa.int32()),
                    pa.array([staged.epoch], pa.int64()),
                    payload.value,
                ],
                schema=_SCHEMA,
            )
            for staged in self.epochs()
            for payload in self._payloads[staged]
        ]
        return pa.Table.from_batches(pieces, _SCHEMA)

    def restore(self, part: pa.Table) -> None:
        # a row a staged batch: few
        for piece in part.to_batches():
            names = zip(
                *(piece.column(name).to_pylist() for name in ("owner", "operator_id", "subtask", "epoch")),
                strict=True,
            )
            for row, (owner, operator_id, subtask, epoch) in enumerate(names):
                writer = EpochWriter(owner, operator_id, subtask)
                if self._mine(writer):
                    value = _one_value(piece.column("payload")[row].as_buffer())
                    self._store(StagedEpoch(writer, epoch), value)


def _one_value(value: pa.Buffer) -> pa.LargeBinaryArray:
    """Return an array of one value over its bytes, without a copy."""
    offsets = pa.py_buffer(np.array([0, value.size], np.int64))
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, offsets, value])
