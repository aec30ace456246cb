"""Reading topics of a real broker: wildcards, metadata, acknowledgements, restores."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import penstock
from penstock.catalog.connectors.mqtt import can_overlap
from penstock.catalog.connectors.registry import check_options
from penstock.catalog.errors import PenstockError
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.mqtt_broker import MqttProcess, mqtt_broker
from tests.unit.engine.connectors.mqtt.topics import add, opened, source, taken

pytestmark = pytest.mark.xdist_group("mqtt")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqttProcess]:
    with mqtt_broker(tmp_path_factory.mktemp("mqtt")) as running:
        yield running


def test_a_query_over_topics_with_metadata(broker: MqttProcess) -> None:
    broker.publish("query/kept", b'{"n": 1}', retain=True)
    with penstock.connect() as connection:
        connection.execute(f"""CREATE TABLE t (n INT, topic STRING METADATA, qos INT METADATA,
            retain BOOLEAN METADATA, properties MAP<STRING, STRING> METADATA) WITH ('connector'='mqtt',
            'url'='{broker.url}','topic'='query/+','format'='json')""")
        cursor = connection.execute("SELECT n, topic, qos, retain, CARDINALITY(properties) FROM t")
        assert cursor.fetchone() == (1, "query/kept", 1, True, 0)
        add(broker, "query/live", 2)
        assert cursor.fetchone() == (2, "query/live", 1, False, 0)
        cursor.close()


def test_properties_of_version_5(broker: MqttProcess) -> None:
    from paho.mqtt.client import MQTTv5
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    with penstock.connect() as connection:
        connection.execute(f"""CREATE TABLE t (n INT, properties MAP<STRING, STRING> METADATA) WITH
            ('connector'='mqtt','url'='{broker.url_5}','version'='5','topic'='five/#','format'='json')""")
        cursor = connection.execute("SELECT n, properties['unit'] FROM t")
        client = broker.client(port=broker.port_5, protocol=MQTTv5)
        sent = Properties(PacketTypes.PUBLISH)
        sent.UserProperty = ("unit", "C")
        row = None
        while row is None:
            # the subscription may come after a message
            client.publish("five/a", b'{"n": 1}', 1, properties=sent).wait_for_publish()
            row = next(iter(cursor.fetchmany(1, timeout=0.1)), None)
        assert row == (1, "C")
        client.disconnect()
        client.loop_stop()
        cursor.close()


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_what_no_checkpoint_has_is_sent_again(broker: MqttProcess, version: str) -> None:
    url = broker.url if version == "3.1.1" else broker.url_5
    options = {"url": url, "version": version}
    topic = f"again{version[0]}/a"
    first = opened(broker, topic, **options)
    add(broker, topic, *range(10))
    assert taken(first, 4, 3) == [0, 1, 2, 3]
    position = json.loads(json.dumps(first.position()))
    assert taken(first, 2) == [4, 5]
    first.checkpoint_completed(position)
    add(broker, topic, 10)
    assert taken(first, 5) == [6, 7, 8, 9, 10]
    first.close()
    add(broker, topic, 11)
    again = opened(broker, topic, position, **options)
    assert taken(again, 8) == [4, 5, 6, 7, 8, 9, 10, 11]
    again.close()
    # the negative control: acknowledged on receipt, they are gone
    position = opened(broker, topic, acknowledge="receipt", **options).position()
    with pytest.raises(PenstockError, match=r"DAT-6003.*may be lost: messages with this"):
        opened(broker, topic, position, acknowledge="receipt", **options)
    continued = {"mqtt.on-restore": "continue", "acknowledge": "receipt"}
    counted = OperatorMetrics()
    reader = opened(broker, topic, position, counted, **continued, **options)
    add(broker, topic, 12)
    assert taken(reader, 1) == [12] and counted.counters["sessions_lost"] == 1
    reader.close()


def test_each_topic_is_a_split_with_a_session(broker: MqttProcess) -> None:
    split = source(broker, "split/a; split/b", **{"client-id": "me"})
    assert split.splits() == ["split/a", "split/b"]
    assert [split.first_position(name)["client"] for name in split.splits()] == ["me-0", "me-1"]
    readers = [split.open(name, None) for name in split.splits()]
    add(broker, "split/a", 1)
    add(broker, "split/b", 2)
    assert [taken(reader, 1) for reader in readers] == [[1], [2]]
    for reader in readers:
        reader.close()
    one, two = (source(broker, "split/a").first_position("split/a") for _ in range(2))
    assert one != two, "two jobs over one table have two sessions"


def test_a_session_that_has_no_subscription_gets_one(broker: MqttProcess) -> None:
    """As one that a job left which ended between the connection and the subscription."""
    client = broker.client(client_id="halfway", clean_session=False)
    client.disconnect()
    client.loop_stop()
    reader = opened(broker, "halfway/a", **{"client-id": "halfway"})
    add(broker, "halfway/a", 1)
    assert taken(reader, 1) == [1]
    reader.close()


@pytest.mark.parametrize("qos", ["0", "2"])
def test_other_qualities_of_service(broker: MqttProcess, qos: str) -> None:
    topic = f"quality{qos}"
    reader = opened(broker, topic, qos=qos)
    broker.publish(topic, b'{"n": 1}', b'{"n": 2}', qos=int(qos))
    assert taken(reader, 2) == [1, 2]
    position = reader.position()
    reader.close()
    with pytest.raises(PenstockError, match=r"DAT-6003.*messages after number 2 may be lost"):
        opened(broker, topic, position, qos=qos)


def test_a_message_that_cannot_be_read(broker: MqttProcess) -> None:
    failing, skipping = opened(broker, "bad"), opened(broker, "bad", **{"on-error": "skip"})
    broker.publish("bad", b'{"n": 1}', b"no json", b'{"n": 3}')
    with pytest.raises(PenstockError, match=r"DAT-4201.*topic bad, message 1"):
        taken(failing, 3)
    assert taken(skipping, 2) == [1, 3]
    failing.close()
    skipping.close()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"url": "http://x"}, "SQL-1505"),
        ({"topic": ";"}, "SQL-1505"),
        ({"topic": "a/b#"}, "SQL-1505"),
        ({"topic": "a/#/b"}, "SQL-1505"),
        ({"topic": "a/+;a/b"}, "SQL-1505"),
        ({"qos": "3"}, "SQL-1505"),
        ({"password": "x"}, "SQL-1507"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, str], code: str) -> None:
    written = {"connector": "mqtt", "url": "mqtt://x", "topic": "a", "format": "json", **options}
    with pytest.raises(PenstockError, match=code):
        check_options(written, {})


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a/+", "a/b", True),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("+/b", "a/+", True),
        ("+/b", "a/c", False),
        ("a", "a/b", False),
        ("#", "x", True),
    ],
)
def test_topics_that_overlap(one: str, other: str, overlap: bool) -> None:
    assert can_overlap(one, other) is overlap and can_overlap(other, one) is overlap
