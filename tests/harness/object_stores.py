"""Object stores for tests: moto's server, which keeps conditions of writes, and localbucket, which ignores some.

Each is started once a process, at a port of its own, and ends with the process.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.locations import ObjectUrl
from penstock.engine.storage.object_client import ObjectClient, client_of
from tests.harness.server_process import SharedServer, await_port, own_port, start_server

# secrets of a process are masked in the messages of all its tests: none is a word of a message
KEY, SECRET, REGION = "AKIAOFTHESTORES", "a-secret-of-tests", "us-east-1"


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


def moto_server() -> ObjectServer:
    """Return moto's server; skip the test where it is not installed."""
    pytest.importorskip("moto.server", reason="moto[server] is not installed")
    return _MOTO.get().server


def localbucket_server() -> ObjectServer:
    """Return localbucket's server; skip the test where it is not installed."""
    pytest.importorskip("localbucket", reason="localbucket is not installed")
    return _LOCALBUCKET.get().server


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


@dataclass(frozen=True)
class _Started:
    """A server and its process."""

    server: ObjectServer
    process: subprocess.Popen[bytes]

    @property
    def runs(self) -> bool:
        return self.process.poll() is None


def _start(module: str, port_flag: str, *words: str) -> _Started:
    # not of the environment of a test: a server reads some of the same variables
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    directory, port = Path(tempfile.mkdtemp(prefix="penstock-store-")), own_port()
    command = [sys.executable, "-m", module, port_flag, str(port), *words]
    # in its directory: the folders of a checkout have names of modules
    process = start_server(command, directory=directory, cwd=directory, env=variables)
    await_port(process, module, port)
    return _Started(ObjectServer(port), process)


_MOTO = SharedServer("moto", lambda: _start("moto.server", "-p"), lambda started: started.runs)
_LOCALBUCKET = SharedServer(
    "localbucket", lambda: _start("localbucket", "--port", "."), lambda started: started.runs
)
