"""Connections of tests that hold in this process and at a server alike: one suite runs over both."""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache

import penstock
from penstock.client.connection import Connection
from tests.harness.flight_server import flight_listener

WAYS = ("in process", "server")


@cache
def server_url() -> str:
    """Return the URL of a server of this process, which is there until its end."""
    stack = ExitStack()
    atexit.register(stack.close)
    return f"penstock://{stack.enter_context(flight_listener()).address}"


def url_of(way: str) -> str | None:
    """Return what ``connect`` is given."""
    return server_url() if way == "server" else None


@contextmanager
def connected(way: str, settings: Mapping[str, str] | None = None) -> Iterator[Connection]:
    """Yield a connection to an engine of its own."""
    with penstock.connect(url_of(way), settings=settings) as connection:
        yield connection
