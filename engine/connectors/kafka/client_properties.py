"""The properties a client of librdkafka is made with: those of a table's options ``properties.*``."""

from __future__ import annotations

from penstock.catalog.connectors.kafka_properties import CLIENT_PROPERTIES, PROPERTIES
from penstock.catalog.connectors.option import Option, OptionKind
from penstock.catalog.connectors.registry import option
from penstock.catalog.tables import CatalogTable

# librdkafka compares these names as they are registered.
_UPPER = "sasl.mechanism"


def bootstrap_servers(table: CatalogTable) -> str:
    """Return the brokers a table names, for messages."""
    return str(option(table, PROPERTIES + "bootstrap.servers"))


def client_properties(table: CatalogTable, *more: Option) -> dict[str, str]:
    """Return the client properties a table sets, by their names in librdkafka: those of every client and
    ``more``. Options of the other kind of client are left out.
    """
    properties = {}
    for declared in (*CLIENT_PROPERTIES, *more):
        if declared.key not in table.options:
            continue
        value = option(table, declared.key)
        name = declared.key.removeprefix(PROPERTIES)
        text = str(value).lower() if declared.kind is OptionKind.BOOL else str(value)
        properties[name] = text.upper() if name == _UPPER else text
    # librdkafka writes to stderr by itself: what goes wrong is told by errors
    return properties | {"log_level": "0"}
