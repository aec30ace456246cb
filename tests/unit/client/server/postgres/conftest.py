"""One server for all tests of the PostgreSQL wire in a process."""

import pytest

from tests.harness.postgres_wire import postgres_server


@pytest.fixture(scope="session")
def server():
    with postgres_server() as listener:
        yield listener


@pytest.fixture
def address(server):
    return f"host=127.0.0.1 port={server.port} user=me dbname=me"
