"""Planted bugs: each a change of the running code, and the tests that must fail because of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import penstock.engine.checkpoint.snapshot_format
import penstock.engine.checkpoint.store
import penstock.engine.exchange.input_gate
import penstock.engine.exchange.watermark_merge
import penstock.engine.kernels.partition
import penstock.engine.windowing.late_row_filter
import penstock.engine.windowing.window_assigner
from penstock.engine.api.stream_elements import Barrier, Batch
from penstock.engine.checkpoint.coordinator import CheckpointCoordinator
from penstock.engine.checkpoint.restore import Restorer
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.exchange.barrier_alignment import Alignment
from penstock.engine.exchange.record_writer import TaskOutput
from penstock.engine.exchange.watermark_merge import WatermarkMerge
from penstock.engine.operators.join.regular_join import RegularJoinOperator
from penstock.engine.operators.sink import SinkOperator
from penstock.engine.operators.source.source import SourceOperator
from penstock.engine.operators.source.watermark_generator import WatermarkGeneratorOperator
from penstock.engine.operators.window.window_aggregate import WindowAggregateOperator
from penstock.engine.state.watermark_state import KeyGroupWatermarkState
from penstock.engine.storage.local import LocalStorage
from penstock.engine.storage.memory import MemoryStorage
from penstock.engine.task.messages import CheckpointComplete
from penstock.engine.task.task import Task

SIMULATION = ("tests/simulation/test_seeds.py",)
SWEEP = ("tests/fault_injection/test_failpoints.py", "-k", "killed_at")
POWER = ("tests/unit/engine/checkpoint/test_power_loss.py", "-k", "broken or two_hundred")


@dataclass(frozen=True)
class Mutant:
    """A bug, how it is planted, and the words pytest is given to run what must catch it."""

    name: str
    plant: Callable[[], None]
    caught_by: tuple[str, ...]
    quick: bool = False


def _set(owner: Any, name: str, value: Any) -> None:
    setattr(owner, name, value)


class Hasty(Alignment):
    """Lets a checkpoint through at the first barrier and ignores the others."""

    def on_barrier(self, channel: int, barrier: Barrier) -> Barrier | None:
        if barrier.checkpoint_id <= self.settled:
            return None
        self.settled = barrier.checkpoint_id
        return barrier


def _barriers_not_aligned() -> None:
    _set(penstock.engine.exchange.input_gate, "Alignment", Hasty)


def _snapshot_behind_the_barrier() -> None:
    checkpoint, barrier = Task._checkpoint, TaskOutput.barrier
    on_barrier = Alignment.on_barrier

    def forward_first(self: Task, checkpoint_id: int, then_stop: bool) -> None:
        self._output.barrier(checkpoint_id, then_stop)
        if self._gate is None and not self._output.blocked:
            self.chain.poll()
        self._output.__dict__["sent"] = checkpoint_id
        checkpoint(self, checkpoint_id, then_stop)

    def once(self: TaskOutput, checkpoint_id: int, *words: Any) -> None:
        if self.__dict__.get("sent") != checkpoint_id:
            barrier(self, checkpoint_id, *words)

    _set(Task, "_checkpoint", forward_first)
    _set(TaskOutput, "barrier", once)
    _set(Alignment, "on_barrier", on_barrier)


def _positions(by: int) -> Callable[[], None]:
    def plant() -> None:
        items = SourceOperator.snapshot_items

        def moved(self: SourceOperator) -> list[dict[str, Any]]:
            return [{**item, "position": _by(item["position"], by)} for item in items(self)]

        _set(SourceOperator, "snapshot_items", moved)

    return plant


def _by(position: Any, by: int) -> Any:
    return {"row": max(0, position["row"] + by)} if position and position.get("row") else position


def _commit_on_precommit() -> None:
    before = SinkOperator.before_barrier

    def hasty(self: SinkOperator, checkpoint_id: int, out: Any) -> None:
        before(self, checkpoint_id, out)
        self.on_checkpoint_complete(checkpoint_id)

    _set(SinkOperator, "before_barrier", hasty)


def _commit_before_the_manifest() -> None:
    complete = CheckpointCoordinator._complete_when_all_written

    def early(self: CheckpointCoordinator) -> None:
        pending = self.pending
        if pending is not None and not pending.awaiting and not pending.publishing:
            for task in sorted(self._tasks):
                self._send(task, CheckpointComplete(pending.checkpoint_id))
        complete(self)

    _set(CheckpointCoordinator, "_complete_when_all_written", early)


def _commits_forgotten() -> None:
    _set(SinkOperator, "restore_items", lambda self, items: self._writer.recover([]))


def _state_forgotten() -> None:
    _set(Restorer, "_restore_keyed", lambda self, chained: None)


def _no_sync(verb: str) -> Callable[[], None]:
    return lambda: _set(MemoryStorage, verb, lambda self, *names: None)


def _checksums_not_looked_at() -> None:
    _set(
        penstock.engine.checkpoint.snapshot_format,
        "read_checked",
        lambda storage, file, offset, length: storage.read(file.name, offset, length),
    )
    _set(penstock.engine.checkpoint.store, "check_file", lambda storage, file: None)


def _old_checkpoint_deleted_too_soon() -> None:
    publish = CheckpointStore.publish

    def hasty(self: CheckpointStore, manifest: Any) -> Any:
        for name in self.storage.list():
            if name.endswith(".manifest.json"):
                self.storage.delete(name)
        return publish(self, manifest)

    _set(CheckpointStore, "publish", hasty)


def _shared_files_not_counted() -> None:
    collect = CheckpointStore._collect_garbage

    def hasty(self: CheckpointStore, *, above_too: bool) -> None:
        collect(self, above_too=above_too)
        for name in self.storage.list():
            found = re.match(r"seg-e\d+-a\d+-c(\d+)-", name)
            if found and int(found[1]) < (self._current or 0):
                self.storage.delete(name)

    _set(CheckpointStore, "_collect_garbage", hasty)


def _rows_to_other_subtasks_than_their_state() -> None:
    partition = penstock.engine.kernels.partition.partition
    _set(
        penstock.engine.kernels.partition,
        "partition",
        lambda hashes, parallelism, groups: partition(hashes, parallelism, parallelism),
    )


def _fastest_watermark() -> None:
    _set(penstock.engine.exchange.watermark_merge, "min", max)


def _idle_ignored() -> None:
    _set(WatermarkMerge, "on_idle", lambda self, channel: [])


def _watermark_restored_too_high() -> None:
    restore = WatermarkGeneratorOperator.restore_items
    _set(
        WatermarkGeneratorOperator,
        "restore_items",
        lambda self, items: restore(self, [{**i, "watermark_us": i["watermark_us"] + 10**8} for i in items]),
    )


def _late(counted: bool, dropped: bool) -> Callable[[], None]:
    def plant() -> None:
        right = penstock.engine.windowing.late_row_filter.without_late

        def wrong(batch: Batch, late: Any, bounds: Any, metrics: Any, ends: Any = None) -> Batch:
            if not counted:
                late_rows, told = metrics.late_rows, right(batch, late, bounds, metrics, ends)
                metrics.late_rows = late_rows
                return told
            right(batch, late, bounds, metrics, ends)
            return batch if not dropped else right(batch, late, bounds, metrics, ends)

        for module in (
            penstock.engine.windowing.late_row_filter,
            penstock.engine.windowing.late_row_filter,
            penstock.engine.windowing.window_assigner,
        ):
            _set(module, "without_late", wrong)

    return plant


def _retractions_lost_in_joins() -> None:
    on_batch = RegularJoinOperator.on_batch

    def deaf(self: RegularJoinOperator, batch: Batch, port: int, out: Any) -> None:
        kept = batch if batch.weights is None else batch.filter(batch.weights > 0)
        on_batch(self, kept, port, out)

    _set(RegularJoinOperator, "on_batch", deaf)


def _windows_kept_after_their_end() -> None:
    _set(WindowAggregateOperator, "_free", lambda self, slices, ends, time_us: None)


def _windows_given_forgotten() -> None:
    """How far time had come above layers that were not written again."""
    _set(KeyGroupWatermarkState, "restore_items", lambda self, items: None)


def _epochs_not_looked_at() -> None:
    _set(CheckpointStore, "_check_epoch", lambda self: None)


def _older_writers_not_fenced() -> None:
    _set(CheckpointStore, "_fence_older", lambda self: None)


def _lock_never_lost() -> None:
    _set(LocalStorage, "renew", lambda self, now=False: True)


MUTANTS = (
    Mutant("barriers not aligned", _barriers_not_aligned, SIMULATION),
    Mutant("snapshot behind the barrier", _snapshot_behind_the_barrier, SIMULATION),
    Mutant("positions saved a row early", _positions(-1), SWEEP, quick=True),
    Mutant("positions saved a row late", _positions(1), SWEEP),
    Mutant("commit on pre-commit", _commit_on_precommit, SWEEP),
    Mutant("commit before the manifest", _commit_before_the_manifest, SIMULATION),
    Mutant("pending commits forgotten", _commits_forgotten, SWEEP),
    Mutant("state not restored", _state_forgotten, SWEEP),
    Mutant("files not synced", _no_sync("sync"), POWER),
    Mutant(
        "directories not synced",
        _no_sync("sync_directory"),
        ("tests/unit/engine/checkpoint/test_store.py", "-k", "power_loss_at_every"),
    ),
    Mutant(
        "checksums not looked at",
        _checksums_not_looked_at,
        ("tests/streaming/three_acts/test_bit_rot.py", "-k", "flipped or swapped"),
    ),
    Mutant("old checkpoint deleted too soon", _old_checkpoint_deleted_too_soon, SWEEP),
    Mutant("shared files not counted", _shared_files_not_counted, POWER),
    Mutant("rows to other subtasks than their state", _rows_to_other_subtasks_than_their_state, SWEEP),
    Mutant(
        "watermark of the fastest",
        _fastest_watermark,
        ("tests/unit/engine/exchange/test_input_gate.py",),
        quick=True,
    ),
    Mutant("idle channels hold time back", _idle_ignored, ("tests/unit/engine/exchange/test_input_gate.py",)),
    Mutant("watermark restored too high", _watermark_restored_too_high, SWEEP),
    Mutant(
        "late rows counted, not dropped",
        _late(counted=True, dropped=False),
        ("tests/unit/engine/operators/window/test_window_aggregate.py",),
    ),
    Mutant(
        "late rows dropped, not counted",
        _late(counted=False, dropped=True),
        ("tests/unit/engine/operators/window/test_window_aggregate.py",),
    ),
    Mutant(
        "retractions lost in joins",
        _retractions_lost_in_joins,
        ("tests/unit/engine/operators/join/test_regular_join.py",),
    ),
    Mutant(
        "windows kept after their end",
        _windows_kept_after_their_end,
        ("tests/generated/queries/test_state_at_zero.py",),
    ),
    Mutant(
        "windows given before a restore forgotten",
        _windows_given_forgotten,
        ("tests/unit/engine/operators/window/test_window_aggregate.py", "-k", "single_phase"),
    ),
    Mutant(
        "epochs not looked at",
        _epochs_not_looked_at,
        ("tests/unit/engine/checkpoint/test_store.py",),
        quick=True,
    ),
    Mutant(
        "older writers keep what they have staged",
        _older_writers_not_fenced,
        ("tests/unit/engine/checkpoint/test_store.py", "-k", "stopped_right_before"),
    ),
    Mutant(
        "a lock is never lost",
        _lock_never_lost,
        ("tests/fault_injection/test_recovery.py", "-k", "nobody_renews"),
    ),
)
