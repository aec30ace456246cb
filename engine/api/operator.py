"""The operator interface: an operator must define ``on_batch``; every other method has a default that passes
on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.clock import Clock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.row_arrivals import RowArrivals
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.planner.physical.operator_specs import AnyOperatorSpec


@dataclass(frozen=True)
class JoinKeys:
    """Keys of the loaded side of a join. Distinct keys if ``exact``; else two rows, the least and the
    greatest value of each column, NULL where unknown. ``None``: too many keys to report.
    """

    keys: pa.RecordBatch | None
    exact: bool = True


@dataclass(frozen=True)
class Warned:
    """A failure that the job survives: one sentence behind its code."""

    code: str
    sentence: str


@dataclass(frozen=True)
class Recovered:
    """The end of what an operator warned of."""

    sentence: str


OperatorEvent = JoinKeys | Warned | Recovered


@dataclass(frozen=True)
class KeysKnown:
    """All keys of the loaded side of a join, for the operator that filters the rows of the other side."""

    join_id: str
    keys: JoinKeys


class Output(Protocol):
    """Where an operator puts rows: the next operator of the chain, or the record writer behind the last."""

    def collect(self, batch: Batch) -> None:
        """Emit a batch; an empty one is allowed and ignored."""

    def watermark(self, time_us: int) -> None:
        """Emit a watermark. Only the operators that generate watermarks call it."""

    def idle(self) -> None:
        """Report that the operator is idle until its next watermark."""

    def split(self, event: SplitEvent) -> None:
        """Report an event of a source split. Links pass it down the chain to the watermark generator, which
        consumes it.
        """


PendingOutput = Iterator[None]
"""The output an operator has still to emit, as pieces: each ``next`` emits one. The iterator ends when
nothing is left.
"""


def start_output(pending: PendingOutput) -> PendingOutput | None:
    """Emit the first piece; return the pending output, ``None`` when nothing is left."""
    # the iterator itself is the mark of its end, for its pieces are None
    return None if next(pending, pending) is pending else pending


def emit_batch(batch: Batch, out: Output) -> PendingOutput:
    """Emit a batch, a large one in slices."""
    for number, piece in enumerate(batch.pieces()):
        if number:
            yield
        out.collect(piece)


def emit_all(batches: Iterable[Batch], out: Output) -> PendingOutput:
    """Emit batches, each in slices."""
    for number, batch in enumerate(batches):
        if number:
            yield
        yield from emit_batch(batch, out)


class SplitEventKind(StrEnum):
    """What happened to a split: it was opened, has ended, or was polled and had no rows."""

    OPENED = "opened"
    ENDED = "ended"
    EMPTY = "empty"


@dataclass(frozen=True)
class SplitEvent:
    """An event of one split; ``origin`` is its ordinal as on ``Batch.origin``, ``split_id`` its stable
    name.
    """

    kind: SplitEventKind
    origin: int
    split_id: str


class KeyedState(Protocol):
    """State that follows keys. Snapshots are columns, so any range of key groups can be read without the
    rest.
    """

    def snapshot(self) -> pa.Table:
        """Return all live entries as a table, ``key_group`` (uint16) first and ascending. The table shares no
        memory that changes later.
        """

    def restore(self, part: pa.Table) -> None:
        """Add entries of a snapshot, those of this subtask's key groups. Called once per part of the
        snapshot, before the first row.

        List states are restored before.
        """


class Changes(Protocol):
    """Tracks which slots of a state have changed since which snapshot."""

    def seal(self) -> int:
        """Record a snapshot; return its number, from 1 on."""

    def since(self, snapshot: int, most: int = ...) -> np.ndarray | None:
        """Return the slots changed since a snapshot, ascending; ``None`` when they are more than ``most``, or
        when all may have.
        """


@runtime_checkable
class TrackedState(KeyedState, Protocol):
    """Keyed state by slots that knows which of them have changed. ``len()`` counts live entries."""

    changes: Changes

    def __len__(self) -> int: ...

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """Return the producer of a ``FrozenState``'s pieces, which runs later in any thread. It covers the
        live ones among ``slots``, or all live slots for ``None``.
        """


@runtime_checkable
class EvolvingState(KeyedState, Protocol):
    """Keyed state whose types are declared by a program: its row types may have gained fields since a
    snapshot, its numbers may have become wider. The restore converts the entries.
    """

    evolves: bool


class ListState(Protocol):
    """State that follows no key: items, JSON-ready dicts (split positions, split watermarks, pending
    commits).
    """

    def snapshot_items(self) -> list[dict[str, Any]]:
        """Return this subtask's items now."""

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        """Take the items of ALL subtasks of the snapshot, in subtask order and before the first row; keep
        those of this subtask.

        The operator decides which are its own: a split's item by its assignment, a pending commit's by
        position modulo parallelism.
        """


@dataclass(frozen=True)
class KeyGroups:
    """The contiguous range of key groups a subtask owns: ``start <= group < end``, out of
    ``max_parallelism``.
    """

    start: int
    end: int
    max_parallelism: int


@dataclass(frozen=True)
class RestoredFrom:
    """The checkpoint a subtask starts from: the owner of the job that wrote it, and its number."""

    owner: str
    checkpoint_id: int


@dataclasses.dataclass
class Context:
    """What an operator gets when it opens. ``services`` holds injected objects by type (files, registered
    tables, backends).

    ``job_id`` names the job for people. ``owner`` is a random id that survives restarts and that no other job
    has: sinks name by it what they stage and publish. ``attempt`` numbers the deployments of the job in this
    process. ``report_event`` sends an event to the job master. ``keeps_snapshots`` is False when the job
    takes no checkpoints, so no attempt resumes from one. ``arrivals`` ends the pause of a source.
    """

    operator_id: str
    name: str
    subtask: int
    parallelism: int
    key_groups: KeyGroups
    clock: Clock
    metrics: OperatorMetrics
    services: Services
    job_id: str = ""
    attempt: int = 1
    report_event: Callable[[OperatorEvent], None] = lambda event: None
    owner: str = ""
    restored: RestoredFrom | None = None
    keeps_snapshots: bool = True
    arrivals: RowArrivals = dataclasses.field(default_factory=RowArrivals)


class Services:
    """Injected objects, looked up by their type: ``services.get(FileSystem)``."""

    def __init__(self, *items: object) -> None:
        self._items = list(items)
        self._by_type: dict[type[Any], Any] = {}

    def get(self, kind: type[Any]) -> Any:
        """Return the injected object of a type; KeyError when there is none."""
        # by class, so that a subclass or a Protocol's implementation is found; looked up once
        if kind not in self._by_type:
            item = next((item for item in self._items if isinstance(item, kind)), None)
            if item is None:
                raise KeyError(kind.__name__)
            self._by_type[kind] = item
        return self._by_type[kind]


class Operator:
    """One operator of a chain. ``port`` numbers the inputs from 0. Barriers never reach it: the task
    snapshots its declared state.

    An operator that may emit many rows for one emits them in pieces: it returns a ``PendingOutput`` while
    there are more. The task asks for the next piece once the next operators have capacity. Until the last
    piece the operator gets no other input and no snapshot is taken.

    ``passes_time``: watermarks of the input are forwarded. An operator that generates watermarks itself
    forwards only the end of time.
    """

    passes_time = True
    added_states: frozenset[str] = frozenset()
    """Keyed states that checkpoints of older versions lack; they are restored empty."""
    refuses_unknown_states = False
    """Whether a checkpoint with keyed states that the operator does not declare is refused."""
    gathers = False
    """Whether the operator at the head of a chain wants to know that more rows are ready. ``rows_behind``
    then says so during ``on_batch``.
    """
    rows_behind = False

    @property
    def wants_ticks(self) -> bool:
        """Whether it wants to know processing time."""
        # an operator that overrides the method wants it called
        return type(self).on_processing_time is not Operator.on_processing_time

    # Start: open, then restore, then rows.
    def open(self, context: Context) -> None:
        """Open the operator. State is restored after this and before the first row."""

    def on_restored(self) -> None:
        """State is restored, channel state included."""

    # Input: rows, event time, processing time, idleness.
    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        """Process the rows of one port."""
        raise AssertionError(f"{type(self).__name__} takes no rows")

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        """Process the merged watermark of all ports: emit what it completes. The task forwards it
        afterwards.
        """
        return None

    def passes_on(self, time_us: int) -> int:
        """Return the watermark to forward for this one: an earlier one when rows emitted later may have
        earlier times.
        """
        return time_us

    def on_processing_time(self, now_ms: int, out: Output) -> PendingOutput | None:
        """Process a tick of the clock (about every 50 ms, or as simulated)."""
        return None

    def on_port_time(self, port: int, time_us: int | None, out: Output) -> PendingOutput | None:
        """Process the watermark of one port, ``None`` when the port is idle. Called instead of
        ``on_watermark`` for a join that asks for it.
        """
        return None

    def on_idle(self, out: Output) -> None:
        """The input is idle until its next watermark. The task forwards this."""

    # Rows that wait for a moment, and back pressure.
    def buffered_until_ms(self) -> float | None:
        """When buffered rows must be emitted (monotonic milliseconds); ``None`` when nothing is buffered."""
        return None

    def release(self, out: Output) -> PendingOutput | None:
        """Emit what is buffered. Called when it is due."""
        return None

    def on_split(self, event: SplitEvent, out: Output) -> None:
        """Process an event of a source split of this chain; it is forwarded unless consumed."""
        out.split(event)

    def ready(self) -> bool:
        """Whether it can take rows now. False (a full result queue) blocks the task, and so slows its
        inputs.
        """
        return True

    # Barriers, and the end of the input.
    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        """Flush what is not declared as state, and prepare commits. Called before the snapshot; the barrier
        is forwarded afterwards.

        Also called once at the end of input, with the id of the job's final checkpoint.
        """

    def on_port_end(self, port: int, out: Output) -> PendingOutput | None:
        """One port has ended."""
        return None

    def settled(self) -> bool:
        """Whether it may end; asked once all ports have ended. Until it may, what it buffers is released as
        it falls due, and other tasks run.
        """
        return True

    def on_end(self, out: Output) -> PendingOutput | None:
        """Emit what is left. Called once, after the final watermark, when all ports have ended."""
        return None

    # State: what a snapshot writes and a restore reads.
    def keyed_states(self) -> dict[str, KeyedState]:
        """Declare keyed state by name."""
        return {}

    def copied_states(self) -> frozenset[str]:
        """Name the keyed states that every subtask holds completely. Each subtask writes the entries of its
        own key groups; a restore gives all to everyone.
        """
        return frozenset()

    def state_ports(self) -> dict[str, int]:
        """Return the port whose rows a keyed state holds, for states that do not belong to port 0."""
        return {}

    def list_states(self) -> dict[str, ListState]:
        """Declare redistributable list state by name."""
        return {}

    # Events of the job, and the end.
    def succeeds(self, operator_id: str) -> None:
        """State of this operator comes from an operator of another query, of this id. Called before the
        restore.
        """

    def on_keys(self, known: KeysKnown) -> None:
        """Process the keys of the loaded side of a join; called between two batches."""

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        """A checkpoint is durable: sinks commit here."""

    def close(self) -> None:
        """Release what was opened. Called on every exit; must not raise."""


class HeadOperator(Operator):
    """The head of a source chain: it emits rows when polled and has no input."""

    def poll(self, out: Output) -> SourceStatus:
        """Emit at most one batch without blocking; return whether there is more."""
        raise AssertionError(type(self))


@dataclass(frozen=True)
class SourceStatus:
    """The result of a poll: ``more`` rows now, ``ended`` for good, or neither. Then poll again at ``wake_ms``
    (clock milliseconds) at the latest.

    ``caught_up``: there may be more rows by now, but the poll returned all there were.
    ``rests``: a history was read completely, and nothing follows in this deployment.
    """

    more: bool = False
    ended: bool = False
    wake_ms: int | None = None
    rests: bool = False
    caught_up: bool = False


BuildOperator = Callable[[AnyOperatorSpec, JobOptions], Operator]
"""Builds the operator of a spec for one subtask. It is injected, so that a simulation may use other
operators.
"""
