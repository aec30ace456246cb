"""An MQTT broker of a package, that keeps sessions while it runs, and can be killed and started again."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness.patience import await_that
from tests.harness.server_process import await_port, own_port, start_server

_ROUTER = """
id = 0
[router]
id = 0
max_connections = 1000
max_outgoing_packet_count = 200
max_segment_size = 104857600
max_segment_count = 10
"""
_LISTENER = """
[{version}.1]
name = "{version}"
listen = "127.0.0.1:{port}"
next_connection_delay_ms = 1
{tls}
[{version}.1.connections]
connection_timeout_ms = 60000
max_payload_size = 1048576
max_inflight_count = {in_flight}
dynamic_filters = true
{users}
"""
_TLS = '[{version}.1.tls]\ncapath = "{0}"\ncertpath = "{1}"\nkeypath = "{2}"\n'


class MqttProcess:
    """The broker: ``url`` speaks 3.1.1, ``url_5`` version 5. ``users``: names and passwords; ``tls``: files of
    an authority, a certificate and its key. ``in_flight``: how many messages it sends unacknowledged.
    """

    def __init__(
        self,
        directory: Path,
        users: dict[str, str] | None = None,
        tls: tuple[Path, Path, Path] | None = None,
        in_flight: int = 10_000,
    ) -> None:
        if importlib.util.find_spec("iotcore") is None:
            pytest.skip("iotcore brings the broker")
        self._tls = tls
        text = _ROUTER
        self._ports = []
        for version in ("v4", "v5"):
            self._ports.append(own_port())
            words = "".join(f'{name} = "{word}"\n' for name, word in (users or {}).items())
            text += _LISTENER.format(
                version=version,
                port=self._ports[-1],
                in_flight=in_flight,
                users=f"[{version}.1.connections.auth]\n{words}" if users else "",
                tls=_TLS.format(*tls, version=version) if tls else "",
            )
        directory.mkdir(exist_ok=True)
        self._config = directory / "broker.toml"
        self._config.write_text(text)
        self.start()

    @property
    def url(self) -> str:
        return f"mqtt{'s' if self._tls else ''}://127.0.0.1:{self._ports[0]}"

    @property
    def url_5(self) -> str:
        return f"mqtt{'s' if self._tls else ''}://127.0.0.1:{self._ports[1]}"

    def start(self) -> None:
        """Start it without what it knew."""
        line = [sys.executable, "-m", "iotcore", "--config", str(self._config)]
        # not in a checkout, whose folders have names of modules
        self._process = start_server(line, cwd=self._config.parent)
        await_port(self._process, "iotcore", *self._ports)

    @property
    def port_5(self) -> int:
        return self._ports[1]

    def client(self, port: int | None = None, **options: Any) -> Any:
        """Return a stock client that is connected, driven by a thread of its own."""
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        made = Client(CallbackAPIVersion.VERSION2, **options)
        made.max_inflight_messages_set(10_000)
        made.connect("127.0.0.1", port or self._ports[0])
        made.loop_start()
        await_that(made.is_connected, "the connection")
        return made

    def publish(self, topic: str, *values: bytes, qos: int = 1, retain: bool = False) -> None:
        """Publish messages, and wait until the broker has them."""
        client = self.client()
        # the library looks at all unanswered messages with each answer
        for first in range(0, len(values), 200):
            for sent in [client.publish(topic, value, qos, retain) for value in values[first : first + 200]]:
                sent.wait_for_publish()
        client.disconnect()
        client.loop_stop()

    @contextmanager
    def subscriber(self, topic: str, qos: int = 1) -> Iterator[list[Any]]:
        """Collect the messages of a topic until the block ends."""
        received, answered = list[Any](), list[Any]()
        client = self.client()
        client.on_message = lambda _client, _data, message: received.append(message)
        client.on_subscribe = lambda *_: answered.append(True)
        client.subscribe(topic, qos)
        await_that(lambda: answered, "the subscription")
        try:
            yield received
        finally:
            client.disconnect()
            client.loop_stop()

    def kill(self) -> None:
        """End it as it stands."""
        self._process.kill()
        self._process.wait()


@contextmanager
def mqtt_broker(directory: Path, **options: Any) -> Iterator[MqttProcess]:
    """Run a broker until the block ends."""
    broker = MqttProcess(directory, **options)
    try:
        yield broker
    finally:
        broker.kill()
