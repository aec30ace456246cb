"""Planted bugs the simulation must find: each a change of the running code."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

import penstock.engine.checkpoint.snapshot_format
import penstock.engine.checkpoint.store
import penstock.engine.exchange.input_gate
import penstock.engine.exchange.watermark_merge
import penstock.engine.kernels.partition
from penstock.engine.api.stream_elements import Barrier, Batch, Element
from penstock.engine.checkpoint.coordinator import CheckpointCoordinator
from penstock.engine.checkpoint.restore import Restorer
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.exchange.barrier_alignment import Alignment
from penstock.engine.exchange.channel import Channel
from penstock.engine.exchange.input_gate import InputGate
from penstock.engine.exchange.unaligned_barriers import ChannelStateCollection
from penstock.engine.network.frames import FrameReader
from penstock.engine.network.remote_channel import RemoteChannel
from penstock.engine.task.messages import CheckpointComplete
from penstock.engine.task.task import Task
from tests.harness.runtime.fakes import Ledger, LedgerSink, NumbersSource
from tests.simulation.disk import Disk
from tests.simulation.wires import Trouble

Plant = Callable[[pytest.MonkeyPatch], None]
OVERTAKING: dict[str, Any] = {
    "unaligned": True,
    "aligned_timeout_ms": 0,
    "channel_capacity": 1,
    "checkpoint_interval_ms": 3,
}
PROCESSES: dict[str, Any] = {"deployment": "processes", "task_slots": 1}
GARBLED = Trouble(changed=0.002, repeated=0.002)


class Hasty(Alignment):
    """Lets a checkpoint through at the first barrier and ignores the others."""

    def on_barrier(self, channel: int, barrier: Barrier) -> Barrier | None:
        if barrier.checkpoint_id <= self.settled:
            return None
        self.settled = barrier.checkpoint_id
        return barrier


def not_aligned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(penstock.engine.exchange.input_gate, "Alignment", Hasty)


def snapshot_behind_the_barrier(patch: pytest.MonkeyPatch) -> None:
    checkpoint = Task._checkpoint

    def late(self: Task, barrier: Barrier, *, ahead: bool = False) -> None:
        if self._gate is None and not self._output.blocked:
            sent = self._output.barrier(barrier, self._clock.monotonic_ms())
            self.chain.poll()  # what runs between a forwarded barrier and a snapshot taken too late
            self._output.barrier = lambda *words: sent  # type: ignore[method-assign]
            checkpoint(self, barrier, ahead=ahead)
            del self._output.barrier
        else:
            checkpoint(self, barrier, ahead=ahead)

    patch.setattr(Task, "_checkpoint", late)


def positions(by: int) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        items = NumbersSource.snapshot_items

        def moved(self: NumbersSource) -> list[dict[str, Any]]:
            return [
                {**item, "position": max(0, item["position"] + by)} if item["position"] else item
                for item in items(self)
            ]

        patch.setattr(NumbersSource, "snapshot_items", moved)

    return plant


def commit_on_precommit(patch: pytest.MonkeyPatch) -> None:
    before = LedgerSink.before_barrier

    def hasty(self: LedgerSink, checkpoint_id: int, out: Any) -> None:
        before(self, checkpoint_id, out)
        self.on_checkpoint_complete(checkpoint_id)

    patch.setattr(LedgerSink, "before_barrier", hasty)


def commit_before_the_manifest(patch: pytest.MonkeyPatch) -> None:
    complete = CheckpointCoordinator._complete_when_all_written

    def early(self: CheckpointCoordinator) -> None:
        pending = self.pending
        if pending is not None and not pending.awaiting and not pending.publishing:
            for task in sorted(self._tasks):
                self._send(task, CheckpointComplete(pending.checkpoint_id))
        complete(self)

    patch.setattr(CheckpointCoordinator, "_complete_when_all_written", early)


def committed_twice(patch: pytest.MonkeyPatch) -> None:
    commit = Ledger.commit

    def again(self: Ledger, transaction: str) -> None:
        if transaction in self.committed:
            self.committed[f"{transaction} again"] = self.committed[transaction]
        commit(self, transaction)

    patch.setattr(Ledger, "commit", again)


def commits_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LedgerSink, "restore_items", lambda self, items: None)


def state_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Restorer, "_restore_keyed", lambda self, chained: None)


def without(owner: type, verb: str) -> Plant:
    return lambda patch: patch.setattr(owner, verb, lambda self, *words: None)


def checksums_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        penstock.engine.checkpoint.snapshot_format,
        "read_checked",
        lambda storage, file, offset, length: storage.read(file.name, offset, length),
    )
    patch.setattr(penstock.engine.checkpoint.store, "check_file", lambda storage, file: None)


def old_checkpoint_deleted_too_soon(patch: pytest.MonkeyPatch) -> None:
    publish = CheckpointStore.publish

    def hasty(self: CheckpointStore, manifest: Any) -> Any:
        for name in self.storage.list():
            if name.endswith(".manifest.json"):
                self.storage.delete(name)
        return publish(self, manifest)

    patch.setattr(CheckpointStore, "publish", hasty)


def shared_files_not_counted(patch: pytest.MonkeyPatch) -> None:
    collect = CheckpointStore._collect_garbage

    def hasty(self: CheckpointStore, *, above_too: bool) -> None:
        collect(self, above_too=above_too)
        for name in self.storage.list():
            found = re.match(r"seg-e\d+-a\d+-c(\d+)-", name)
            if found and int(found[1]) < (self._current or 0):
                self.storage.delete(name)

    patch.setattr(CheckpointStore, "_collect_garbage", hasty)


def rows_to_other_subtasks(patch: pytest.MonkeyPatch) -> None:
    partition = penstock.engine.kernels.partition.partition
    patch.setattr(
        penstock.engine.kernels.partition,
        "partition",
        lambda hashes, parallelism, groups: partition(hashes, parallelism, parallelism),
    )


def fastest_watermark(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(penstock.engine.exchange.watermark_merge, "min", max, raising=False)


def rows_of_a_channel_forgotten(patch: pytest.MonkeyPatch) -> None:
    found = ChannelStateCollection.add_before_barrier

    def forgetful(self: ChannelStateCollection, index: int, queued: Sequence[Element]) -> None:
        found(self, index, () if index == 0 else queued)

    patch.setattr(ChannelStateCollection, "add_before_barrier", forgetful)


def rows_before_a_late_barrier_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChannelStateCollection, "record", lambda self, index, batch: None)


def rows_put_back_twice(patch: pytest.MonkeyPatch) -> None:
    put_back = InputGate.put_back

    def twice(self: InputGate, port: int, source: int, batches: Sequence[Batch]) -> None:
        put_back(self, port, source, [*batches, *batches])

    patch.setattr(InputGate, "put_back", twice)


def overtaken_on_the_wire_forgotten(patch: pytest.MonkeyPatch) -> None:
    overtake = RemoteChannel.overtake

    def forgetful(self: RemoteChannel, barrier: Barrier) -> list[Element]:
        overtake(self, barrier)
        return []

    patch.setattr(RemoteChannel, "overtake", forgetful)


def epochs_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CheckpointStore, "_check_epoch", lambda self, names=None: None)


def frames_not_checked(patch: pytest.MonkeyPatch) -> None:
    begin = FrameReader.__init__
    patch.setattr(
        FrameReader,
        "__init__",
        lambda self, max_payload=2**27, *, checksum=True: begin(self, max_payload, checksum=False),
    )


def wake_up_lost(patch: pytest.MonkeyPatch) -> None:
    def take(self: Channel) -> Element:
        element = self._queue.popleft()
        self._taken_bytes += element.size_bytes if isinstance(element, Batch) else 0
        return element

    patch.setattr(Channel, "take", take)


@dataclass(frozen=True)
class Planted:
    """A bug, and what makes it likelier to matter; ``first``: seeds to begin with, for what is seldom."""

    plant: Plant
    fixed: dict[str, Any] = field(default_factory=dict)
    trouble: Trouble | None = None
    first: tuple[int, ...] = ()


PLANTED: dict[str, Planted] = {
    "barriers not aligned": Planted(not_aligned, first=(1,)),
    "snapshot behind the barrier": Planted(snapshot_behind_the_barrier),
    "positions saved a row early": Planted(positions(-1)),
    "positions saved a row late": Planted(positions(1)),
    "commit on pre-commit": Planted(commit_on_precommit),
    "commit before the manifest": Planted(commit_before_the_manifest, first=(2,)),
    "committed twice": Planted(committed_twice, first=(3,)),
    "pending commits forgotten": Planted(commits_forgotten, first=(25,)),
    "state not restored": Planted(state_forgotten),
    "files not synced": Planted(without(Disk, "sync"), first=(4,)),
    "directories not synced": Planted(without(Disk, "sync_directory"), first=(4,)),
    "checksums not looked at": Planted(checksums_not_looked_at, first=(6,)),
    "old checkpoint deleted too soon": Planted(old_checkpoint_deleted_too_soon, first=(0,)),
    "shared files not counted": Planted(shared_files_not_counted, first=(12,)),
    "rows to other subtasks than their state": Planted(rows_to_other_subtasks, first=(0,)),
    "watermark of the fastest": Planted(fastest_watermark),
    "rows in flight of a channel forgotten": Planted(rows_of_a_channel_forgotten, OVERTAKING, first=(1,)),
    "rows before a late barrier forgotten": Planted(
        rows_before_a_late_barrier_forgotten, OVERTAKING, first=(21,)
    ),
    "rows in flight put back twice": Planted(rows_put_back_twice, OVERTAKING, first=(1,)),
    "rows overtaken before the wire forgotten": Planted(
        overtaken_on_the_wire_forgotten, {**OVERTAKING, **PROCESSES}, first=(5,)
    ),
    "epochs not looked at": Planted(epochs_not_looked_at, first=(16,)),
    "older writers keep what they have staged": Planted(without(CheckpointStore, "_fence_older"), first=(6,)),
    "frames not checked": Planted(frames_not_checked, PROCESSES, GARBLED, first=(17,)),
    "a full channel wakes nobody": Planted(
        wake_up_lost, {"channel_capacity": 1, "deployment": "embedded"}, first=(63,)
    ),
}
