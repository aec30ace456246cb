"""Publishing to streams: an epoch once, by the last attempt, in parts where it is large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.engine.api.epoch_target import EpochWriter
from penstock.engine.connectors.nats.target import _AT_ONCE
from tests.harness.nats_server import NatsProcess, nats_server
from tests.unit.engine.connectors.nats.streams import numbers, opened, rest, stored, target

pytestmark = pytest.mark.xdist_group("nats")
ONE, TWO = EpochWriter("job", "sink", 0), EpochWriter("job", "sink", 1)
CREATE = {"stream.create": "true"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsProcess]:
    with nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


def test_an_epoch_is_stored_once_by_the_last_attempt(server: NatsProcess) -> None:
    old, new = target(server, "once", **CREATE), target(server, "once")
    old.fence([ONE])
    old.commit(ONE, 1, numbers(1, 2))
    assert stored(server, "once") == [1, 2] and old.last_committed(ONE) == 1
    new.fence([ONE, TWO])
    with pytest.raises(PenstockError, match="STA-3504"):
        old.commit(ONE, 2, numbers(3))
    new.commit(ONE, 2, numbers(3))
    new.commit(TWO, 2, [])
    assert stored(server, "once") == [1, 2, 3] and new.last_committed(TWO) == 2
    assert len(server.stored("once", "penstock.epochs.>")) == 2, "a writer's former notes are gone"
    new.retire(ONE)
    assert len(server.stored("once", "penstock.epochs.>")) == 1
    old.close()
    new.close()


def test_a_batch_in_flight_when_a_later_attempt_fences_is_refused(
    server: NatsProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = target(server, "zombie", **CREATE), target(server, "zombie")
    old.fence([ONE])
    real = old._check_note

    def fenced_behind_the_look(*args: Any) -> None:
        real(*args)
        new.fence([ONE])

    monkeypatch.setattr(old, "_check_note", fenced_behind_the_look)
    with pytest.raises(PenstockError, match="STA-3504"):
        old.commit(ONE, 1, numbers(1))
    new.commit(ONE, 1, numbers(1))
    assert stored(server, "zombie") == [1]


def test_a_large_epoch_that_breaks_off_is_completed(
    server: NatsProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = list(range(2 * _AT_ONCE + 10))
    first = target(server, "large", **CREATE)
    first.fence([ONE])
    real, calls = first._store, list[Any]()

    def breaks(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 3:
            raise PenstockError("DAT-5901", "gone")
        return real(*args)

    monkeypatch.setattr(first, "_store", breaks)
    with pytest.raises(PenstockError, match="DAT-5901"):
        first.commit(ONE, 1, [*numbers(*values[:700]), *numbers(*values[700:])])
    assert len(stored(server, "large")) == 2 * _AT_ONCE and first.last_committed(ONE) == 0
    second = target(server, "large", origin=1)
    second.fence([ONE])
    second.commit(ONE, 1, numbers(*values))
    assert stored(server, "large") == values and second.last_committed(ONE) == 1


def test_a_batch_whose_answer_is_lost_is_not_stored_again(server: NatsProcess) -> None:
    first = target(server, "answer", **CREATE)
    first.fence([ONE])
    first.commit(ONE, 1, numbers(1, 2))
    # as the sink does after an error whose outcome is unknown
    assert first.last_committed(ONE) == 1
    with pytest.raises(PenstockError, match="STA-3504"):
        stale = first._noted(ONE)
        first._add(ONE, type(stale)(1, stale.attempt), [b'{"n": 3}'])
    assert stored(server, "answer") == [1, 2]


def test_a_note_that_is_gone_is_reported(server: NatsProcess) -> None:
    first = target(server, "gone", **CREATE)
    first.fence([ONE])
    first.commit(ONE, 1, numbers(1))
    server.ask("STREAM.PURGE.gone")
    restored = target(server, "gone", origin=1)
    restored.fence([ONE])
    with pytest.raises(PenstockError, match=r"DAT-5906.*rows of checkpoint 1 might be written twice"):
        restored.commit(ONE, 1, numbers(1))
    restored.commit(ONE, 2, numbers(2))
    assert stored(server, "gone") == [2]


def test_a_stream_without_batches_is_refused_or_changed(server: NatsProcess) -> None:
    server.create("plain", "plain.>", max_msgs=1_000)
    with pytest.raises(PenstockError, match=r"DAT-5905.*cannot take rows exactly once"):
        target(server, "plain")
    changed = target(server, "plain", **CREATE)
    changed.fence([ONE])
    changed.commit(ONE, 1, numbers(1))
    config = server.ask("STREAM.INFO.plain")["config"]
    assert config["subjects"] == ["plain.>", "penstock.epochs.plain.*"] and config["max_msgs"] == 1_000
    assert rest(opened(server, "plain", **{"scan.bounded.mode": "latest"})) == [1], "notes are no rows"
    with pytest.raises(PenstockError, match="DAT-5904"):
        target(server, "nowhere")
    with pytest.raises(PenstockError, match=r"DAT-5904.*plain does not have the subject elsewhere") as raised:
        target(server, "plain", subject="elsewhere")
    assert "plain.>" in str(raised.value.hint)


def test_at_least_once_needs_no_batches(server: NatsProcess) -> None:
    server.create("simple", "simple.>")
    with penstock.connect() as connection:
        connection.execute(f"""CREATE TABLE t (n BIGINT) WITH ('connector'='nats','url'='{server.url}',
            'stream'='simple','subject'='simple.new','format'='json',
            'sink.delivery-guarantee'='at-least-once')""")
        connection.execute("INSERT INTO t SELECT * FROM (VALUES (1), (2), (3)) v(n)")
        with pytest.raises(PenstockError, match=r"SQL-1512.*not one subject"):
            connection.execute(f"""CREATE TABLE many (n BIGINT) WITH ('connector'='nats',
                'url'='{server.url}','stream'='simple','subject'='simple.*','format'='json')""")
            connection.execute("INSERT INTO many VALUES (1)")
    assert stored(server, "simple") == [1, 2, 3]
    with penstock.connect() as connection:
        connection.execute(f"""CREATE TABLE t (n BIGINT) WITH ('connector'='nats','url'='{server.url}',
            'stream'='made','subject'='made.new','format'='json','stream.create'='true')""")
        connection.execute("INSERT INTO t VALUES (1)")
    assert stored(server, "made") == [1]
