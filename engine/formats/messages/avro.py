"""The format ``avro``: values of one schema without a head, that of the table or of an option."""

from __future__ import annotations

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.schema import Field
from penstock.engine.formats.avro.deserializer import AvroDeserializer
from penstock.engine.formats.avro.schema import AvroType, parse_schema
from penstock.engine.formats.avro.serializer import AvroSerializer
from penstock.engine.formats.avro.writer_program import schema_text, table_schema

_GIVEN = "the schema of option 'avro.schema'"
_OWN = "the schema of the table's columns"


def avro_deserializer(
    form: MessageFormat, wanted: tuple[Field, ...], declared: tuple[Field, ...]
) -> AvroDeserializer:
    """Return the deserializer of values of one schema. DAT-5210..5213 where there is none, or it does not
    match the columns.
    """
    where = _OWN if form.text("avro.schema") is None else _GIVEN
    return AvroDeserializer(_schema(form, declared), wanted, where)


def avro_serializer(form: MessageFormat, fields: tuple[Field, ...]) -> AvroSerializer:
    """Return the serializer of rows in one schema. DAT-5210..5213 as above."""
    return AvroSerializer(_schema(form, fields), fields)


def _schema(form: MessageFormat, fields: tuple[Field, ...]) -> AvroType:
    given = form.text("avro.schema")
    return (
        parse_schema(schema_text(table_schema(fields)), _OWN)
        if given is None
        else parse_schema(given, _GIVEN)
    )
