"""Fetching of messages: in their order, none lost on the way, again after the server has forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.nats.client import NatsServer
from penstock.engine.connectors.nats.consumer import Fetched, StreamConsumer
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.nats_server import NatsProcess, nats_server
from tests.unit.engine.connectors.nats.streams import add, table

pytestmark = pytest.mark.xdist_group("nats")


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsProcess]:
    with nats_server(tmp_path_factory.mktemp("nats")) as running:
        running.create("s", "s.*")
        add(running, "s.a", *range(10))
        yield running


@pytest.fixture
def server(process: NatsProcess) -> Iterator[NatsServer]:
    made = NatsServer(table(process, "s"), OperatorMetrics())
    yield made
    made.close()


def fetched(consumer: StreamConsumer, count: int) -> list[Fetched]:
    found: list[Fetched] = []
    while sum(map(len, found)) < count:
        found.append(consumer.fetch() or pytest.fail("no message came"))
    return found


def test_messages_have_their_sequences_and_what_follows(server: NatsServer) -> None:
    consumer = StreamConsumer(server, "s", "s.*", 4)
    assert consumer.pending == 6
    pieces = fetched(consumer, 6)
    assert [int(n) for piece in pieces for n in piece.sequences] == [5, 6, 7, 8, 9, 10]
    assert pieces[-1].pending == 0 and pieces[-1].last == 10
    assert consumer.fetch() is None and consumer.reached() == 10
    cut = pieces[-1].slice(0, 1)
    assert (len(cut), cut.last) == (1, int(pieces[-1].sequences[0]))


def test_a_message_that_is_lost_on_the_way_is_noticed(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = StreamConsumer(server, "s", None, 0)
    real, count = consumer._add, 0

    async def loses_the_third(message: Any) -> None:
        nonlocal count
        count += 1
        if count != 3:
            await real(message)

    monkeypatch.setattr(consumer, "_add", loses_the_third)
    with pytest.raises(PenstockError, match=r"DAT-5901.*lost on the way") as raised:
        fetched(consumer, 10)
    assert raised.value.retriable


def test_a_consumer_that_the_server_has_forgotten_is_an_error_that_passes(server: NatsServer) -> None:
    consumer = StreamConsumer(server, "s", None, 10)
    assert consumer.fetch() is None
    server.ask(f"$JS.API.CONSUMER.DELETE.s.{consumer._name}", {})
    assert consumer.reached() is None
    with pytest.raises(PenstockError, match="DAT-5901") as raised:
        consumer.fetch()
    assert raised.value.retriable
