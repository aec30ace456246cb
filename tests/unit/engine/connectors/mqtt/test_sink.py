"""Publishing to topics of a real broker: answered for, retained, at least once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.mqtt.sink import MqttSink
from tests.harness.mqtt_broker import MqttProcess, mqtt_broker
from tests.harness.patience import await_that
from tests.unit.engine.connectors.mqtt.topics import SCHEMA, table

pytestmark = pytest.mark.xdist_group("mqtt")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqttProcess]:
    with mqtt_broker(tmp_path_factory.mktemp("mqtt")) as running:
        yield running


def sink(broker: MqttProcess, topic: str, **options: str) -> MqttSink:
    made = MqttSink(SinkRequest(table(broker, topic, **options), SCHEMA, None, "sink", "j", 0, 1, Services()))
    made.recover([])
    return made


def rows(*numbers: int) -> Batch:
    import pyarrow as pa

    return Batch(pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64())], schema=SCHEMA.to_arrow()))


@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_rows_are_published(broker: MqttProcess, qos: str) -> None:
    topic = f"out/{qos}"
    with broker.subscriber(topic, int(qos)) as received:
        writer = sink(broker, topic, qos=qos)
        writer.write(rows())
        writer.write(rows(*range(2_500)))
        await_that(lambda: len(received) == 2_500)
        writer.close()
    # the broker of the tests delivers what is acknowledged out of order, now and then
    assert sorted(json.loads(message.payload)["n"] for message in received) == list(range(2_500))
    assert {message.qos for message in received} == {int(qos)}


def test_a_query_is_published_and_its_last_row_retained(broker: MqttProcess) -> None:
    with penstock.connect() as connection:
        connection.execute(f"""CREATE TABLE t (n BIGINT) WITH ('connector'='mqtt','url'='{broker.url_5}',
            'version'='5','topic'='last','format'='json','sink.retain'='true')""")
        connection.execute("INSERT INTO t SELECT * FROM (VALUES (1), (2)) v(n)")
        with pytest.raises(PenstockError, match=r"SQL-1512.*not one topic"):
            connection.execute(f"""CREATE TABLE many (n BIGINT) WITH ('connector'='mqtt',
                'url'='{broker.url}','topic'='last/+','format'='json')""")
            connection.execute("INSERT INTO many VALUES (1)")
    with broker.subscriber("last") as received:
        await_that(lambda: received)
        assert received[0].retain


def test_a_broker_that_is_away_fails_the_writer(tmp_path: Path) -> None:
    with mqtt_broker(tmp_path) as own:
        writer = sink(own, "t", timeout="300 ms")
        writer.write(rows(1))
        own.kill()
        with pytest.raises(PenstockError, match=r"DAT-6001.*does not answer") as raised:
            writer.write(rows(2))
        assert raised.value.retriable
        writer.close()
        own.start()
