"""Object stores for tests: moto's server, which keeps conditions of writes, and localbucket, which ignores some.

Each is started once a process, at a port of its own, and ends with the process.
"""

from __future__ import annotations

import atexit
import functools
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.locations import ObjectUrl
from penstock.engine.storage.object_client import ObjectClient, client_of

# secrets of a process are masked in the messages of all its tests: none is a word of a message
KEY, SECRET, REGION = "AKIAOFTHESTORES", "a-secret-of-tests", "us-east-1"
_START_S = 60.0


@dataclass(frozen=True)
class ObjectServer:
    """A server that runs. ``environment``: what a process needs to reach it."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
        }

    @property
    def options(self) -> dict[str, str]:
        """The same as settings of the client."""
        return {
            "endpoint": self.endpoint,
            "access_key_id": KEY,
            "secret_access_key": SECRET,
            "region": REGION,
        }

    def client(self, bucket: str, **more: int) -> ObjectClient:
        return client_of(ObjectUrl("s3", bucket), self.options, **more)

    def bucket(self, name: str) -> str:
        """Make a bucket, if it is not there, and return its name."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("PUT", f"/{name}", headers={"Authorization": _UNSIGNED})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        assert answer.status in (200, 409), answer.status
        return name


# neither server checks signatures; moto looks at the scope to know the region and the service
_UNSIGNED = (
    f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/{REGION}/s3/aws4_request, SignedHeaders=host, Signature=0"
)


@functools.cache
def moto_server() -> ObjectServer:
    """Return moto's server; skip the test where it is not installed."""
    pytest.importorskip("moto.server", reason="moto[server] is not installed")
    port = _free_port()
    return _started([sys.executable, "-m", "moto.server", "-p", str(port)], port)


@functools.cache
def localbucket_server() -> ObjectServer:
    """Return localbucket's server; skip the test where it is not installed."""
    pytest.importorskip("localbucket", reason="localbucket is not installed")
    port = _free_port()
    return _started([sys.executable, "-m", "localbucket", "--port", str(port), tempfile.mkdtemp()], port)


@contextmanager
def environment_of(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process, also for those it starts."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _started(command: list[str], port: int) -> ObjectServer:
    # not of the environment of a test: a server reads some of the same variables
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=Path("/tmp"), env=variables
    )
    atexit.register(process.kill)
    deadline_s = time.monotonic() + _START_S
    while time.monotonic() < deadline_s and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return ObjectServer(port)
    pytest.skip(f"{command[2]} does not start here")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
