"""Checkpoints on storage: published whole or not at all, checked before use, read by key group, fenced by
epoch, cleaned by reachability.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.checkpoint.job_directory import OWNER
from penstock.engine.checkpoint.manifest import Manifest, OperatorEntry, decode_manifest, encode_manifest
from penstock.engine.checkpoint.snapshot_format import WrittenTask, read_items, read_state
from penstock.engine.checkpoint.snapshot_writer import PIECE_BYTES, SnapshotWriter
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.storage.local import LocalStorage
from penstock.engine.storage.memory import MemoryStorage
from penstock.engine.task.messages import TaskId
from penstock.engine.task.operator_chain import OperatorSnapshot
from tests.harness.runtime.simulation import FaultyStorage, PowerLoss


def written_by(storage: MemoryStorage, operators: list[OperatorSnapshot]) -> WrittenTask:
    return SnapshotWriter(storage, 1, 1).write(1, TaskId(0, 0), operators)


def table(rows: int, groups: int = 8, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "key_group": np.sort(random.integers(0, groups, rows)).astype(np.uint16),
            "value": np.arange(rows),
            "text": [f"row {i}" for i in range(rows)],
        }
    )


def snapshot(rows: int = 100, items: int = 3) -> list[OperatorSnapshot]:
    return [
        OperatorSnapshot("agg", {"sums": table(rows)}, {}),
        OperatorSnapshot("sink", {}, {"pending": [{"n": i} for i in range(items)]}),
    ]


def manifest(store: CheckpointStore, checkpoint_id: int, rows: int = 100) -> Manifest:
    parts = tuple(
        store.write_task(1, checkpoint_id, TaskId(0, subtask), snapshot(rows)) for subtask in range(2)
    )
    operators = (OperatorEntry("agg", "sum", True, 2), OperatorEntry("sink", "files", True, 2))
    return Manifest(
        "job", 0, checkpoint_id, None, "periodic", 5, 8, "print", operators, parts, frozenset({TaskId(0, 1)})
    )


def opened(storage: MemoryStorage | LocalStorage) -> CheckpointStore:
    store = CheckpointStore(storage, "job")
    store.open()
    return store


def test_any_range_of_key_groups_is_read_without_the_rest() -> None:
    storage = MemoryStorage()
    whole = table(10_000)
    written = written_by(storage, [OperatorSnapshot("agg", {"sums": whole}, {})])
    (file,), (part,) = written.files, written.keyed
    assert len(part.groups) == 3 and max(entry.length for entry in part.groups) < 3 * PIECE_BYTES
    for start, end in itertools.combinations(range(9), 2):
        mask = (whole["key_group"].to_numpy() >= start) & (whole["key_group"].to_numpy() < end)
        found = read_state(storage, written, [part], start, end)
        assert found is not None and found.combine_chunks().equals(
            whole.filter(pa.array(mask)).combine_chunks()
        )
    assert read_state(storage, written, [part], 8, 9) is None
    everything = pa.ipc.open_stream(storage.read(file.name)).read_all().combine_chunks()
    assert everything.equals(whole)  # any Arrow reader can read the segment


def test_items_come_back_and_tasks_without_state_write_no_file() -> None:
    storage = MemoryStorage()
    written = written_by(storage, snapshot(0, items=5))
    (file,) = written.files
    assert read_items(storage, file, written.items[0]) == [{"n": i} for i in range(5)]
    assert SnapshotWriter(storage, 1, 2).write(1, TaskId(0, 1), [OperatorSnapshot("pass")]).files == ()
    assert storage.list() == [file.name]


def test_unordered_key_groups_are_refused() -> None:
    backwards = pa.table({"key_group": np.array([2, 1], np.uint16)})
    with pytest.raises(PenstockError, match="not ordered by key group"):
        written_by(MemoryStorage(), [OperatorSnapshot("agg", {"sums": backwards}, {})])


def test_manifest_survives_its_encoding() -> None:
    store = opened(MemoryStorage())
    given = manifest(store, 1)
    assert decode_manifest("m", encode_manifest(given)) == given


def test_newer_formats_are_refused_naming_both() -> None:
    from penstock.engine.checkpoint.manifest import unseal
    from penstock.engine.storage.sealed_json import seal

    store = opened(MemoryStorage())
    fields = unseal("m", encode_manifest(manifest(store, 1)))
    with pytest.raises(
        PenstockError,
        match=r"format penstock-checkpoint \[2, 0\]; this engine reads penstock-checkpoint 1.x up to 1.4",
    ) as refused:
        decode_manifest("m", seal({**fields, "version": [2, 0]}))
    known = "this engine reads penstock-checkpoint 1.x up to 1.4 with layers, passed times"
    with pytest.raises(PenstockError, match=f"format 1.7 requires ribbons; {known}"):
        decode_manifest("m", seal({**fields, "version": [1, 7], "requires": ["layers", "ribbons"]}))
    assert decode_manifest("m", seal({**fields, "version": [1, 7], "colour": "blue"})).checkpoint_id == 1
    assert refused.value.code == "STA-3006"


def test_every_flipped_bit_is_found_before_use() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    store.publish(manifest(store, 1, rows=300))
    random = Random(7)
    for name in [n for n in storage.list() if not n.startswith("epoch")]:
        data = storage._names[name].data
        for _ in range(60):
            position, bit = random.randrange(len(data)), 1 << random.randrange(8)
            data[position] ^= bit
            with pytest.raises(PenstockError) as found:
                read_all(store)
            assert found.value.code == "STA-3005"
            assert name in found.value.message
            data[position] ^= bit
    read_all(store)


@pytest.mark.parametrize("cut", [0, 1, 100])
def test_every_truncated_file_is_found(cut: int) -> None:
    storage = MemoryStorage()
    store = opened(storage)
    store.publish(manifest(store, 1))
    for name in [n for n in storage.list() if not n.startswith("epoch")]:
        data = bytes(storage._names[name].data)
        del storage._names[name].data[cut:]
        with pytest.raises(PenstockError):
            read_all(store)
        storage._names[name].data[:] = data


def test_swapped_and_missing_files_are_found() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    given = manifest(store, 1)
    store.publish(given)
    first, second = (file.name for file in given.files)
    data = storage._names[first].data
    data[64:80] = bytes(16)
    storage._names[first], storage._names[second] = storage._names[second], storage._names[first]
    with pytest.raises(PenstockError, match=r"seg-.* is damaged"):
        read_all(store)
    storage.delete(first)
    with pytest.raises(PenstockError, match=first):
        store.latest()


def test_a_damaged_checkpoint_names_the_intact_one() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    for number in (1, 2):
        store.publish(manifest(store, number))
    storage._names["chk-2.manifest.json"].data[10] ^= 1
    with pytest.raises(PenstockError) as found:
        store.latest()
    assert "checkpoint 1 (chk-1.manifest.json) is intact" in (found.value.hint or "")


def test_asked_for_a_damaged_checkpoint_gives_way_to_the_intact_one() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    for number in (1, 2):
        store.publish(manifest(store, number))
    storage._names["chk-2.manifest.json"].data[10] ^= 1
    asked = CheckpointStore(storage, "job", fallback=True)
    found = asked.open()
    assert found.latest is not None and (found.latest.checkpoint_id, found.next_checkpoint_id) == (1, 3)
    assert "to checkpoint 1, for checkpoint file chk-2.manifest.json is damaged" in (asked.fell_back or "")
    assert "chk-2.manifest.json" in storage.list()  # until the next one is durable
    asked.publish(manifest(asked, 3))
    asked.retire()
    assert [name for name in storage.list() if name.startswith("chk-")] == [
        "chk-1.manifest.json",
        "chk-3.manifest.json",
    ]
    storage._names["chk-1.manifest.json"].data[10] ^= 1
    storage._names["chk-3.manifest.json"].data[10] ^= 1
    with pytest.raises(PenstockError, match="chk-3"):
        CheckpointStore(storage, "job", fallback=True).open()


def read_all(store: CheckpointStore) -> None:
    latest = store.latest()
    assert latest is not None
    for task in latest.tasks:
        for key in {part.key for part in task.keyed}:
            read_state(store.storage, task, task.increments(*key), 0, 8)
        for items in task.items:
            read_items(store.storage, task.file_of(items), items)


def test_a_newer_epoch_fences_the_older_writer() -> None:
    storage = MemoryStorage()
    old = opened(storage)
    old.publish(manifest(old, 1))
    new = opened(storage)
    assert (old.epoch, new.epoch) == (1, 2)
    with pytest.raises(PenstockError, match="superseded by epoch 2") as refused:
        old.publish(manifest(old, 2))
    assert refused.value.code == "STA-3002"
    with pytest.raises(PenstockError):
        old.record_finished(1)
    new.publish(manifest(new, 2))
    latest = new.latest()
    assert latest is not None
    assert (latest.checkpoint_id, latest.epoch, latest.parent) == (2, 2, 1)


class StoppedStorage(MemoryStorage):
    """Stops who renames a file to ``target`` right before that, and lets ``meanwhile`` happen."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target
        self.meanwhile: Callable[[], None] | None = None

    def publish(self, name: str, target: str) -> None:
        if target == self.target and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        super().publish(name, target)


def resumed_behind_its_last_look(target: str) -> tuple[str, Manifest | None]:
    """Stop an old writer of checkpoint 2 between its look at the epoch and a rename, until a new one has
    published; return its error, the newest.
    """
    storage = StoppedStorage(target)
    old = opened(storage)
    old.publish(manifest(old, 1))

    def taken_over() -> None:
        new = CheckpointStore(storage, "job")
        number = new.open().next_checkpoint_id
        new.publish(manifest(new, number, rows=7))
        new.publish(manifest(new, number + 1, rows=7))

    storage.meanwhile = taken_over
    code = ""
    try:
        old.publish(manifest(old, 2))
    except PenstockError as error:
        code = error.code
    return code, CheckpointStore(storage, "job").open().latest


@pytest.mark.parametrize("target", ["CURRENT", "chk-2.manifest.json"])
def test_an_old_writer_stopped_right_before_a_rename_renames_nothing(target: str) -> None:
    code, newest = resumed_behind_its_last_look(target)
    assert code == "STA-3002"
    assert newest is not None and newest.epoch == 2
    assert sum(file.length for file in newest.files) > 0


def test_without_the_fence_the_old_writer_sets_current_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckpointStore, "_fence_older", lambda self: None)
    # it names what the new one has thrown away
    with pytest.raises(PenstockError, match=r"chk-2.manifest.json is damaged"):
        resumed_behind_its_last_look("CURRENT")


def test_a_rename_before_the_fence_is_what_the_new_writer_goes_on_from() -> None:
    """The old one is quicker: it renames while the new one, which has read CURRENT already, makes its
    epoch known.
    """
    storage = MemoryStorage()
    old = opened(storage)
    old.publish(manifest(old, 1))
    new = CheckpointStore(storage, "job")
    begin = new._begin_epoch
    new._begin_epoch = lambda epoch: (old.publish(manifest(old, 2)), begin(epoch))[1]  # type: ignore[method-assign]
    latest = new.open().latest
    assert latest is not None and latest.checkpoint_id == 2


def test_a_new_writer_stopped_while_it_opens_takes_nothing_from_a_newer_one() -> None:
    storage = MemoryStorage()
    first = opened(storage)
    first.publish(manifest(first, 1))
    slow, newest = CheckpointStore(storage, "job"), CheckpointStore(storage, "job")
    know = slow._know_manifests

    def taken_over(numbers: Sequence[int]) -> None:
        know(numbers)
        newest.open()
        newest.publish(manifest(newest, 5))

    slow._know_manifests = taken_over  # type: ignore[method-assign]
    with pytest.raises(PenstockError) as refused:
        slow.open()
    assert refused.value.code == "STA-3002"
    read_all(newest)


def test_the_lock_keeps_a_second_process_out(tmp_path: Path) -> None:
    first, second = (CheckpointStore(LocalStorage(tmp_path), "job") for _ in range(2))
    first.open()
    with pytest.raises(PenstockError) as refused:
        second.open()
    assert refused.value.code == "STA-3001"
    first.close()
    second.open()
    second.close()


def test_another_jobs_directory_is_refused(tmp_path: Path) -> None:
    store = opened(LocalStorage(tmp_path))
    store.publish(manifest(store, 1))
    store.close()
    with pytest.raises(PenstockError) as refused:
        CheckpointStore(LocalStorage(tmp_path), "other").open()
    assert refused.value.code == "STA-3010"


def test_only_what_no_retained_checkpoint_needs_is_deleted_and_only_ours(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    store = opened(storage)
    (tmp_path / "notes.txt").write_text("mine")
    for number in range(1, 6):
        store.publish(manifest(store, number))
        store.retire()
    store.write_task(1, 6, TaskId(0, 0), snapshot())  # the next checkpoint's: stays while the job runs
    store.retire()
    segments = [f"seg-e1-a1-c{number}-t0.{subtask}" for number in (4, 5) for subtask in (0, 1)]
    expected = [
        "CURRENT",
        "chk-4.manifest.json",
        "chk-5.manifest.json",
        "epoch-1",
        "notes.txt",
        *segments,
        "seg-e1-a1-c6-t0.0",
    ]
    assert storage.list() == sorted(expected)
    store.close()
    assert CheckpointStore(LocalStorage(tmp_path), "job").open().next_checkpoint_id == 6
    assert LocalStorage(tmp_path).list() == sorted({*expected, "epoch-2"} - {"epoch-1", "seg-e1-a1-c6-t0.0"})


def broken_recoveries(storage_class: type[FaultyStorage]) -> int:
    """Pull the plug at every operation with a dozen outcomes each; count recoveries that find neither the
    old nor the new checkpoint whole.
    """
    broken = 0
    for stop_at, seed in itertools.product(range(40), range(8)):
        storage = storage_class()
        store = opened(storage)
        store.publish(manifest(store, 1))
        storage.crash(lambda outcomes: outcomes - 1)  # everything so far has long reached the disk
        acknowledged = publish_until(storage, store, stop_at)
        storage.crash(Random(seed).randrange)
        try:
            again = opened(storage)
            latest = again.latest()
            read_all(again)
            broken += latest is None or latest.checkpoint_id < acknowledged
        except (PenstockError, AssertionError):
            broken += 1
    assert acknowledged == 2
    return broken


def publish_until(storage: FaultyStorage, store: CheckpointStore, stop_at: int) -> int:
    """Publish a second checkpoint until power is lost at the given operation; return the last checkpoint
    anybody was told of.
    """
    left = iter(range(stop_at))
    acknowledged = 1

    def lose_power(verb: str) -> None:
        if next(left, None) is None:
            raise PowerLoss

    storage.before_operation = lose_power
    try:
        store.publish(manifest(store, 2))
        acknowledged = 2
        store.retire()
    except PowerLoss:
        pass
    storage.before_operation = lambda verb: None
    return acknowledged


def test_power_loss_at_every_operation_leaves_a_whole_checkpoint() -> None:
    assert broken_recoveries(FaultyStorage) == 0


class NoSync(FaultyStorage):
    def sync(self, name: str) -> None:
        self.before_operation("sync")


class NoDirectorySync(FaultyStorage):
    def sync_directory(self) -> None:
        self.before_operation("sync_directory")


@pytest.mark.parametrize("careless", [NoSync, NoDirectorySync])
def test_a_skipped_sync_is_caught(careless: type[FaultyStorage]) -> None:
    assert broken_recoveries(careless) > 0


def test_names_cannot_leave_the_directory(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "a")
    for name in ("../x", "a/b", "..", "", "x" * 201, "\0"):
        with pytest.raises(PenstockError) as refused:
            storage.read(name)
        assert refused.value.code == "STA-3003"
    (tmp_path / "secret").write_text("s")
    (tmp_path / "a" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        storage.read("link")


def test_the_owner_is_drawn_once_for_a_directory_and_anew_for_a_copy(tmp_path: Path) -> None:
    def owner(directory: Path, drawn: str) -> str:
        store = opened(LocalStorage(directory))
        found = store.own(drawn)
        store.close()
        return found

    assert [owner(tmp_path / "state", drawn) for drawn in ("a", "b")] == ["a", "a"]
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    assert owner(tmp_path / "copy", "c") == "c"
    (tmp_path / "state").rename(tmp_path / "aside")
    (tmp_path / "copy").rename(tmp_path / "state")
    assert owner(tmp_path / "state", "d") == "d", "it stands where the other stood, and is not that one"
    (tmp_path / "state" / OWNER).write_bytes(b"torn")
    assert owner(tmp_path / "state", "e") == "e"
