"""Storage in an object store does what storage on a disk does, and keeps writers apart without a file lock.

Most of it runs on the library's own store in memory, which keeps conditions; one pass goes over the wire.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.locations import ObjectUrl
from penstock.engine.storage import object_store
from penstock.engine.storage.local import LocalStorage
from penstock.engine.storage.object_client import ObjectClient
from penstock.engine.storage.object_head import Holder
from penstock.engine.storage.object_store import ObjectStorage
from penstock.engine.storage.storage import Storage
from tests.harness.object_stores import moto_server

URL = ObjectUrl("s3", "bucket-of-tests", "jobs/a")
ELSEWHERE = Holder("another machine", 7, "1", 1)
Opener = Callable[[], Storage]


def on(store: Any, **more: Any) -> ObjectStorage:
    return ObjectStorage(URL, ObjectClient(store, "s3://bucket-of-tests"), **more)


def written(storage: Storage, name: str, data: bytes) -> None:
    storage.create(name)
    storage.append(name, data)
    storage.sync(name)


@pytest.fixture(params=["disk", "memory of the library", "moto"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Return what opens one and the same storage again and again."""
    if request.param == "disk":
        return lambda: LocalStorage(tmp_path)
    if request.param == "moto":
        server = moto_server()
        server.bucket(URL.bucket)
        url = URL / tmp_path.name
        return lambda: ObjectStorage(url, server.client(URL.bucket))
    store = MemoryStore()
    return lambda: on(store)


@pytest.mark.xdist_group("moto")
def test_the_verbs_mean_the_same_everywhere(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "PART_BYTES", 10)
    monkeypatch.setattr(object_store, "_INLINE_BYTES", 8)
    storage, reader = opener(), opener()
    storage.lock()
    written(storage, "small", b"abc")
    written(storage, "empty", b"")
    written(storage, "large", bytes(range(35)))
    for name, data in (("one.tmp", b"first"), ("two.tmp", b"the second one")):
        written(storage, name, data)
        storage.publish(name, "CURRENT")
    storage.sync_directory()
    for seen in (storage, reader):
        assert seen.list() == ["CURRENT", "empty", "large", "small"]
        assert seen.read("CURRENT") == b"the second one" and seen.size("CURRENT") == 14
        assert seen.read("CURRENT", 4, 6) == b"second"
        assert seen.read("small", 1) == b"bc" and seen.read("small", 2, 100) == b"c"
        assert seen.read("empty") == b"" and seen.size("empty") == 0
        assert seen.read("large") == bytes(range(35)) and seen.size("large") == 35
        assert seen.read("large", 8, 15) == bytes(range(8, 23)) and seen.read("large", 33, 9) == bytes(
            [33, 34]
        )
        for ask in (seen.size, seen.read):
            with pytest.raises(FileNotFoundError):
                ask("nothing")
    with pytest.raises(FileExistsError):
        written(opener(), "small", b"xyz")
    for name in ("large", "CURRENT", "small", "nothing"):
        storage.delete(name)
    assert storage.list() == opener().list() == ["empty"]
    storage.close()
    again = opener()
    again.lock()  # nobody holds it
    again.close()


@pytest.mark.xdist_group("moto")
def test_the_verbs_leave_no_other_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "PART_BYTES", 10)
    monkeypatch.setattr(object_store, "_INLINE_BYTES", 0)
    store = MemoryStore()
    storage = on(store)
    storage.lock()
    for number in range(3):
        written(storage, "manifest.tmp", bytes(20 + number))
        storage.publish("manifest.tmp", "chk-1.manifest.json")
    written(storage, "large", bytes(25))
    storage.create("broken-off")
    storage.append("broken-off", bytes(30))
    storage.delete("broken-off")
    keys = [found.key.removeprefix("jobs/a/") for found in storage.client.below("")]
    assert [key for key in keys if "@" in key] == ["chk-1.manifest.json@1-4"]
    assert keys[1:] == ["chk-1.manifest.json@1-4", "large.parts", *(f"large/00000{n}" for n in range(3))]


def test_parts_of_a_process_that_died_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "PART_BYTES", 10)
    store = MemoryStore()
    dead = on(store)
    dead.lock()
    written(dead, "whole", bytes(25))
    dead.create("half")
    dead.append("half", bytes(35))  # three parts are sent, nothing names them
    dead.client.put("jobs/a/chk-9.manifest.json@1-9", b"not swapped in")
    heir = on(store)
    heir.lock(take_over=True)
    keys = [found.key.removeprefix("jobs/a/") for found in heir.client.below("")]
    assert keys == ["HEAD", "whole.parts", *(f"whole/00000{n}" for n in range(3))]
    assert heir.read("whole") == bytes(25)


def test_a_writer_that_renews_is_not_superseded() -> None:
    store, clock = MemoryStore(), ManualClock()
    holder = on(store, clock=clock, holder=ELSEWHERE)
    holder.lock()

    def pause(seconds: float) -> None:
        clock.advance(seconds * 1e3)
        holder.renew()

    with pytest.raises(PenstockError) as refused:
        on(store, clock=clock, pause=pause).lock()
    assert refused.value.code == "STA-3001" and clock.now_ms < 12_000


def test_a_silent_writer_is_superseded_by_the_clock_of_the_one_that_waits() -> None:
    store, clock = MemoryStore(), ManualClock()
    # its clock is an hour ahead, and so says nothing about the other one
    silent = on(store, clock=ManualClock(3_600_000), holder=ELSEWHERE)
    silent.lock()
    told: list[str] = []
    client = ObjectClient(store, "s3://bucket-of-tests", told=told.append)
    heir = ObjectStorage(URL, client, clock=clock, pause=lambda s: clock.advance(s * 1e3))
    heir.lock()
    assert clock.now_ms == 30_000
    assert told == [
        "the state in s3://bucket-of-tests/jobs/a was not closed: it is taken over once its writer has been "
        "silent for 30 s"
    ]
    written(silent, "CURRENT.e1.tmp", b"stale")
    with pytest.raises(FileNotFoundError, match="taken over by another process"):
        silent.publish("CURRENT.e1.tmp", "CURRENT")
    assert heir.list() == []
    assert heir.renew()


def test_a_writer_of_this_machine_that_died_is_superseded_at_once() -> None:
    store = MemoryStore()
    me = Holder.new()
    dead = on(store, holder=Holder(me.machine, me.process, "0", 1))  # its number is a later process's
    dead.lock()
    assert not on(store).in_use()
    heir = on(store, pause=lambda _: pytest.fail("it waits"))
    heir.lock()
    assert on(store).in_use()
    heir.close()
    assert not on(store).in_use()


def test_two_writers_of_one_process_are_two() -> None:
    store, clock = MemoryStore(), ManualClock()
    first = on(store, clock=clock)
    first.lock()

    def pause(seconds: float) -> None:
        clock.advance(seconds * 1e3)
        first.renew()

    with pytest.raises(PenstockError, match="is in use by another process"):
        on(store, clock=clock, pause=pause).lock()


def test_a_takeover_is_noticed_at_the_next_renewal() -> None:
    store, clock = MemoryStore(), ManualClock()
    first = on(store, clock=clock)
    first.lock()
    on(store).lock(take_over=True)
    clock.advance(5_000)
    assert first.renew()  # it asks each ten seconds
    clock.advance(5_001)
    assert not first.renew()


def test_whoever_takes_over_wins_also_while_the_holder_publishes() -> None:
    store = MemoryStore()
    busy = on(store)
    busy.lock()
    heir = on(store)
    replace, lost = heir.client.replace, 0

    def raced(*arguments: Any) -> Any:
        nonlocal lost
        if lost < 3:
            lost += 1
            busy.renew(now=True)
        return replace(*arguments)

    heir.client.replace = raced  # type: ignore[method-assign]
    heir.lock(take_over=True)
    assert lost == 3 and not busy.renew(now=True)


def test_names_that_are_not_of_files_are_refused() -> None:
    storage = on(MemoryStore())
    for name in ("HEAD", "a.parts"):
        with pytest.raises(FileExistsError):
            storage.create(name)
    for name in ("a/b", "..", "a@1"):
        with pytest.raises(PenstockError, match="no file name"):
            storage.create(name)


def test_reads_that_follow_one_another_are_one_request() -> None:
    storage = on(MemoryStore())
    written(storage, "segment", bytes(4 << 20))
    before = storage.client.counts["gets"]
    for begin in range(0, 4 << 20, 1 << 18):
        assert storage.read("segment", begin, 1 << 18) == bytes(1 << 18)
    assert storage.client.counts["gets"] == before + 1
