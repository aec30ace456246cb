"""Checkpoints in an object store: the process dies at every request, before it or after it, and another takes
over at every request. Nothing acknowledged is lost, and what a stale writer does changes nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from obstore.store import MemoryStore

from penstock.catalog.errors import PenstockError
from penstock.engine.api.job_options import JobRecord
from penstock.engine.checkpoint.reader import CheckpointReader
from penstock.engine.checkpoint.savepoints import start_from, write_savepoint
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.storage import object_store
from penstock.engine.storage.object_client import ObjectClient, Version
from penstock.engine.storage.object_store import ObjectStorage
from tests.harness.object_stores import environment_of, moto_server
from tests.harness.runtime.simulation import PowerLoss
from tests.unit.engine.checkpoint.test_store import manifest
from tests.unit.engine.storage.test_object_store import URL

RECORD = JobRecord("job", ("INSERT ..",), "INSERT ..", (), 5, 1, "RUNNING", False)


class WatchedClient(ObjectClient):
    """Counts requests, and calls ``before`` and ``after`` with the number of each."""

    def __init__(self, store: Any) -> None:
        super().__init__(store, "s3://bucket-of-tests")
        self.number = 0
        self.before: Callable[[int], None] = lambda _: None
        self.after: Callable[[int], None] = lambda _: None

    def _tried(self, verb: str, key: str, attempt: Callable[[], Any]) -> Any:
        self.number += 1
        number = self.number
        self.before(number)
        result = super()._tried(verb, key, attempt)
        self.after(number)
        return result


def store_on(backing: Any) -> tuple[CheckpointStore, WatchedClient]:
    client = WatchedClient(backing)
    client.probed = True  # the probe leaves nothing; test_object_probe has it
    return CheckpointStore(ObjectStorage(URL, client), "job"), client


def life(store: CheckpointStore, acknowledged: list[int], count: int, *, take_over: bool = True) -> None:
    """Open, take some checkpoints, and close; note each that is reported."""
    number = store.open(take_over=take_over).next_checkpoint_id
    store.own("owner", "job")
    store.record_job(RECORD)
    for checkpoint_id in range(number, number + count):
        store.publish(manifest(store, checkpoint_id, rows=5))
        acknowledged.append(checkpoint_id)
        store.retire()
    store.close("FINISHED")


def requests_of_a_life(count: int) -> int:
    store, client = store_on(MemoryStore())
    life(store, [], count)
    return client.number


def test_a_death_at_every_request_loses_nothing_that_was_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # manifests as objects of their own, and segments in parts: the most requests there are
    monkeypatch.setattr(object_store, "_INLINE_BYTES", 700)
    monkeypatch.setattr(object_store, "PART_BYTES", 1500)
    total, deaths = requests_of_a_life(3), 0
    assert total > 40
    for number in range(1, total + 1):
        for moment in ("before", "after"):
            backing, acknowledged = MemoryStore(), list[int]()
            store, client = store_on(backing)

            def die(now: int, at: int = number) -> None:
                if now >= at:  # nothing of a dead process comes through
                    raise PowerLoss

            setattr(client, moment, die)
            with pytest.raises(PowerLoss):
                life(store, acknowledged, 3)
            deaths += 1
            heir, _ = store_on(backing)
            opened = heir.open(take_over=True)
            newest = 0 if opened.latest is None else opened.latest.checkpoint_id
            assert newest >= max(acknowledged, default=0), (number, moment)
            assert opened.next_checkpoint_id > newest
            heir.close()
            life(store_on(backing)[0], acknowledged, 2)
            leftovers_are_none(backing)
    assert deaths == 2 * total


def leftovers_are_none(backing: Any) -> None:
    """After a life that ends well, what is there is what its checkpoints need."""
    storage = ObjectStorage(URL, ObjectClient(backing, "s3://bucket-of-tests"))
    reader = CheckpointReader(storage)
    lines = reader.lines()
    assert len(lines) == 2 and not any(reader.damage(line.manifest) for line in lines if line.manifest)
    needed = {file.name for line in lines if line.manifest for file in line.manifest.files}
    found = {name for name in storage.list() if name.startswith("seg-")}
    assert found == needed
    assert len([name for name in storage.list() if name.startswith("epoch-")]) == 1


def overtaken(number: int, backing: Any) -> tuple[list[int], list[int], CheckpointStore]:
    """Let another process take over and take two checkpoints at the ``number``-th request of a life."""
    store, client = store_on(backing)
    mine: list[int] = []
    theirs: list[int] = []
    heirs: list[CheckpointStore] = []

    def overtake(now: int) -> None:
        if now == number:
            heir = store_on(backing)[0]
            heirs.append(heir)
            begun = heir.open(take_over=True)
            assert (0 if begun.latest is None else begun.latest.checkpoint_id) >= max(mine, default=0)
            for checkpoint_id in (begun.next_checkpoint_id, begun.next_checkpoint_id + 1):
                heir.publish(manifest(heir, checkpoint_id, rows=5))
                theirs.append(checkpoint_id)

    client.before = overtake
    with contextlib.suppress(PenstockError, OSError):
        life(store, mine, 3, take_over=False)
    return mine, theirs, heirs[0]


def current(backing: Any) -> int | None:
    """Return the checkpoint that a reader finds, None where it finds none that is whole."""
    reader = CheckpointReader(ObjectStorage(URL, ObjectClient(backing, "s3://bucket-of-tests")))
    try:
        found = reader.manifest()
    except (PenstockError, OSError):
        return None
    return None if reader.damage(found) else found.checkpoint_id


def test_a_stale_writer_changes_nothing_wherever_it_was_stopped() -> None:
    fenced = 0
    for number in range(2, requests_of_a_life(3) - 1):
        backing = MemoryStore()
        mine, theirs, heir = overtaken(number, backing)
        # what the stale one has reported, it had reported before it was overtaken
        assert not [checkpoint for checkpoint in mine if checkpoint >= theirs[0]], number
        fenced += len(mine) < 3
        assert current(backing) == theirs[-1], number
        heir.publish(manifest(heir, theirs[-1] + 1, rows=5))  # it goes on
    assert fenced > 25


def test_without_conditions_the_stale_writer_would_win(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(client: ObjectClient, key: str, data: bytes, expected: Version) -> Version:
        return client.put(key, data)

    monkeypatch.setattr(ObjectClient, "replace", careless)
    wrong = 0
    for number in range(2, requests_of_a_life(3) - 1):
        backing = MemoryStore()
        _, theirs, _ = overtaken(number, backing)
        wrong += current(backing) != theirs[-1]
    assert wrong > 0


@pytest.mark.xdist_group("moto")
def test_a_savepoint_goes_from_one_place_to_another_over_the_wire() -> None:
    server = moto_server()
    server.bucket(URL.bucket)
    with environment_of(server.environment):
        store = CheckpointStore(ObjectStorage(URL / "job", server.client(URL.bucket)), "job")
        store.open()
        store.publish(manifest(store, 1))
        with pytest.raises(PenstockError) as refused:
            other = ObjectStorage(URL / "job", server.client(URL.bucket), pause=lambda _: store.renew())
            other._clock = _Rushed(store)
            CheckpointStore(other, "job").open()
        assert refused.value.code == "STA-3001"
        store.close("FINISHED")
        target = write_savepoint(store.storage, "job", URL / "savepoints")
        assert str(target) == f"{URL}/savepoints/savepoint-job-1"
        with pytest.raises(PenstockError, match="it exists already"):
            write_savepoint(store.storage, "job", URL / "savepoints")
        heir = CheckpointStore(ObjectStorage(URL / "heir", server.client(URL.bucket)), "job")
        opened = start_from(target, heir, heir.open())
        assert opened.latest is not None and opened.latest.checkpoint_id == 1
        heir.close()


class _Rushed:
    """A clock that makes the holder of a lock renew at each look."""

    def __init__(self, store: CheckpointStore) -> None:
        self._storage = store.storage

    def wall_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> float:
        assert isinstance(self._storage, ObjectStorage)
        self._storage._renewed_ms = -1e9
        return 0.0
