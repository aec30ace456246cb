"""Power fails behind every operation of five checkpoints, with every outcome for what was not synced: nothing
acknowledged is ever lost.

A sync less, of any kind, leaves states that cannot be recovered: so the enumeration would see it. Old
checkpoints leave no file behind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.checkpoint.manifest import Manifest, OperatorEntry, decode_manifest
from penstock.engine.checkpoint.snapshot_format import read_state
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.storage.memory import MemoryStorage
from penstock.engine.task.incremental_snapshots import IncrementalSnapshots
from penstock.engine.task.messages import TaskId
from penstock.engine.task.operator_chain import OperatorSnapshot
from tests.harness.runtime.power_loss import Log, RecordingStorage, states_after
from tests.harness.runtime.simulation import FaultyStorage, PowerLoss
from tests.unit.engine.checkpoint.test_incremental import side

TASK = TaskId(0, 0)


class Writer:
    """A task and its coordinator in one: changes a state and checkpoints it."""

    def __init__(self, storage: MemoryStorage, seed: int) -> None:
        self.store = CheckpointStore(storage, "job")
        self.opened = self.store.open()
        self.state, self._change = side(retracting=False)
        self.increments, self._random = IncrementalSnapshots(True), Random(seed)
        self.next = self.opened.next_checkpoint_id

    def restore(self) -> None:
        assert self.opened.latest is not None
        if (table := read(self.store.storage, self.opened.latest)) is not None:
            self.state.restore(table)

    def checkpoint(self, expected: dict[int, pa.Table]) -> int:
        """Take, publish and clean up; return the checkpoint acknowledged by then."""
        self._change(self._random)
        number, self.next = self.next, self.next + 1
        expected[number] = ordered(self.state.snapshot())
        snapshot = OperatorSnapshot(
            "op", {"rows": self.increments.freeze("op", "rows", self.state, number)}, {"at": [{"n": number}]}
        )
        written = self.store.write_task(1, number, TASK, [snapshot])
        operators = (OperatorEntry("op", "join", True, 1),)
        self.store.publish(
            Manifest("job", 0, number, None, "periodic", 5, 128, "print", operators, (written,), frozenset())
        )
        self.increments.complete(number)
        return number


def ordered(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


def holds(storage: MemoryStorage, manifest: Manifest, expected: pa.Table) -> bool:
    found = read(storage, manifest)
    return expected.num_rows == 0 if found is None else ordered(found).equals(expected)


def read(storage: MemoryStorage, manifest: Manifest) -> pa.Table | None:
    (task,) = manifest.tasks
    return read_state(storage, task, task.increments("op", "rows"), 0, 128)


@pytest.fixture(scope="module")
def recorded() -> tuple[Log, list[int], dict[int, pa.Table]]:
    """The log of five checkpoints, what was acknowledged before each operation, and what each checkpoint
    holds.
    """
    storage, expected, marks = RecordingStorage(), {}, []
    writer = Writer(storage, 1)
    acknowledged = 0
    for _ in range(5):
        before = acknowledged
        acknowledged = writer.checkpoint(expected)
        marks += [before] * (len(storage.log) - len(marks))
        writer.store.retire()
        marks += [acknowledged] * (len(storage.log) - len(marks))
    return storage.log, [*marks, acknowledged], expected


def broken(
    recorded: tuple[Log, list[int], dict[int, pa.Table]],
    skipped: Callable[[str, tuple[Any, ...]], bool],
    *,
    all_states: bool = True,
) -> tuple[int, int]:
    """Return how many of how many states cannot be recovered to what was acknowledged; unless
    ``all_states``, no more are tried once one cannot.
    """
    log, acknowledged, expected = recorded
    count = wrong = 0
    for prefix in range(len(log) + 1):
        for disk in states_after(log, prefix, skipped):
            count += 1
            try:
                assert not holes(disk)
                latest = CheckpointStore(disk, "job").open().latest
                found = 0 if latest is None else latest.checkpoint_id
                right = found >= acknowledged[prefix] and (
                    latest is None or holds(disk, latest, expected[found])
                )
            except (PenstockError, AssertionError):
                right = False
            wrong += not right
            if wrong and not all_states:
                return wrong, count
    return wrong, count


def holes(storage: MemoryStorage) -> set[str]:
    """Return the files that manifests on storage list and that are not there, or not as long."""
    return {name for name in referenced(storage) if name not in storage.list()}


def test_no_state_after_power_loss_is_broken(recorded: tuple[Log, list[int], dict[int, pa.Table]]) -> None:
    wrong, count = broken(recorded, lambda verb, words: False)
    assert wrong == 0
    assert count > 200


def test_a_checkpoint_syncs_no_more_than_it_must(
    recorded: tuple[Log, list[int], dict[int, pa.Table]],
) -> None:
    """At most twice for each file, and four times for directories: a segment, the manifest and CURRENT are
    five at most.
    """
    log, marks, _ = recorded
    for number in range(1, 5):
        verbs = [verb for (verb, _), acknowledged in zip(log, marks, strict=False) if acknowledged == number]
        files = verbs.count("create")
        syncs = verbs.count("sync") + verbs.count("sync_directory")
        assert files == 3 and syncs <= 2 * files + 4


@pytest.mark.parametrize("name", ["seg-", "chk-", "CURRENT"])
def test_a_file_that_is_not_synced_is_seen(
    recorded: tuple[Log, list[int], dict[int, pa.Table]], name: str
) -> None:
    assert (
        broken(recorded, lambda verb, words: verb == "sync" and words[0].startswith(name), all_states=False)[
            0
        ]
        > 0
    )


@pytest.mark.parametrize("before", ["create", "delete", "rename"])
def test_a_directory_that_is_not_synced_is_seen(
    recorded: tuple[Log, list[int], dict[int, pa.Table]], before: str
) -> None:
    """Behind segments, behind manifests that were deleted, behind renames."""
    log, marks, expected = recorded
    kinds = {"create": ("sync",), "delete": ("delete",), "rename": ("rename",)}[before]
    kept = [
        i
        for i, (verb, _) in enumerate(log)
        if not (verb == "sync_directory" and i and log[i - 1][0] in kinds and i > 3)
    ]
    fewer = [log[i] for i in kept], [*(marks[i] for i in kept), marks[-1]], expected
    assert len(fewer[0]) < len(log)
    assert broken(fewer, lambda verb, words: False, all_states=False)[0] > 0


def test_renaming_alone_is_not_enough(recorded: tuple[Log, list[int], dict[int, pa.Table]]) -> None:
    log, marks, expected = recorded
    first = next(i for i, (verb, words) in enumerate(log) if verb == "rename" and words[1] == "CURRENT") + 1
    wrong, count = broken(
        (log[:first], marks[: first + 1], expected), lambda verb, words: verb in ("sync", "sync_directory")
    )
    assert wrong * 2 > count


def test_two_hundred_checkpoints_with_crashes_leave_only_what_is_referenced() -> None:
    random = Random(17)
    storage, expected = FaultyStorage(), {}
    left, acknowledged, crashes, taken = [0], 0, 0, 0

    def maybe(verb: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise PowerLoss

    while taken < 200:
        storage.before_operation = lambda verb: None
        writer = Writer(storage, random.randrange(10**9))
        if writer.opened.latest is not None:
            assert writer.opened.latest.checkpoint_id >= acknowledged
            assert holds(storage, writer.opened.latest, expected[writer.opened.latest.checkpoint_id])
            writer.restore()
        assert set(storage.list()) == set(referenced(storage))
        left[0], storage.before_operation = random.randrange(1, 120), maybe
        try:
            while taken < 200:
                acknowledged = writer.checkpoint(expected)
                taken += 1
                writer.store.retire()
        except PowerLoss:
            crashes += 1
            storage.before_operation = lambda verb: None
            storage.crash(random.randrange)
    assert crashes > 20
    assert set(storage.list()) == set(referenced(storage))
    assert len([name for name in storage.list() if name.startswith("chk-")]) == 2


def referenced(storage: MemoryStorage) -> Iterator[str]:
    """Yield what a job's directory should hold: its epoch, CURRENT, manifests, and the files these list."""
    for name in storage.list():
        if name == "CURRENT" or re.fullmatch(r"epoch-\d+", name):
            yield name
        elif name.endswith(".manifest.json"):
            yield name
            yield from (file.name for file in decode_manifest(name, storage.read(name)).files)
