"""Tables of Kafka that cannot work are refused where they are created, with what to write instead."""

from __future__ import annotations

import pytest

import penstock
from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.kafka import java_name_hint, specific_offsets
from penstock.catalog.connectors.registry import boundedness
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT

NEEDED = {"topic": "t", "format": "json", "properties.bootstrap.servers": "h:9092"}
BAD: list[tuple[dict[str, str], str, str]] = [
    ({"topic": ""}, "SQL-1505", "names no topic"),
    ({"topic": "a b"}, "SQL-1505", "cannot be 'a b'"),
    ({"topic-pattern": "a.*"}, "SQL-1507", "exclude each other"),
    ({"format": "jsn"}, "SQL-1505", "cannot be 'jsn'"),
    ({"scan.startup.mode": "earliest"}, "SQL-1505", "cannot be 'earliest'"),
    ({"scan.startup.mode": "timestamp"}, "SQL-1504", "scan.startup.timestamp-millis"),
    ({"scan.startup.timestamp-millis": "1"}, "SQL-1507", "has no effect"),
    ({"scan.bounded.mode": "specific-offsets"}, "SQL-1504", "scan.bounded.specific-offsets"),
    (
        {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": "0:1"},
        "SQL-1505",
        "cannot have '0:1'",
    ),
    ({"scan.startup.mode": "group-offsets"}, "SQL-1504", "properties.group.id"),
    ({"key.format": "json"}, "SQL-1504", "key.fields"),
    ({"key.fields": "a"}, "SQL-1504", "key.format"),
    ({"key.format": "json", "key.fields": "b"}, "SQL-1510", "no column b"),
    ({"key.format": "json", "key.fields": "a", "key.fields-prefix": "k_"}, "SQL-1507", "key.fields-prefix"),
    ({"properties.sasl.jaas.config": "org.apache.kafka"}, "SQL-1503", "properties.sasl.jaas.config"),
    ({"properties.plugin.library.paths": "/tmp/x.so"}, "SQL-1503", "properties.plugin.library.paths"),
    ({"properties.sasl.kerberos.kinit.cmd": "sh"}, "SQL-1503", "properties.sasl.kerberos.kinit.cmd"),
    ({"properties.isolation.level": "dirty"}, "SQL-1505", "cannot be 'dirty'"),
]


def create(options: dict[str, str]) -> None:
    texts = ", ".join(f"'{key}' = '{text}'" for key, text in ({"connector": "kafka"} | options).items())
    with penstock.connect() as connection:
        connection.execute(f"CREATE TABLE t (a BIGINT) WITH ({texts})")


@pytest.mark.parametrize(("options", "code", "words"), BAD, ids=lambda case: str(case)[:40])
def test_what_cannot_work_is_refused(options: dict[str, str], code: str, words: str) -> None:
    with pytest.raises(PenstockError) as refused:
        create(NEEDED | options)
    assert refused.value.code == code
    assert words in refused.value.message
    assert refused.value.hint


UPSERTS = NEEDED | {"connector": "upsert-kafka", "key.format": "json"}


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({}, "SQL-1504", "needs a PRIMARY KEY"),
        ({"key.format": ""}, "SQL-1505", "key.format"),
        ({"key.fields": "a"}, "SQL-1507", "has no key.fields"),
        ({"format": "debezium-json"}, "SQL-1507", "its values are changes themselves"),
        ({"scan.startup.mode": "latest-offset"}, "SQL-1507", "from its beginning"),
    ],
)
def test_tables_of_upserts_have_a_key(options: dict[str, str], code: str, words: str) -> None:
    with pytest.raises(PenstockError) as refused:
        create(UPSERTS | options)
    assert refused.value.code == code
    assert words in refused.value.message


def test_needed_options() -> None:
    create(NEEDED)
    for key, code in (
        ("topic", "SQL-1504"),
        ("format", "SQL-1504"),
        ("properties.bootstrap.servers", "SQL-1504"),
    ):
        with pytest.raises(PenstockError) as refused:
            create({name: text for name, text in NEEDED.items() if name != key})
        assert refused.value.code == code
        assert key in refused.value.message


def test_names_of_the_java_client_lead_to_those_that_work() -> None:
    for key, words in (
        ("properties.sasl.jaas.config", "properties.sasl.username"),
        ("properties.ssl.truststore.location", "properties.ssl.ca.location"),
        ("properties.fetch.max.wait.ms", "properties.fetch.wait.max.ms"),
    ):
        assert words in str(java_name_hint(key))
        with pytest.raises(PenstockError) as refused:
            create(NEEDED | {key: "x"})
        assert words in str(refused.value.hint)
    assert java_name_hint("properties.acks") is None


def test_offsets_by_partition() -> None:
    assert specific_offsets("partition:0,offset:42; topic:a.b,partition:1,offset:300") == {
        (None, 0): 42,
        ("a.b", 1): 300,
    }
    for text in ("", "partition:0", "partition:x,offset:1", "partition:0,offset:-1"):
        with pytest.raises(ValueError):
            specific_offsets(text)


def test_secrets_are_never_shown() -> None:
    with penstock.connect() as connection:
        connection.execute(
            """CREATE TABLE t (a BIGINT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json',
            'properties.bootstrap.servers' = 'h:9092', 'properties.sasl.password' = 'hunter2hunter2',
            'properties.ssl.key.pem' = 'PEMPEMPEM', 'properties.sasl.oauthbearer.client.secret' = 'sssssss')"""
        )
        shown = str(connection.execute("SHOW CREATE TABLE t").fetchall())
    assert "properties.sasl.password" in shown
    assert not any(secret in shown for secret in ("hunter2", "PEMPEM", "sssssss"))


def test_a_topic_ends_where_its_end_is_declared() -> None:
    schema = Schema((Field("a", BIGINT),))

    def kind(**options: str) -> Boundedness:
        given = NEEDED | {"connector": "kafka"} | {k.replace("_", "."): t for k, t in options.items()}
        return boundedness(CatalogTable("t", schema, schema, given))

    assert kind() is Boundedness.UNBOUNDED
    assert kind(scan_bounded_mode="latest-offset") is Boundedness.REPLAY
