"""Options of message formats: prefixes of keys and values, options of another format, types that do not fit."""

from __future__ import annotations

import pytest

from penstock.catalog.connectors.message_formats import (
    FORMATS_OF_MESSAGES,
    check_message_column,
    check_message_formats,
    emits_message_changes,
    key_format,
    message_format_options,
    value_format,
)
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, STRING, Map, YearMonthInterval
from penstock.engine.formats.messages.registry import DESERIALIZERS, SERIALIZERS


def check(**options):
    written = {"connector": "kafka"} | {key.replace("__", "."): text for key, text in options.items()}
    check_message_formats(written, {}, {})
    return written


def refused(**options):
    with pytest.raises(PenstockError) as error:
        check(**options)
    return error.value.code, error.value.message


def test_every_declared_format_is_registered():
    assert set(DESERIALIZERS) == set(FORMATS_OF_MESSAGES)
    assert set(SERIALIZERS) <= set(FORMATS_OF_MESSAGES)


def test_keys_of_options_are_declared_once():
    keys = [option.key for option in message_format_options(keys=True)]
    assert len(keys) == len(set(keys))
    assert {
        "format",
        "value.format",
        "key.format",
        "csv.delimiter",
        "value.csv.delimiter",
        "key.csv.delimiter",
    } <= set(keys)
    assert "key.debezium-json.schema-include" not in keys
    assert not any(option.key.startswith("key.") for option in message_format_options())


def test_options_of_values_and_keys():
    options = check(
        value__format="csv", key__format="CSV", value__csv__delimiter=";", key__csv__delimiter="|"
    )
    assert value_format(options).option("csv.delimiter") == ";"
    assert key_format(options).option("csv.delimiter") == "|"
    assert value_format(check(format="csv", csv__delimiter="\\t")).option("csv.delimiter") == "\t"
    assert value_format(check(format="csv")).option("csv.null-literal") == ""
    assert key_format(check(format="json")) is None
    assert emits_message_changes(check(format="debezium-json"))
    assert not emits_message_changes(check(format="json"))


def test_options_that_do_not_match():
    assert refused() == ("SQL-1504", "connector 'kafka' needs option 'format'")
    assert refused(format="json", value__format="json")[0] == "SQL-1507"
    assert refused(format="json", csv__delimiter=";") == (
        "SQL-1507",
        "option 'csv.delimiter' is of format csv, the format of values is json",
    )
    assert refused(format="csv", key__csv__delimiter=";") == (
        "SQL-1507",
        "option 'key.csv.delimiter' is of format csv, there is no key.format",
    )


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("json", YearMonthInterval()),
        ("json", Map(BIGINT, STRING)),
        ("csv", Map(STRING, STRING)),
        ("raw", Map(STRING, STRING)),
    ],
)
def test_types_that_do_not_fit(form, kind):
    with pytest.raises(PenstockError) as error:
        check_message_column({"format": form}, Field("c", kind), None)
    assert error.value.code == "SQL-1509"
    check_message_column({"format": form}, Field("c", STRING), None)
