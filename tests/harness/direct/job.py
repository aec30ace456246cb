"""A job driven by hand: one thread, a clock that stands still, barriers where the test wants them, state by
operator.

Each barrier's state goes through the layers of checkpoints: what has changed since the last one that was
completed, above what was written then. One of three is given up.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.client.session import Session
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Operator, Output, Services
from penstock.engine.api.stream_elements import Batch
from penstock.engine.checkpoint.snapshot_format import WrittenTask
from penstock.engine.checkpoint.snapshot_writer import SnapshotWriter
from penstock.engine.exchange.channel import no_wakeup
from penstock.engine.operators.factory import build_operator
from penstock.engine.storage.memory import MemoryStorage
from penstock.engine.storage.spill_files import SpillFiles
from penstock.engine.task.memory_budget import StateSize
from penstock.engine.task.messages import (
    CheckpointComplete,
    SnapshotCompleted,
    TaskEnded,
    TaskId,
    TaskReport,
    TriggerCheckpoint,
)
from penstock.engine.task.operator_chain import OperatorChain, OperatorSnapshot
from penstock.engine.task.task import Did, Task
from penstock.engine.task_manager.task_deployment import Deployer
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink
from penstock.planner.physical.operator_specs import JobGraph, OperatorSpec
from tests.harness.direct.feeds import FeedOperator, Feeds
from tests.harness.layered import EveryChange, read_whole

_NAN = float("nan")


@dataclass
class Changelog:
    """What came out: batch by batch, and folded. A sink's barrier notes where it stood."""

    folded: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    batches: list[Batch] = field(default_factory=list)

    def take(self, batch: Batch) -> None:
        self.batches.append(batch)
        rows = (
            list(zip(*(_values(column) for column in batch.rows.columns), strict=True))
            or [()] * batch.num_rows
        )
        weights = [1] * batch.num_rows if batch.weights is None else batch.weights.tolist()
        for row, weight in zip(rows, weights, strict=True):
            assert weight, f"{row} changes by nothing"
            self.folded[row] += weight
        for row in rows:
            assert self.folded[row] >= 0, f"{row} was taken back before it was given"
            if not self.folded[row]:
                del self.folded[row]


def _values(column: pa.Array) -> list[Any]:
    """The values of a column, each NaN the same object: Python finds a NaN by its identity alone."""
    values = column.to_pylist()
    if not pa.types.is_floating(column.type):
        return values
    return [_NAN if value != value else value for value in values]


class _Sink(Operator):
    def __init__(self, changelog: Changelog) -> None:
        self._changelog = changelog

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        self._changelog.take(batch)


@dataclass(frozen=True)
class Snapshot:
    """The state of all tasks at one barrier, and which had ended by then."""

    operators: tuple[OperatorSnapshot, ...]
    ended: frozenset[str]

    def rows(self) -> dict[str, int]:
        """How many entries each operator keeps, those of its keyed states."""
        kept: Counter[str] = Counter()
        for operator in self.operators:
            for table in operator.keyed.values():
                kept[operator.operator_id] += table.num_rows
        return dict(kept)


class DirectJob:
    """One deployment of a graph. ``advance`` gives rows up to a cut, ``barrier`` takes a snapshot, ``finish``
    runs to the end.

    With ``files`` all state that may go to disk goes there whenever tasks have worked.
    """

    def __init__(
        self,
        graph: JobGraph,
        feeds: Feeds,
        *,
        snapshot: Snapshot | None = None,
        changelog: Changelog | None = None,
        batch_rows: int = 9,
        capacity: int = 8,
        order: Sequence[int] = (),
        files: SpillFiles | None = None,
    ) -> None:
        self.changelog = changelog or Changelog()
        self.graph = graph
        self._feeds = feeds
        self._clock = ManualClock(1_000)
        self._reports: deque[TaskReport] = deque()
        self._checkpoint = 0
        self._final: dict[TaskId, tuple[OperatorSnapshot, ...]] = {}
        self._storage = MemoryStorage()
        self._writer = SnapshotWriter(self._storage, 1, 1)
        options = JobOptions(batch_max_rows=batch_rows, buffer_timeout_ms=0, channel_capacity=capacity)
        deployer = Deployer(
            graph,
            options,
            Services(feeds),
            self._clock,
            self._build,
            keep_snapshots=True,
            job_id="direct",
            owner="direct",
        )
        self._tasks = deployer.tasks(1, None, 0, self._reports.append, lambda _: no_wakeup)
        for task in self._tasks:
            task.chain._incremental = EveryChange(True)
        self._files = files
        self._order = list(order)
        if snapshot is not None:
            for task in self._tasks:
                self._give_back(task, snapshot)

    def _build(self, spec: OperatorSpec, options: JobOptions) -> Operator:
        if isinstance(spec.node, Sink):
            return _Sink(self.changelog)
        return FeedOperator(spec) if isinstance(spec.node, Scan) else build_operator(spec, options)

    def _give_back(self, task: Task, snapshot: Snapshot) -> None:
        task._restore = lambda chain, gate: _restore(chain, snapshot)
        task._finished = all(
            chained.context.operator_id in snapshot.ended for chained in task.chain.operators
        )

    def advance(self, cut: int) -> None:
        """Give every split up to ``cut`` changes, and let all of it be worked on."""
        self._feeds.cut, self._feeds.ending = cut, False
        self._settle()

    def finish(self) -> Counter[tuple[Any, ...]]:
        """Run to the end; return what the changes add up to."""
        self._feeds.cut, self._feeds.ending = 1 << 60, True
        self._settle()
        left = [task.task_id for task in self._tasks if task.phase.value != "ended"]
        assert not left, f"tasks {left} do not end"
        self.close()
        return self.changelog.folded

    def barrier(self) -> Snapshot:
        """Send a barrier through everything; return the state there."""
        self._checkpoint += 1
        for task in self._tasks:
            if task.is_source:
                task.post(TriggerCheckpoint(self._checkpoint))
        self._settle()
        taken = dict(self._final)
        for report in self._drained():
            if isinstance(report, SnapshotCompleted):
                taken[report.task] = self._written(report.checkpoint_id, report.task, report.operators)
        assert len(taken) == len(self._tasks), "a barrier did not come through"
        if self._checkpoint % 3:
            for task in self._tasks:
                task.post(CheckpointComplete(self._checkpoint))
        by_id: dict[str, set[bool]] = {}
        for task in self._tasks:
            for chained in task.chain.operators:
                by_id.setdefault(chained.context.operator_id, set()).add(task.task_id in self._final)
        ended = frozenset(name for name, states in by_id.items() if states == {True})
        return Snapshot(tuple(operator for task in sorted(taken) for operator in taken[task]), ended)

    def state_at_end(self) -> Snapshot:
        """The last snapshots of all tasks of a finished job."""
        self._drained()
        return Snapshot(
            tuple(operator for task in sorted(self._final) for operator in self._final[task]), frozenset()
        )

    def late_rows(self) -> int:
        return sum(context.metrics.late_rows for task in self._tasks for context in task.operators)

    def close(self) -> None:
        for task in self._tasks:
            task.close()

    def _drained(self) -> list[TaskReport]:
        reports = list(self._reports)
        self._reports.clear()
        self._note_ends(reports)
        return reports

    def _note_ends(self, reports: Sequence[TaskReport]) -> None:
        for report in reports:
            if isinstance(report, TaskEnded) and report.task not in self._final:
                self._final[report.task] = self._written(
                    report.last_checkpoint_id + 1, report.task, report.operators
                )

    def _spill(self, task: Task) -> None:
        if self._files is not None:
            states = [
                state
                for chained in task.chain.operators
                for state in chained.operator.keyed_states().values()
            ]
            for part in StateSize.of(states).spillable:
                if part.spillable_bytes():
                    part.spill(self._files)

    def _written(
        self, checkpoint: int, task: TaskId, operators: tuple[OperatorSnapshot, ...]
    ) -> tuple[OperatorSnapshot, ...]:
        """Write a task's snapshot; return it as it is read again, whole."""
        written = self._writer.write(checkpoint, task, operators)
        return tuple(
            OperatorSnapshot(
                o.operator_id, {name: self._read(written, o.operator_id, name) for name in o.keyed}, o.items
            )
            for o in operators
        )

    def _read(self, written: WrittenTask, operator_id: str, name: str) -> pa.Table:
        table = read_whole(self._storage, written, operator_id, name)
        return pa.table({}) if table is None else table

    def _settle(self) -> None:
        """Step every task as long as one has work; then let time pass once, so that whoever waits looks
        again.
        """
        tasks = [self._tasks[i % len(self._tasks)] for i in self._order] + self._tasks
        idle_rounds = 0
        while idle_rounds < 2:
            worked = False
            for task in tasks:
                while task.step().did is Did.WORKED:
                    worked = True
                    self._spill(task)
            if not worked:
                idle_rounds += 1
                self._clock.advance(20)
            else:
                idle_rounds = 0
        self._note_ends(self._reports)


def _restore(chain: OperatorChain, snapshot: Snapshot) -> None:
    for chained in chain.operators:
        saved = [
            operator for operator in snapshot.operators if operator.operator_id == chained.context.operator_id
        ]
        if not saved:
            continue
        for name, items in chained.operator.list_states().items():
            items.restore_items([item for operator in saved for item in operator.items.get(name, [])])
        groups = chained.context.key_groups
        for name, state in chained.operator.keyed_states().items():
            for operator in saved:
                table = operator.keyed.get(name)
                if table is not None and table.num_rows:
                    low, high = np.searchsorted(
                        table.column("key_group").to_numpy(), [groups.start, groups.end]
                    )
                    if high > low:
                        state.restore(_copied(table.slice(low, high - low)))


def _copied(table: pa.Table) -> pa.Table:
    """A snapshot as it comes out of a file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


@dataclass(frozen=True)
class Planned:
    """A planned query: its graph and what the plan promises of its changes."""

    graph: JobGraph
    laid: LogicalPlan
    insert_only: bool
    upsert_key: tuple[int, ...] | None


def planned(session: Session, sql: str, parallelism: int = 1) -> Planned:
    """Plan a query up to its job graph."""
    session.settings.set("parallelism.default", str(parallelism))
    (statement,) = session.parse(sql)
    query = session.pipeline.plan(session.pipeline.bind(statement.node))  # type: ignore[arg-type]
    assert query.graph is not None and query.with_exchanges is not None
    top = query.plan.inputs[0]
    return Planned(
        query.graph, query.with_exchanges, query.facts.insert_only(top), query.facts.upsert_key(top)
    )
