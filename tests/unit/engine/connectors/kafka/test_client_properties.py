"""Properties of clients, from the options of tables."""

from __future__ import annotations

from penstock.catalog.connectors.kafka_properties import CONSUMER_PROPERTIES
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT
from penstock.engine.connectors.kafka.client_properties import client_properties


def test_properties_have_the_names_and_words_of_librdkafka(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from penstock.catalog.connectors import kafka, registry

    monkeypatch.setitem(registry.CONNECTORS, "kafka", kafka.KAFKA)
    schema = Schema((Field("a", BIGINT),))
    options = {
        "connector": "kafka",
        "topic": "t",
        "format": "json",
        "properties.bootstrap.servers": "h:9092",
        "properties.sasl.mechanism": "scram-sha-512",
        "properties.sasl.password": "s3cret word",
        "properties.enable.ssl.certificate.verification": "FALSE",
        "properties.isolation.level": "read_uncommitted",
    }
    table = CatalogTable("t", schema, schema, options)
    assert client_properties(table) == {
        "bootstrap.servers": "h:9092",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.password": "s3cret word",
        "enable.ssl.certificate.verification": "false",
        "log_level": "0",
    }
    assert client_properties(table, *CONSUMER_PROPERTIES)["isolation.level"] == "read_uncommitted"
