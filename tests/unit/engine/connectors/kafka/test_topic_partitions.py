"""Questions to brokers: answers, and what is told where there is none."""

from __future__ import annotations

import logging

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT
from penstock.engine.connectors.kafka import topic_partitions
from penstock.engine.connectors.kafka.topic_partitions import TopicPartitions, consumer_properties
from tests.harness.kafka_broker import shared_topics

pytestmark = pytest.mark.xdist_group("kafka")


def table(bootstrap: str, **options: str) -> CatalogTable:
    schema = Schema((Field("a", BIGINT),))
    given = {"connector": "kafka", "format": "json", "properties.bootstrap.servers": bootstrap}
    return CatalogTable("t", schema, schema, given | {k.replace("_", "-"): v for k, v in options.items()})


def test_partitions_of_lists_and_patterns() -> None:
    topics = shared_topics()
    one, two = topics.create(partitions=2), topics.create()
    listed = TopicPartitions(table(topics.bootstrap, topic=f"{two};{one}"))
    assert listed.listed() == sorted([(one, 0), (one, 1), (two, 0)])
    assert listed.range_of((one, 0)) == (0, 0)
    listed.close()
    matched = TopicPartitions(table(topics.bootstrap, topic_pattern=f"{one}|__.*"))
    assert matched.listed() == [(one, 0), (one, 1)]
    matched.close()


def test_a_client_commits_and_resets_nothing_by_itself() -> None:
    properties = consumer_properties(table("h:1", topic="t"))
    assert properties["enable.auto.commit"] == "false"
    assert properties["auto.offset.reset"] == "error"
    assert properties["isolation.level"] == "read_committed"


def test_brokers_that_do_not_answer_are_told_of_and_then_an_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.setattr(topic_partitions, "FIRST_S", 0.05)
    monkeypatch.setattr(topic_partitions, "LIMIT_S", 0.1)
    asking = TopicPartitions(table("127.0.0.1:1", topic="t"))
    with caplog.at_level(logging.WARNING, "penstock.kafka"), pytest.raises(PenstockError) as failed:
        asking.listed()
    assert failed.value.code == "DAT-5102"
    assert failed.value.retriable
    assert "no broker of 127.0.0.1:1 answers" in caplog.text
    asking.close()
