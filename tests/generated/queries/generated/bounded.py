"""The rows of feeds as bounded tables of a backend."""

from __future__ import annotations

from penstock.client.session import Session
from tests.harness.direct.feeds import Feed


def bounded_session(tables: dict[str, Feed], backend: str) -> Session:
    """Return a session that has all rows of the feeds, and asks a backend."""
    session = Session({"execution.runtime-mode": "batch", "bounded.backend": backend})
    for name, feed in tables.items():
        session.register(
            name,
            feed.table(),
            time_column=feed.time_column,
            delay=feed.delay if feed.time_column else None,
            stream=False,
        )
    return session
