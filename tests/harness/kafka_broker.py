"""A Kafka broker over the wire, started from the package noida-db: one a test process, or the one that the
environment variable ``PENSTOCK_KAFKA`` names.

The broker is a stranger's young project, so it is used by tests only. A test that needs it is skipped with a
reason where the package is missing or does not start.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.harness.kafka_long_poll import BEFORE, BEHIND, long_polls
from tests.harness.patience import await_that
from tests.harness.server_process import SharedServer, await_port, own_port, start_server

PENSTOCK_KAFKA = "PENSTOCK_KAFKA"
_PAUSE_S = 0.005
_numbers = itertools.count()

Record = tuple[bytes | None, bytes | None] | dict[str, Any]


class KafkaBroker:
    """A broker process with a directory of its own. ``kill`` ends it with SIGKILL; ``start`` starts it again
    at the same port with what it has on disk.

    It answers before what it has is on its disk: about once a second it writes all of it into one file. A kill
    after ``await_disk`` loses nothing that was answered before that call.
    """

    def __init__(self, program: Path, directory: Path, host: str = "127.0.0.1") -> None:
        self._program, self._directory, self.host = program, directory, host
        self._process: subprocess.Popen[bytes] | None = None
        self._markers = itertools.count()
        # a relay or a proxy before it listens at the same port of the other address
        self.port = own_port(BEHIND, BEFORE)

    @property
    def bootstrap(self) -> str:
        """Its address, as bootstrap.servers has it."""
        return f"{self.host}:{self.port}"

    @property
    def runs(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process and wait until it answers."""
        self._directory.mkdir(parents=True, exist_ok=True)
        words = [
            "--only",
            "kafka",
            "--host",
            self.host,
            "--kafka-port",
            str(self.port),
            "--data-dir",
            str(self._directory / "data"),
        ]
        with (self._directory / "broker.log").open("ab") as log:
            self._process = start_server(
                [self._program, "start", *words],
                directory=self._directory,
                stdout=log,
                stderr=log,
                cwd=self._directory,
            )
        await_port(
            self._process, f"the broker whose log is {self._directory}/broker.log", self.port, host=self.host
        )

    def await_disk(self) -> None:
        """Wait until all that it has answered is on its disk."""
        topics, file = KafkaTopics(self.bootstrap), self._directory / "data" / "kafka.json"

        def is_written(topic: str) -> bool:
            return file.exists() and f'"{topic}"'.encode() in file.read_bytes()

        # it may have begun to write the first one's file before this call: the second one is in a later file
        for _ in range(2):
            marker = topics.create(f"on-disk-{next(self._markers)}")
            await_that(functools.partial(is_written, marker), "the broker's write", 0.05)

    def kill(self) -> None:
        """End it at once, with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order: it writes what it has to disk."""
        self._end(signal.SIGTERM)

    def _end(self, with_signal: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(with_signal)
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it answer nothing, until ``thaw``."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


class KafkaTopics:
    """Topics at a broker: made, written and read with the package's own client.

    ``look``: is called before a topic is made, and raises where the broker has ended.
    """

    def __init__(self, bootstrap: str, look: Callable[[], object] = lambda: None) -> None:
        self.bootstrap, self._look = bootstrap, look

    @functools.cached_property
    def admin(self) -> Any:
        """The AdminClient."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    @functools.cached_property
    def producer(self) -> Any:
        """A Producer that waits 5 ms for more rows."""
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.bootstrap, "log_level": 0, "linger.ms": 5})

    def transactional(self, transactional_id: str) -> Any:
        """Return a Producer of a transactional id, whose former one is fenced."""
        from confluent_kafka import Producer

        made = Producer(
            {"bootstrap.servers": self.bootstrap, "log_level": 0, "transactional.id": transactional_id}
        )
        made.init_transactions(30)
        return made

    def create(self, name: str | None = None, partitions: int = 1, **config: str) -> str:
        """Create a topic whose records never expire and return its name; a new name where none is given."""
        from confluent_kafka.admin import NewTopic

        self._look()
        topic = name or f"t{os.getpid()}-{next(_numbers)}"
        settings = {"retention.ms": "-1"} | {key.replace("_", "."): text for key, text in config.items()}
        made = self.admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])
        made[topic].result(30)
        return topic

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Raise the number of partitions of a topic to so many."""
        from confluent_kafka.admin import NewPartitions

        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)
        # the producer that is there knows the former number
        self.__dict__.pop("producer", None)

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        self.admin.delete_topics([topic])[topic].result(30)

    def produce(self, topic: str, records: Iterable[Record], partition: int = -1) -> None:
        """Write records, (key, value) or the keyword arguments of ``Producer.produce``, and wait for them."""
        for record in records:
            fields = record if isinstance(record, dict) else {"key": record[0], "value": record[1]}
            while True:
                try:
                    self.producer.produce(topic, **({"partition": partition} | fields))
                    break
                except BufferError:
                    self.producer.poll(0.05)
        assert self.producer.flush(60) == 0

    def read(self, topic: str, *, isolation: str = "read_committed") -> list[Any]:
        """Return the messages of a topic up to its present end, partition by partition, with the stock
        client.
        """
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"read-{os.getpid()}-{next(_numbers)}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "log_level": 0,
            }
        )
        partitions = sorted(consumer.list_topics(topic, 30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        open_, messages = set(partitions), []
        while open_:
            for message in consumer.consume(10_000, 1.0):
                if message.error() is None:
                    messages.append(message)
                else:
                    # the end of a partition
                    open_.discard(message.partition())
        consumer.close()
        return sorted(messages, key=lambda message: (message.partition(), message.offset()))


def _program() -> Path | None:
    spec = importlib.util.find_spec("noida_db")
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).parent / ("noida-db.exe" if os.name == "nt" else "noida-db")
    return program if program.exists() else None


def new_broker(host: str = "127.0.0.1") -> KafkaBroker:
    """Return a broker of the caller's own that runs, for tests that kill it. Skips where there is none.

    ``host``: the address that it listens at and names to its clients.
    """
    pytest.importorskip("confluent_kafka", reason="needs the package confluent-kafka")
    program = _program()
    if program is None:
        pytest.skip("needs the package noida-db, a Kafka broker for tests")
    broker = KafkaBroker(program, Path(tempfile.mkdtemp(prefix="penstock-kafka-")), host)
    try:
        broker.start()
    except OSError as error:
        pytest.skip(f"noida-db is not built for this machine: {error}")
    return broker


@dataclass(frozen=True)
class _Relayed:
    """A broker, and the address of the relay before it, which ends with this process."""

    broker: KafkaBroker
    address: str
    relay: contextlib.ExitStack

    @property
    def runs(self) -> bool:
        return self.broker.runs and _answers(self.address)


def _answers(address: str) -> bool:
    host, _, port = address.partition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 10):
        return True
    return False


def _start_relayed() -> _Relayed:
    broker, relay = new_broker(), contextlib.ExitStack()
    return _Relayed(broker, relay.enter_context(long_polls(broker.port, _PAUSE_S)), relay)


_SHARED = SharedServer("the tests' Kafka broker", _start_relayed, lambda server: server.runs)


def shared_topics() -> KafkaTopics:
    """Return the topics of the broker of this test process, started at the first call. Skips where there is
    none. Tests use topics of their own, and never stop it. Readers without records ask it 200 times a second:
    without the relay they asked 10,000 times, and took half of the processors' time from all other tests.
    """
    if named := os.environ.get(PENSTOCK_KAFKA):
        pytest.importorskip("confluent_kafka", reason="needs the package confluent-kafka")
        return KafkaTopics(named)
    return KafkaTopics(_SHARED.get().address, _SHARED.get)
