"""The targets of rows that are published to a stream of JetStream.

Exactly once: an atomic batch (a server of 2.12 or later) is stored whole or not at all. Each has rows of one
epoch and, as its last message, a note of what the writer has written. The server stores the batch only while
the note before it is the writer's last one, so neither a repeated batch nor an earlier attempt adds rows.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa

from penstock.catalog.connectors.kafka_sink import AT_LEAST_ONCE, DELIVERY_GUARANTEE, EXACTLY_ONCE
from penstock.catalog.connectors.message_formats import emits_message_changes, value_format
from penstock.catalog.connectors.nats import CREATE, can_overlap, subjects_of
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.epoch_target import EpochWriter, StagedForm
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.sink import DirectSink, SinkRequest, SinkWriter
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import change_rows, with_op_column, without_op_column
from penstock.engine.connectors.epoch_sink import EpochSink
from penstock.engine.connectors.nats.client import NatsServer, stream_info
from penstock.engine.connectors.nats.source import EPOCH_SUBJECT
from penstock.engine.formats.messages.registry import serializer

# messages of one atomic batch: the server's limit is 1,000, and one is the note
_AT_ONCE = 999
# messages that are published before their acknowledgements are waited for
_UNACKNOWLEDGED = 1_000
_WRONG_LAST_SEQUENCE = 10071
_NO_MESSAGE = 10037

# subject, payload and headers
_Message = tuple[str, bytes, dict[str, str]]


def nats_sink(request: SinkRequest) -> SinkWriter:
    """Return the writer of one subtask: exactly once where the table says so, or says nothing and the job
    keeps checkpoints.
    """
    assert request.table is not None, "a stream has a table"
    chosen = option(request.table, DELIVERY_GUARANTEE)
    guarantee = str(chosen).lower() if chosen else EXACTLY_ONCE if request.resumes else AT_LEAST_ONCE
    return EpochSink(request, NatsTarget(request)) if guarantee == EXACTLY_ONCE else NatsSink(request)


class _Messages:
    """The messages of a table's rows, and the connection they are sent by."""

    def __init__(self, request: SinkRequest) -> None:
        assert request.table is not None, "a stream has a table"
        table = request.table
        self.changes = emits_message_changes(table.options)
        self.stream = table.options["stream"].strip()
        self.subject = subjects_of(dict(table.options))[0]
        self.creates = bool(option(table, CREATE))
        self._serializer = serializer(value_format(table.options), table.physical_fields, self.subject)
        self._names = [field.name for field in table.physical_fields]
        self.server = NatsServer(table, request.metrics)

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the messages of rows, of changes with their column ``op``."""
        if self.changes:
            return self._serializer.serialize(without_op_column(rows, self._names))
        return self._serializer.serialize(Batch(pa.RecordBatch.from_arrays(rows.columns, names=self._names)))

    def create(self, config: dict[str, Any]) -> None:
        """Make the stream where it is not there and the table allows it."""
        if self.creates:
            named = {"name": self.stream, "retention": "limits", "storage": "file", **config}
            # 10058: it is there, with other options
            self.server.ask(f"$JS.API.STREAM.CREATE.{self.stream}", named, missing=10058)

    def config(self) -> dict[str, Any]:
        """Return the stream's options. DAT-5904 when it does not have the subject: another stream, or none,
        would take the messages.
        """
        config: dict[str, Any] = stream_info(self.server, self.stream)["config"]
        subjects = config.get("subjects", ())
        if not any(can_overlap(self.subject, pattern) for pattern in subjects):
            raise PenstockError(
                "DAT-5904",
                f"the stream {self.stream} does not have the subject {self.subject}",
                hint=f"correct 'subject' or 'stream'; its subjects are {', '.join(subjects) or 'none'}",
                kind=Kind.EXTERNAL,
                sqlstate="55000",
            )
        return config


class NatsSink(DirectSink):
    """Publishes rows as they come, and returns once the server has stored them: at least once."""

    def __init__(self, request: SinkRequest) -> None:
        self._request, self._messages = request, _Messages(request)
        self._messages.create({"subjects": [self._messages.subject]})
        self._messages.config()

    def write(self, batch: Batch) -> None:
        if not batch.num_rows:
            return
        rows = batch.rows
        if self._messages.changes:
            rows = with_op_column(*change_rows(batch, self._request.upsert_key))
        values = self._messages.values(rows)
        for first in range(0, len(values), _UNACKNOWLEDGED):
            self._publish(values.slice(first, _UNACKNOWLEDGED).to_pylist())
        self._request.metrics.count("rows_committed", len(values))

    def _publish(self, values: list[bytes]) -> None:
        server, messages = self._messages.server, self._messages

        async def published(client: Any) -> list[bytes]:
            # the client sends them in this order
            sent = (server.request(client, messages.subject, value, None) for value in values)
            return await asyncio.gather(*sent)

        for answer in set(server.call(published)):
            error = json.loads(answer).get("error")
            if error is not None:
                raise server.refusal(error)

    def close(self) -> None:
        self._messages.server.close()


@dataclass(frozen=True)
class _Note:
    """What a writer has written, and the sequence of the message that says so; 0: there is none."""

    sequence: int = 0
    attempt: int = 0
    epoch: int = 0
    # the epoch that is not complete, and how many of its messages are stored
    open: int = 0
    stored: int = 0


class NatsTarget:
    """Publishes the rows of an epoch by atomic batches.

    An epoch of more than 999 rows is published in parts: readers may see some before the others, each once.
    """

    def __init__(self, request: SinkRequest) -> None:
        self._messages = messages = _Messages(request)
        self.form = StagedForm.CHANGES if messages.changes else StagedForm.INSERTS
        self._metrics = request.metrics
        # the epochs up to this one were written by an earlier attempt, if they were
        self._origin = 0 if request.origin is None else request.origin.checkpoint_id
        self._attempts: dict[EpochWriter, int] = {}
        # writers without a note before ours
        self._unknown: set[EpochWriter] = set()
        self._prepare()

    def _prepare(self) -> None:
        """Check that the stream can take epochs. DAT-5905 unless the table lets us change it."""
        messages = self._messages
        notes = f"{EPOCH_SUBJECT}.{messages.stream}.*"
        needed = {"allow_atomic": True, "allow_msg_ttl": True, "allow_rollup_hdrs": True}
        messages.create({"subjects": [messages.subject, notes], **needed})
        config = messages.config()
        if config.get("allow_atomic") and notes in config.get("subjects", ()):
            self._never_expires = bool(config.get("allow_msg_ttl"))
            self._replaces = bool(config.get("allow_rollup_hdrs"))
            return
        if not messages.creates:
            raise self._unable("it has no 'allow_atomic', or not the subject " + notes)
        subjects = [*config.get("subjects", ()), *({notes} - set(config.get("subjects", ())))]
        answer = messages.server.ask(
            f"$JS.API.STREAM.UPDATE.{messages.stream}", {**config, **needed, "subjects": subjects}
        )
        if answer is None or not answer["config"].get("allow_atomic"):
            # a server before 2.12 does not know the option, and leaves it out
            raise self._unable("its server has no atomic batches, which 2.12 brings")
        self._never_expires = self._replaces = True

    def _unable(self, why: str) -> PenstockError:
        return PenstockError(
            "DAT-5905",
            f"the stream {self._messages.stream} cannot take rows exactly once: {why}",
            hint=f"set '{CREATE}' = 'true', which adds it to the stream, or '{DELIVERY_GUARANTEE}' = "
            f"'{AT_LEAST_ONCE}'",
            kind=Kind.EXTERNAL,
            sqlstate="0A000",
        )

    def _subject_of(self, writer: EpochWriter) -> str:
        return f"{EPOCH_SUBJECT}.{self._messages.stream}.{writer.name}"

    def _noted(self, writer: EpochWriter) -> _Note:
        """Return the writer's last note, of the stream's leader."""
        answer = self._messages.server.ask(
            f"$JS.API.STREAM.MSG.GET.{self._messages.stream}",
            {"last_by_subj": self._subject_of(writer)},
            missing=_NO_MESSAGE,
        )
        if answer is None:
            return _Note()
        message = answer["message"]
        return _Note(sequence=message["seq"], **json.loads(base64.b64decode(message["data"])))

    def fence(self, writers: list[EpochWriter]) -> None:
        for writer in writers:
            noted = None
            while noted is None:
                former = self._noted(writer)
                # refused where another attempt fences at the same time: the last one wins
                noted = self._store(writer, former, replace(former, attempt=former.attempt + 1), [])
            self._attempts[writer] = noted.attempt
            if not former.sequence:
                self._unknown.add(writer)

    def last_committed(self, writer: EpochWriter) -> int:
        return self._noted(writer).epoch

    def commit(self, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]) -> None:
        note = self._noted(writer)
        self._check_note(writer, note, epoch)
        skipped = note.stored if note.open == epoch else 0
        note = replace(note, open=epoch, stored=skipped)
        pending: list[bytes] = []
        for batch in rows:
            values = self._messages.values(batch)
            pending += values.slice(skipped).to_pylist()
            skipped = max(0, skipped - len(values))
            while len(pending) > _AT_ONCE:
                note = self._add(writer, note, pending[:_AT_ONCE])
                del pending[:_AT_ONCE]
        self._add(writer, replace(note, epoch=epoch), pending)

    def _check_note(self, writer: EpochWriter, note: _Note, epoch: int) -> None:
        """STA-3504 when another attempt has fenced this one off, DAT-5906 when a note is gone."""
        # the note of a job that this one was copied from, and which may be running, is taken as it is
        attempt = self._attempts.get(writer, note.attempt)
        if note.sequence and note.attempt != attempt:
            raise self._fenced()
        # every attempt begins with a note: an epoch of an earlier one had one
        gone = writer in self._unknown or not note.sequence
        if gone and epoch <= self._origin:
            raise PenstockError(
                "DAT-5906",
                f"the stream {self._messages.stream} has dropped the note of what this job has written: the "
                f"rows of checkpoint {epoch} might be written twice",
                hint="begin without the job's state, and raise the limits of the stream; or set "
                f"'{DELIVERY_GUARANTEE}' = '{AT_LEAST_ONCE}'",
                kind=Kind.EXTERNAL,
                sqlstate="55000",
            )

    def _fenced(self) -> PenstockError:
        return PenstockError(
            "STA-3504",
            f"a later attempt writes to the stream {self._messages.stream}",
            hint="another process has taken the job over, and continues it",
            kind=Kind.EXTERNAL,
        )

    def _add(self, writer: EpochWriter, note: _Note, values: list[bytes]) -> _Note:
        """Store messages of an open epoch and the note that has them; return the new note."""
        added = self._store(writer, note, replace(note, stored=note.stored + len(values)), values)
        failpoint("S5")
        if added is None:
            # between our last look and the batch, a later attempt has written a note
            raise self._fenced()
        return added

    def _store(self, writer: EpochWriter, former: _Note, note: _Note, values: list[bytes]) -> _Note | None:
        """Store messages and a note in one batch, unless the last note is not ``former``; return the note."""
        written = {"attempt": note.attempt, "epoch": note.epoch, "open": note.open, "stored": note.stored}
        headers = {"Nats-Expected-Last-Subject-Sequence": str(former.sequence)}
        # the limits of age do not concern a note, and the writer's former one is of no use
        headers |= {"Nats-TTL": "never"} if self._never_expires else {}
        headers |= {"Nats-Rollup": "sub"} if self._replaces else {}
        last = (self._subject_of(writer), json.dumps(written).encode(), headers)
        answer = json.loads(self._messages.server.call(partial(self._publish, values, last)))
        error = answer.get("error")
        if error is None:
            return replace(note, sequence=int(answer["seq"]))
        if error.get("err_code") == _WRONG_LAST_SEQUENCE:
            return None
        raise self._messages.server.refusal(error)

    async def _publish(self, values: list[bytes], last: _Message, client: Any) -> bytes:
        """Send a batch whose last message ends it; return the server's answer to that."""
        server, subject, batch = self._messages.server, self._messages.subject, uuid4().hex
        for number, value in enumerate(values, 1):
            headers = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
            # the first is answered: an error ends the batch before the others are sent
            if number == 1:
                answer = await server.request(client, subject, value, headers)
                if answer:
                    return answer
            else:
                await client.publish(subject, value, headers=headers)
        name, payload, headers = last
        ends = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(len(values) + 1), "Nats-Batch-Commit": "1"}
        return await server.request(client, name, payload, headers | ends)

    def retire(self, writer: EpochWriter) -> None:
        purged = {"filter": self._subject_of(writer)}
        self._messages.server.ask(f"$JS.API.STREAM.PURGE.{self._messages.stream}", purged)

    def close(self) -> None:
        self._messages.server.close()
