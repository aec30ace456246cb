"""Adding to streams: an epoch once, by the last attempt, in parts where it is large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.epoch_target import EpochWriter
from penstock.engine.connectors.redis.target import _AT_ONCE
from tests.harness.redis_server import RedisProcess, redis_server
from tests.unit.engine.connectors.redis.streams import (
    numbers,
    stored,
    target,
)

ONE, TWO = EpochWriter("job", "sink", 0), EpochWriter("job", "sink", 1)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def server(process: RedisProcess) -> RedisProcess:
    process.client.flushall()
    return process


def test_an_epoch_is_added_once_by_the_last_attempt(server: RedisProcess) -> None:
    old, new = target(server), target(server)
    old.fence([ONE])
    old.commit(ONE, 1, numbers(1, 2))
    old.commit(ONE, 1, numbers(1, 2))
    assert stored(server) == [1, 2] and old.last_committed(ONE) == 1
    new.fence([ONE, TWO])
    with pytest.raises(PenstockError, match="STA-3504"):
        old.commit(ONE, 2, numbers(3))
    new.commit(ONE, 2, numbers(3))
    new.commit(TWO, 2, [])
    assert stored(server) == [1, 2, 3] and new.last_committed(TWO) == 2
    new.retire(ONE)
    assert len(server.client.keys("penstock:*")) == 1


def test_a_large_epoch_that_breaks_off_is_completed(
    server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = list(range(2 * _AT_ONCE + 10))
    first = target(server)
    first.fence([ONE])
    real, calls = first._commit, list[Any]()

    def breaks(*args: Any, **kwargs: Any) -> Any:
        calls.append(kwargs)
        if len(calls) == 3:
            raise PenstockError("DAT-5801", "gone")
        return real(*args, **kwargs)

    monkeypatch.setattr(first, "_commit", breaks)
    with pytest.raises(PenstockError, match="DAT-5801"):
        first.commit(ONE, 1, numbers(*values))
    assert len(stored(server)) == 2 * _AT_ONCE and first.last_committed(ONE) == 0
    second = target(server)
    second.fence([ONE])
    second.commit(ONE, 1, numbers(*values))
    assert stored(server) == values


def test_a_stream_is_kept_short(server: RedisProcess) -> None:
    short = target(server, **{"sink.max-length": "100"})
    short.fence([ONE])
    short.commit(ONE, 1, numbers(*range(2_000)))
    assert 100 <= server.client.xlen("s") < 400
