"""Avro with the head of Confluent's serializers: a zero, the id of the schema in the registry, the value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.schema import Field
from penstock.catalog.types import STRING, Row
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.stream_elements import Batch
from penstock.engine.formats.avro.deserializer import DecodedValues, ValueDecoder
from penstock.engine.formats.avro.reader_program import compile_reader
from penstock.engine.formats.avro.schema import AvroType, parse_schema
from penstock.engine.formats.avro.serializer import AvroSerializer
from penstock.engine.formats.avro.writer_program import schema_text, table_schema
from penstock.engine.formats.debezium import EnvelopeParser, well_formed
from penstock.engine.formats.decoded_batch import BadRecord, Decoded
from penstock.engine.formats.messages.changes import row_ops
from penstock.engine.formats.messages.confluent_head import HEAD_BYTES, NO_HEAD, schema_ids, with_head
from penstock.engine.formats.messages.message_values import MessageValues, message_values
from penstock.engine.formats.messages.schema_registry import SchemaRegistryClient, registry_options
from penstock.engine.metrics.operator_metrics import OperatorMetrics

_NO_CHANGE = "the change lacks the row before or after that its op needs, or its op is none of c, r, u and d"
Finish = Callable[[MessageValues, DecodedValues], Decoded]


class ConfluentAvroDeserializer:
    """Decodes values of any number of schemas: those of one id together, and then in the order of messages.

    The first value of an id asks the registry, which blocks. DAT-5212 for a schema that does not match the
    columns, DAT-522x of the registry.
    """

    def __init__(
        self, form: MessageFormat, fields: tuple[Field, ...], finish: Finish, metrics: OperatorMetrics | None
    ) -> None:
        self._client = SchemaRegistryClient(registry_options(form), metrics)
        self._fields = fields
        self._finish = finish
        given = form.text(f"{form.name}.schema")
        self._reader = (
            None if given is None else parse_schema(given, f"the schema of option '{form.name}.schema'")
        )
        self._decoders: dict[int, ValueDecoder] = {}

    def deserialize(self, values: pa.Array) -> Decoded:
        messages = message_values(values)
        ids = schema_ids(messages)
        bad: list[BadRecord] = []
        parts: list[tuple[np.ndarray, DecodedValues]] = []
        for schema_id in np.unique(ids).tolist():
            chosen = np.flatnonzero(ids == schema_id)
            decoder = self._decoder(schema_id) if schema_id >= 0 else None
            if decoder is None:
                error = f"schema {schema_id} is not in the registry {self._client.name}"
                if schema_id < 0:
                    error = NO_HEAD
                bad += [messages.bad(position, error, None, 0) for position in chosen.tolist()]
                continue
            part = messages if len(chosen) == len(messages) else messages.select(chosen)
            rows = decoder.decode(part.without_prefix(HEAD_BYTES))
            parts.append((chosen[rows.kept], rows))
            bad += [with_head(messages, record) for record in rows.bad]
        return self._finish(messages, self._in_order(parts, bad))

    def _in_order(self, parts: list[tuple[np.ndarray, DecodedValues]], bad: list[BadRecord]) -> DecodedValues:
        bad.sort(key=lambda record: record.ordinal)
        if len(parts) == 1:
            return DecodedValues(parts[0][1].batch, parts[0][0], bad)
        if not parts:
            return DecodedValues(self._empty(), np.zeros(0, np.int64), bad)
        kept = np.concatenate([part[0] for part in parts])
        order = np.argsort(kept, kind="stable")
        batch = pa.concat_batches([part[1].batch for part in parts]).take(array_of(order))
        return DecodedValues(batch, kept[order], bad)

    def _empty(self) -> pa.RecordBatch:
        schema = parse_schema(schema_text(table_schema(self._fields)), "the schema of the columns")
        nothing = message_values(pa.array([], pa.binary()))
        return ValueDecoder(compile_reader(schema, self._fields, "it")).decode(nothing).batch

    def _decoder(self, schema_id: int) -> ValueDecoder | None:
        found = self._decoders.get(schema_id)
        if found is None:
            writer = self._client.schema(schema_id)
            if writer is None:
                return None
            where = f"schema {schema_id} of the registry {self._client.name}"
            program = compile_reader(writer, self._fields, where, self._reader)
            found = self._decoders[schema_id] = ValueDecoder(program)
        return found


def confluent_avro_deserializer(
    form: MessageFormat, wanted: tuple[Field, ...], metrics: OperatorMetrics | None
) -> ConfluentAvroDeserializer:
    """Return the deserializer of ``avro-confluent``."""

    def finish(messages: MessageValues, rows: DecodedValues) -> Decoded:
        return Decoded(rows.batch, 0, messages.count, messages.ordinals(rows.kept), rows.bad)

    return ConfluentAvroDeserializer(form, wanted, finish, metrics)


def debezium_avro_deserializer(
    form: MessageFormat,
    wanted: tuple[Field, ...],
    declared: tuple[Field, ...],
    metrics: OperatorMetrics | None,
) -> ConfluentAvroDeserializer:
    """Return the deserializer of ``debezium-avro-confluent``: changes as weighted rows."""
    parser = EnvelopeParser(wanted, declared, False, "message")

    def finish(messages: MessageValues, rows: DecodedValues) -> Decoded:
        fine = well_formed(rows.batch)
        bad = rows.bad
        if not fine.all():
            batch, kept = rows.batch.filter(array_of(fine)), rows.kept[fine]
            wrong = [messages.bad(position, _NO_CHANGE) for position in rows.kept[~fine].tolist()]
            bad = sorted([*bad, *wrong], key=lambda record: record.ordinal)
            rows = DecodedValues(batch, kept, bad)
        decoded = Decoded(rows.batch, 0, messages.count, messages.ordinals(rows.kept), bad)
        return parser.rows_of(decoded)

    # which side of a change is there shows only in a column
    return ConfluentAvroDeserializer(form, _envelope(wanted or declared[:1]), finish, metrics)


def _envelope(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    row = Row(tuple((one.name, one.type) for one in fields))
    return Field("before", row), Field("after", row), Field("op", STRING)


class ConfluentAvroSerializer:
    """Encodes rows in one schema under a subject; the first batch registers it, which blocks."""

    def __init__(self, form: MessageFormat, fields: tuple[Field, ...], subject: str) -> None:
        given = form.text(f"{form.name}.schema")
        self._text = schema_text(table_schema(fields)) if given is None else given
        self._schema: AvroType = parse_schema(self._text, "the schema of the table")
        self._fields = fields
        self._subject = form.text(f"{form.name}.subject") or subject
        self._registers = bool(form.option(f"{form.name}.auto-register"))
        self._options = registry_options(form)
        # compiled here, so that columns which do not match are refused before the first row
        self._unheaded = AvroSerializer(self._schema, fields)
        self._headed: AvroSerializer | None = None

    def serialize(self, batch: Batch) -> pa.Array:
        return self.values(batch.rows)

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """Return one value a row, whatever its weight."""
        if self._headed is None:
            client = SchemaRegistryClient(self._options)
            schema_id = client.register(self._subject, self._text, self._registers)
            head = b"\0" + schema_id.to_bytes(4, "big")
            self._headed = AvroSerializer(self._schema, self._fields, head)
        return self._headed.values(rows)


class DebeziumAvroSerializer:
    """Encodes changes as Debezium's envelopes: a row of weight +1 is created, one of -1 is deleted."""

    def __init__(self, form: MessageFormat, fields: tuple[Field, ...], subject: str) -> None:
        before, after, op = _envelope(fields)
        envelope = (before, after, Field(op.name, op.type, nullable=False))
        self._changes = ConfluentAvroSerializer(form, envelope, subject)

    def serialize(self, batch: Batch) -> pa.Array:
        created = row_ops(batch) == 0
        rows = batch.rows.to_struct_array()
        parts = [rows.field(index) for index in range(rows.type.num_fields)]
        nullable = [field.with_nullable(True) for field in rows.type]
        sides = [
            pa.StructArray.from_arrays(parts, fields=nullable, mask=array_of(absent))
            for absent in (created, ~created)
        ]
        op = pa.array(["d", "c"]).take(array_of(created.astype(np.int64)))
        return self._changes.values(pa.RecordBatch.from_arrays([*sides, op], names=["before", "after", "op"]))
