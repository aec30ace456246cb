"""Tables over topics: where reading begins and ends, which partitions are read, what columns there are."""

from __future__ import annotations

import json
import time

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.kafka import source as kafka_source
from penstock.engine.connectors.kafka.source import key_columns, partition_of, split_id
from tests.harness.kafka_broker import KafkaTopics, shared_topics
from tests.harness.patience import await_that
from tests.unit.engine.connectors.kafka.kafka_tables import WHOLE, create_table, opened, rows_of

pytestmark = pytest.mark.xdist_group("kafka")


@pytest.fixture(scope="module")
def topics() -> KafkaTopics:
    return shared_topics()


def value(number: int) -> bytes:
    return json.dumps({"a": number}).encode()


@pytest.fixture(scope="module")
def numbers(topics: KafkaTopics) -> str:
    """Two partitions: 0 .. 9, at times of 1,000 s and on, and 100 .. 104."""
    topic = topics.create(partitions=2)
    topics.produce(
        topic,
        [{"value": value(n), "timestamp": 1_000_000_000_000 + n * 1000, "partition": 0} for n in range(10)],
    )
    topics.produce(topic, [(None, value(n)) for n in range(100, 105)], 1)
    return topic


def read(topics: KafkaTopics, topic: str, **options: str) -> list[int]:
    """Return the numbers that a bounded table has."""
    given = {key.replace(".", "_").replace("-", "__"): text for key, text in WHOLE.items()} | options
    statement = create_table(topics.bootstrap, topic, "a BIGINT", **given)
    return sorted(row[0] for row in rows_of(statement, "SELECT a FROM t"))


@pytest.mark.parametrize(
    ("end", "offsets", "code", "said"),
    [
        (
            "startup",
            "partition:0,offset:11",
            "DAT-5106",
            "partition 0 ends before offset 11: its next one is 10",
        ),
        ("startup", "partition:7,offset:0", "DAT-5103", "names partition 7, which no topic"),
        ("bounded", "partition:0,offset:1;partition:2,offset:0", "DAT-5103", "names partition 2"),
        ("startup", "topic:other,partition:0,offset:1", "DAT-5103", "which topic other does not have"),
    ],
)
def test_offsets_that_there_are_not_are_refused(
    topics: KafkaTopics, numbers: str, end: str, offsets: str, code: str, said: str
) -> None:
    given = {f"scan_{end}_mode": "specific-offsets", f"scan_{end}_specific__offsets": offsets}
    with pytest.raises(PenstockError, match=f"{code}(?s:.*){said}"):
        read(topics, numbers, **given)


@pytest.mark.parametrize(("reset", "rows"), [("earliest", [*range(10)]), ("latest", [])])
def test_an_offset_behind_the_end_is_reset_where_the_table_says_so(
    topics: KafkaTopics, numbers: str, reset: str, rows: list[int]
) -> None:
    given = {"scan_startup_mode": "specific-offsets", "properties_auto_offset_reset": reset}
    offsets = "partition:0,offset:11;partition:1,offset:5"
    assert read(topics, numbers, scan_startup_specific__offsets=offsets, **given) == rows


def test_ids_of_splits_name_topic_and_partition() -> None:
    assert split_id(("orders-eu.v1", 12)) == "orders-eu.v1-12"
    assert partition_of("orders-eu.v1-12") == ("orders-eu.v1", 12)


def test_all_start_modes(topics: KafkaTopics, numbers: str) -> None:
    assert read(topics, numbers) == [*range(10), *range(100, 105)]
    assert read(topics, numbers, scan_startup_mode="latest-offset") == []
    late = {"scan_startup_mode": "timestamp", "scan_startup_timestamp__millis": "1000000006500"}
    assert read(topics, numbers, **late) == [7, 8, 9, *range(100, 105)]
    specific = {
        "scan_startup_mode": "specific-offsets",
        "scan_startup_specific__offsets": "partition:0,offset:8",
    }
    # a partition that is not named is read from its beginning
    assert read(topics, numbers, **specific) == [8, 9, *range(100, 105)]


def test_group_offsets_begin_where_the_group_is(topics: KafkaTopics, numbers: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    group = f"group-{numbers}"
    consumer = Consumer({"bootstrap.servers": topics.bootstrap, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(numbers, 0, 6)], asynchronous=False)
    consumer.close()
    options = {"scan_startup_mode": "group-offsets", "properties_group_id": group}
    with pytest.raises(PenstockError, match="DAT-5108"):
        read(topics, numbers, **options)
    assert read(topics, numbers, properties_auto_offset_reset="latest", **options) == [6, 7, 8, 9]


def test_all_bounded_modes(topics: KafkaTopics, numbers: str) -> None:
    end = {"scan_bounded_mode": "timestamp", "scan_bounded_timestamp__millis": "1000000003000"}
    assert read(topics, numbers, **end) == [0, 1, 2]
    end = {
        "scan_bounded_mode": "specific-offsets",
        "scan_bounded_specific__offsets": f"topic:{numbers},partition:0,offset:2;partition:1,offset:1",
    }
    assert read(topics, numbers, **end) == [0, 1, 100]


def test_metadata_of_messages(topics: KafkaTopics) -> None:
    topic = topics.create()
    headers = [("n", b"1"), ("n", b"2"), ("empty", b""), ("none", None)]
    topics.produce(topic, [{"key": b"k", "value": value(1), "headers": headers, "timestamp": 1500}])
    topics.produce(topic, [(None, value(2))])
    columns = """a BIGINT, tp STRING METADATA FROM 'topic' VIRTUAL, `partition` INT METADATA VIRTUAL,
        o BIGINT METADATA FROM 'offset' VIRTUAL, ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
        kind STRING METADATA FROM 'timestamp-type' VIRTUAL, h MAP<STRING, BYTES> METADATA FROM 'headers',
        k BYTES METADATA FROM 'key'"""
    statement = create_table(
        topics.bootstrap,
        topic,
        columns,
        scan_startup_mode="earliest-offset",
        scan_bounded_mode="latest-offset",
    )
    with opened(statement) as connection:
        first, second = connection.execute("SELECT * FROM t ORDER BY o").fetchall()
    assert first[:4] == (1, topic, 0, 0)
    assert first[4].timestamp() == 1.5
    # of headers of one name the last is read
    assert first[5:] == ("CreateTime", [("n", b"2"), ("empty", b""), ("none", None)], b"k")
    assert second[3] == 1
    assert second[6:] == ([], None)


def test_keys_of_a_format_of_their_own(topics: KafkaTopics) -> None:
    topic = topics.create()
    topics.produce(
        topic, [(b'{"id":7}', b'{"v":"x"}'), (None, b'{"v":"no key"}'), (b'{"id":8}', b'{"v":"y"}')]
    )
    options = {
        "key_format": "json",
        "key_fields": "k_id",
        "key_fields__prefix": "k_",
        "value_fields__include": "EXCEPT_KEY",
        "scan_startup_mode": "earliest-offset",
        "scan_bounded_mode": "latest-offset",
    }
    statement = create_table(topics.bootstrap, topic, "k_id BIGINT, v STRING", **options)
    assert rows_of(statement, "SELECT * FROM t") == [(7, "x"), (8, "y"), (None, "no key")]
    assert rows_of(statement, "SELECT v FROM t WHERE k_id = 8") == [("y",)]


def test_messages_that_cannot_be_decoded(topics: KafkaTopics) -> None:
    topic = topics.create()
    topics.produce(
        topic, [(None, value(1)), (None, b"{bad"), (None, None), (None, b'{"a":"x"}'), (None, value(2))]
    )
    with pytest.raises(PenstockError) as failed:
        read(topics, topic)
    assert failed.value.code == "DAT-4201"
    assert f"topic {topic}, partition 0, offset 1" in failed.value.message
    assert read(topics, topic, on__error="skip") == [1, 2]
    kept = {key.replace(".", "_").replace("-", "__"): text for key, text in WHOLE.items()}
    with opened(create_table(topics.bootstrap, topic, "a BIGINT", on__error="table", **kept)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM t").fetchall() == [(2,)]
        bad = connection.execute("SELECT raw, split, `position`, `column` FROM t$errors").fetchall()
    assert sorted(bad, key=repr) == [('{"a":"x"}', f"{topic}-0", 3, "a"), ("{bad", f"{topic}-0", 1, None)]


def test_new_partitions_and_new_topics_of_a_pattern_are_read_from_their_beginning(
    topics: KafkaTopics,
) -> None:
    prefix = topics.create(f"found-{time.time_ns()}-a")
    name = prefix.removesuffix("-a")
    topics.produce(prefix, [(None, value(1))])
    statement = create_table(topics.bootstrap, "", "a BIGINT", scan_startup_mode="earliest-offset").replace(
        "'topic' = ''",
        f"'topic-pattern' = '{name}-.*', 'scan.topic-partition-discovery.interval' = '50 ms'",
    )
    with opened(statement) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT a FROM t")
        # the job has begun with the partition there was
        assert cursor.fetchone() == (1,)
        topics.create(f"{name}-b")
        topics.produce(f"{name}-b", [(None, value(2))])
        topics.add_partitions(prefix, 2)
        topics.produce(prefix, [(None, value(3))], 1)
        rows: list[int] = []
        await_that(lambda: rows.append(cursor.fetchone()[0]) or len(rows) == 2, "the new partitions")
        assert sorted(rows) == [2, 3]


def test_aborted_transactions_are_not_read(topics: KafkaTopics) -> None:
    topic = topics.create()
    producer = topics.transactional(f"tx-{topic}")
    for number, commits in ((1, True), (2, False), (3, True), (4, False)):
        producer.begin_transaction()
        producer.produce(topic, value(number))
        producer.flush(30)
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)
    assert read(topics, topic) == [1, 3]
    assert read(topics, topic, properties_isolation_level="read_uncommitted") == [1, 2, 3, 4]


def test_the_fallback_reads_the_same(
    topics: KafkaTopics, numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_source, "load", lambda: None)
    assert read(topics, numbers) == [*range(10), *range(100, 105)]
    assert rows_of(
        create_table(topics.bootstrap, numbers, "a BIGINT", **_keyed()), "SELECT COUNT(*), SUM(a) FROM t"
    ) == [(15, 555)]


def _keyed() -> dict[str, str]:
    return {key.replace(".", "_").replace("-", "__"): text for key, text in WHOLE.items()}


def test_a_subtask_has_one_client_for_all_partitions(
    topics: KafkaTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.create(partitions=16)
    topics.produce(topic, [(str(n).encode(), value(n)) for n in range(64)])
    made = []
    make = kafka_source.default_consumer
    monkeypatch.setattr(
        kafka_source, "default_consumer", lambda *words: made.append(make(*words)) or made[-1]
    )
    assert read(topics, topic) == [*range(64)]
    # a client is closed with its last partition, so one after the other may be made
    assert len({id(client) for client in made}) >= 1
    assert all(client.client == 0 for client in made)


def test_a_topic_that_is_not_there(topics: KafkaTopics) -> None:
    with pytest.raises(PenstockError) as failed:
        read(topics, "no-such-topic")
    assert (failed.value.code, failed.value.message) == (
        "DAT-5103",
        "topic no-such-topic: there is no such topic or partition",
    )


def test_columns_in_keys_are_those_of_the_options() -> None:
    from penstock.catalog.schema import Field, Schema
    from penstock.catalog.types import BIGINT

    schema = Schema((Field("a", BIGINT),))
    options = {"connector": "kafka", "key.fields": "a; b", "value.fields-include": "EXCEPT_KEY"}
    keys = key_columns(CatalogTable("t", schema, schema, options))
    assert (keys.names, keys.only, keys.upserts) == (("a", "b"), True, False)
