"""The target of rows that are added to a Redis stream. A hash beside the stream has each writer's epoch."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from penstock.catalog.connectors.message_formats import emits_message_changes, value_format
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.epoch_target import EpochWriter, StagedForm
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.sink import SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import without_op_column
from penstock.engine.connectors.redis.client import RedisServer
from penstock.engine.formats.messages.registry import serializer

# values of one script: the server runs nothing else meanwhile, about 10 ms
_AT_ONCE = 5_000

# A script runs whole or not at all, and nothing runs beside it. It adds one part of an epoch and notes the
# part. KEYS: stream, hash; ARGV: attempt, epoch, part, whether it is the last, length, field, values.
_COMMIT = """
local noted = redis.call('HMGET', KEYS[2], 'attempt', 'epoch', 'open', 'part')
if (noted[1] or '0') ~= ARGV[1] then return -1 end
local epoch, part = tonumber(ARGV[2]), tonumber(ARGV[3])
if tonumber(noted[2] or 0) >= epoch then return 0 end
if tonumber(noted[3] or 0) == epoch and tonumber(noted[4]) >= part then return 0 end
for i = 7, #ARGV do
  if ARGV[5] == '' then
    redis.call('XADD', KEYS[1], '*', ARGV[6], ARGV[i])
  else
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[5], '*', ARGV[6], ARGV[i])
  end
end
redis.call('HSET', KEYS[2], 'open', epoch, 'part', part)
if ARGV[4] == '1' then redis.call('HSET', KEYS[2], 'epoch', epoch) end
return 1
"""


class RedisStreamTarget:
    """Adds the rows of an epoch by scripts, each of which notes what it has added.

    An epoch of more than 5,000 rows is added in parts: readers may see some before the others, each once.
    """

    def __init__(self, request: SinkRequest) -> None:
        assert request.table is not None, "a stream has a table"
        table = request.table
        self._changes = emits_message_changes(table.options)
        self.form = StagedForm.CHANGES if self._changes else StagedForm.INSERTS
        self._serializer = serializer(
            value_format(table.options), table.physical_fields, f"{table.options['stream']}-value"
        )
        self._names = [field.name for field in table.physical_fields]
        self._stream = table.options["stream"]
        self._field = str(option(table, "value.field"))
        length = option(table, "sink.max-length")
        self._length = "" if length is None else str(length)
        self._server = RedisServer(table)
        with self._server.translated_errors():
            self._commit = self._server.client.register_script(_COMMIT)
        self._attempts: dict[EpochWriter, int] = {}

    def _noted(self, writer: EpochWriter) -> str:
        # a part in braces decides the place in a cluster: the hash is where the stream is
        return f"penstock:{{{self._stream}}}:{writer.name}"

    def fence(self, writers: list[EpochWriter]) -> None:
        with self._server.translated_errors():
            for writer in writers:
                self._attempts[writer] = int(self._server.client.hincrby(self._noted(writer), "attempt", 1))

    def last_committed(self, writer: EpochWriter) -> int:
        with self._server.translated_errors():
            return int(self._server.client.hget(self._noted(writer), "epoch") or 0)

    def commit(self, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]) -> None:
        with self._server.translated_errors():
            if writer not in self._attempts:
                # of a job that this one was copied from, and which may be running
                self._attempts[writer] = int(self._server.client.hget(self._noted(writer), "attempt") or 0)
            part, last = 0, None
            for batch in rows:
                values = self._serializer.serialize(self._as_changes(batch))
                for first in range(0, len(values), _AT_ONCE):
                    if last is not None:
                        self._add(writer, epoch, part, last, final=False)
                        part += 1
                    last = values.slice(first, _AT_ONCE)
            self._add(writer, epoch, part, pa.array([], pa.binary()) if last is None else last, final=True)

    def _add(self, writer: EpochWriter, epoch: int, part: int, values: pa.Array, *, final: bool) -> None:
        told = [self._attempts[writer], epoch, part, int(final), self._length, self._field]
        done = self._commit(keys=[self._stream, self._noted(writer)], args=[*told, *values.to_pylist()])
        failpoint("S5")
        if done == -1:
            raise PenstockError(
                "STA-3504",
                f"a later attempt writes to the stream {self._stream}",
                hint="another process has taken the job over, and continues it",
                kind=Kind.EXTERNAL,
            )

    def _as_changes(self, batch: pa.RecordBatch) -> Batch:
        if self._changes:
            return without_op_column(batch, self._names)
        return Batch(pa.RecordBatch.from_arrays(batch.columns, names=self._names))

    def retire(self, writer: EpochWriter) -> None:
        with self._server.translated_errors():
            self._server.client.delete(self._noted(writer))

    def close(self) -> None:
        self._server.close()
