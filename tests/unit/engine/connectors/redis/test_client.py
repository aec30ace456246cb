"""The connection to a server: one that goes away and comes back, one that asks for a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from tests.harness.redis_server import redis_server
from tests.unit.engine.connectors.redis.streams import (
    add,
    opened,
    rest,
    taken,
)


def test_a_reader_waits_for_a_server_that_is_away(tmp_path: Path) -> None:
    with redis_server(tmp_path) as own:
        add(own, 1)
        reader = opened(own)
        assert taken(reader, 1) == [1]
        own.kill()
        own.start()
        add(own, 2)
        assert taken(reader, 1) == [2]
        reader.close()
        own.kill()
        with pytest.raises(PenstockError, match=r"DAT-5801.*does not answer") as raised:
            opened(own)
        assert raised.value.retriable
        own.start()


def test_a_password_is_asked_for_and_not_shown(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--requirepass", "s3cret") as own:
        with pytest.raises(PenstockError, match="DAT-5802"):
            opened(own)
        with pytest.raises(PenstockError, match="DAT-5802") as raised:
            opened(own, password="wr0ng")
        assert "wr0ng" not in str(raised.value)
        rest(opened(own, password="s3cret", **{"scan.bounded.mode": "latest"}))
