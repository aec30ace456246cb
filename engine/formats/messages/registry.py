"""The deserializer and the serializer of each message format. A format is imported with the first table that
uses it.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.schema import Field
from penstock.engine.formats.messages.interfaces import Deserializer, Serializer
from penstock.engine.metrics.operator_metrics import OperatorMetrics

_Fields = tuple[Field, ...]
_Metrics = OperatorMetrics | None


def _json_in(_form: MessageFormat, wanted: _Fields, _declared: _Fields, _metrics: _Metrics) -> Deserializer:
    from penstock.engine.formats.messages.json_objects import JsonDeserializer

    return JsonDeserializer(wanted)


def _csv_in(form: MessageFormat, wanted: _Fields, declared: _Fields, _metrics: _Metrics) -> Deserializer:
    from penstock.engine.formats.messages.text_messages import csv_deserializer

    return csv_deserializer(form, wanted, declared)


def _raw_in(form: MessageFormat, wanted: _Fields, declared: _Fields, _metrics: _Metrics) -> Deserializer:
    from penstock.engine.formats.messages.raw import RawDeserializer

    return RawDeserializer(form, wanted, declared)


def _debezium_json_in(
    form: MessageFormat, wanted: _Fields, declared: _Fields, _metrics: _Metrics
) -> Deserializer:
    from penstock.engine.formats.messages.text_messages import debezium_json_deserializer

    return debezium_json_deserializer(form, wanted, declared)


def _avro_in(form: MessageFormat, wanted: _Fields, declared: _Fields, _metrics: _Metrics) -> Deserializer:
    from penstock.engine.formats.messages.avro import avro_deserializer

    return avro_deserializer(form, wanted, declared)


def _confluent_avro_in(
    form: MessageFormat, wanted: _Fields, _declared: _Fields, metrics: _Metrics
) -> Deserializer:
    from penstock.engine.formats.messages.confluent_avro import confluent_avro_deserializer

    return confluent_avro_deserializer(form, wanted, metrics)


def _debezium_avro_in(
    form: MessageFormat, wanted: _Fields, declared: _Fields, metrics: _Metrics
) -> Deserializer:
    from penstock.engine.formats.messages.confluent_avro import debezium_avro_deserializer

    return debezium_avro_deserializer(form, wanted, declared, metrics)


def _protobuf_in(
    form: MessageFormat, wanted: _Fields, _declared: _Fields, _metrics: _Metrics
) -> Deserializer:
    from penstock.engine.formats.messages.protobuf import ProtobufDeserializer

    return ProtobufDeserializer(form, wanted)


def _confluent_protobuf_in(
    form: MessageFormat, wanted: _Fields, _declared: _Fields, metrics: _Metrics
) -> Deserializer:
    from penstock.engine.formats.messages.confluent_protobuf import ConfluentProtobufDeserializer

    return ConfluentProtobufDeserializer(form, wanted, metrics)


def _envelope_in(
    form: MessageFormat, wanted: _Fields, _declared: _Fields, _metrics: _Metrics
) -> Deserializer:
    from penstock.engine.formats.messages.change_envelopes import ChangeDeserializer

    return ChangeDeserializer(form, wanted)


def _json_out(_form: MessageFormat, fields: _Fields, _subject: str) -> Serializer:
    from penstock.engine.formats.messages.text_messages import JsonSerializer

    return JsonSerializer(fields)


def _csv_out(form: MessageFormat, _fields: _Fields, _subject: str) -> Serializer:
    from penstock.engine.formats.messages.text_messages import CsvSerializer

    return CsvSerializer(form)


def _raw_out(form: MessageFormat, fields: _Fields, _subject: str) -> Serializer:
    from penstock.engine.formats.messages.raw import RawSerializer

    return RawSerializer(form, fields)


def _debezium_json_out(form: MessageFormat, _fields: _Fields, _subject: str) -> Serializer:
    from penstock.engine.formats.messages.changes import DebeziumJsonSerializer

    return DebeziumJsonSerializer(form)


def _envelope_out(form: MessageFormat, _fields: _Fields, _subject: str) -> Serializer:
    from penstock.engine.formats.messages.changes import EnvelopeSerializer

    return EnvelopeSerializer(form)


def _avro_out(form: MessageFormat, fields: _Fields, _subject: str) -> Serializer:
    from penstock.engine.formats.messages.avro import avro_serializer

    return avro_serializer(form, fields)


def _confluent_avro_out(form: MessageFormat, fields: _Fields, subject: str) -> Serializer:
    from penstock.engine.formats.messages.confluent_avro import ConfluentAvroSerializer

    return ConfluentAvroSerializer(form, fields, subject)


def _debezium_avro_out(form: MessageFormat, fields: _Fields, subject: str) -> Serializer:
    from penstock.engine.formats.messages.confluent_avro import DebeziumAvroSerializer

    return DebeziumAvroSerializer(form, fields, subject)


def _protobuf_out(form: MessageFormat, fields: _Fields, _subject: str) -> Serializer:
    from penstock.engine.formats.messages.protobuf import ProtobufSerializer

    return ProtobufSerializer(form, fields)


def _confluent_protobuf_out(form: MessageFormat, fields: _Fields, subject: str) -> Serializer:
    from penstock.engine.formats.messages.confluent_protobuf import ConfluentProtobufSerializer

    return ConfluentProtobufSerializer(form, fields, subject)


DESERIALIZERS: dict[str, Callable[[MessageFormat, _Fields, _Fields, _Metrics], Deserializer]] = {
    "json": _json_in,
    "csv": _csv_in,
    "raw": _raw_in,
    "avro": _avro_in,
    "avro-confluent": _confluent_avro_in,
    "debezium-avro-confluent": _debezium_avro_in,
    "protobuf": _protobuf_in,
    "protobuf-confluent": _confluent_protobuf_in,
    "debezium-json": _debezium_json_in,
    "maxwell-json": _envelope_in,
    "canal-json": _envelope_in,
    "ogg-json": _envelope_in,
}
SERIALIZERS: dict[str, Callable[[MessageFormat, _Fields, str], Serializer]] = {
    "json": _json_out,
    "csv": _csv_out,
    "raw": _raw_out,
    "avro": _avro_out,
    "avro-confluent": _confluent_avro_out,
    "debezium-avro-confluent": _debezium_avro_out,
    "protobuf": _protobuf_out,
    "protobuf-confluent": _confluent_protobuf_out,
    "debezium-json": _debezium_json_out,
    "maxwell-json": _envelope_out,
    "canal-json": _envelope_out,
    "ogg-json": _envelope_out,
}


def deserializer(
    form: MessageFormat, wanted: _Fields, declared: _Fields, metrics: OperatorMetrics | None = None
) -> Deserializer:
    """Return the deserializer of a format. ``wanted``: the columns to decode, in order; ``declared``: all
    columns of the table that are in this part (value or key) of a message. ``metrics``: what counts requests
    to a schema registry.

    DAT-52xx for columns that do not match the format.
    """
    return DESERIALIZERS[form.name](form, wanted, declared, metrics)


def serializer(form: MessageFormat, fields: _Fields, subject: str) -> Serializer:
    """Return the serializer of a format for rows of ``fields``. ``subject``: the name under which a schema
    registry knows the schema, such as ``orders-value``.
    """
    return SERIALIZERS[form.name](form, fields, subject)
