"""The interface of operators: must write ``on_batch``; the rest defaults to passing on."""

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
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.planner.physical.operator_specs import OperatorSpec


@dataclass(frozen=True)
class JoinKeys:
    """Keys of the loaded side of a join: distinct ones, or (not ``exact``) two rows, the least and the
    greatest of each column, NULLs where these are not known. ``None``: too many to tell.
    """

    keys: pa.RecordBatch | None
    exact: bool = True


@dataclass(frozen=True)
class Warned:
    """Something has failed, in one sentence behind its code, and the job goes on."""

    code: str
    sentence: str


@dataclass(frozen=True)
class Recovered:
    """What an operator warned of is over."""

    sentence: str


OperatorEvent = JoinKeys | Warned | Recovered


@dataclass(frozen=True)
class KeysKnown:
    """All that the loaded side of a join has, for what filters the rows of the other side."""

    join_id: str
    keys: JoinKeys


class Output(Protocol):
    """Where an operator puts rows: the next operator of the chain, or the record writer behind the last."""

    def collect(self, batch: Batch) -> None:
        """Take a batch (empty ones are allowed and go nowhere)."""

    def watermark(self, time_us: int) -> None:
        """Take a watermark; called only by operators that make watermarks themselves (the assigner)."""

    def idle(self) -> None:
        """Say that time stands still here until the next watermark."""

    def split(self, event: SplitEvent) -> None:
        """Take news of a source split; forwarded down the chain to the watermark assigner, which consumes
        it.
        """


PendingOutput = Iterator[None]
"""What an operator still has to emit for what it was given, piece by piece: each ``next`` emits one, none
is due when it stops.
"""


def start_output(rest: PendingOutput) -> PendingOutput | None:
    """Do the first piece; return what is left, ``None`` when nothing is."""
    return None if next(rest, rest) is rest else rest


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
    """What can happen to a split: it is opened, has ended, or was polled and had nothing."""

    OPENED = "opened"
    ENDED = "ended"
    EMPTY = "empty"


@dataclass(frozen=True)
class SplitEvent:
    """News of one split; ``origin`` is its ordinal as on ``Batch.origin``, ``split_id`` its stable name."""

    kind: SplitEventKind
    origin: int
    split_id: str


class KeyedState(Protocol):
    """State that follows keys. Snapshots are columns, so any range of key groups can be read without the
    rest.
    """

    def snapshot(self) -> pa.Table:
        """Return all live entries as a table whose first column ``key_group`` (uint16) ascends; it shares
        no memory that later changes.
        """

    def restore(self, part: pa.Table) -> None:
        """Add entries of a snapshot; called once per part before any row comes, with only the key groups of
        this subtask.

        List states have been restored by then.
        """


class Changes(Protocol):
    """Knows which slots of a state have changed since which snapshot."""

    def seal(self) -> int:
        """Take note of a snapshot; return its number, from 1 on."""

    def since(self, snapshot: int) -> np.ndarray | None:
        """Return the slots changed since a snapshot, ascending; ``None`` when all may have."""


@runtime_checkable
class TrackedState(KeyedState, Protocol):
    """Keyed state by slots that knows which of them have changed. ``len()`` counts live entries."""

    changes: Changes

    def __len__(self) -> int: ...

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """Return what makes the pieces of a ``FrozenState`` later in any thread: of the live ones among
        these slots, ``None``: of all.
        """


class ListState(Protocol):
    """State that follows no key: items, JSON-ready dicts (split positions, split watermarks, pending
    commits).
    """

    def snapshot_items(self) -> list[dict[str, Any]]:
        """Return this subtask's items now."""

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        """Take the items of ALL subtasks of the snapshot (in subtask order) before any row comes, and keep
        those that are this subtask's.

        Whose an item is, is the operator's rule: a split's by its assignment, a pending commit's by position
        modulo parallelism.
        """


@dataclass(frozen=True)
class KeyGroups:
    """The contiguous range of key groups a subtask owns: ``start <= group < end``, of ``max_parallelism``
    in all.
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
    """What an operator is given when it opens. ``services`` holds injected outside things by type (files,
    registered tables, backends).

    ``job_id`` names the job for people. ``owner`` is drawn by chance, the same after every restart of the job
    and of no other job anywhere: sinks name by it what they stage and publish. ``attempt`` numbers the
    deployments of the job in this process. ``tell`` takes news for the job's master. ``keeps_snapshots``
    False: the job takes no checkpoints, so no attempt goes on from one.
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


class Services:
    """Injected outside things, looked up by their type: ``services.get(FileSystem)``."""

    def __init__(self, *items: object) -> None:
        self._items = list(items)
        self._found: dict[type[Any], Any] = {}

    def get(self, kind: type[Any]) -> Any:
        """Return the injected object of a type; KeyError when there is none."""
        if kind not in self._found:
            item = next((item for item in self._items if isinstance(item, kind)), None)
            if item is None:
                raise KeyError(kind.__name__)
            self._found[kind] = item
        return self._found[kind]


class Operator:
    """One operator of a chain. ``port`` numbers the inputs from 0. Barriers never reach it: the task
    snapshots its declared state.

    What may give many rows for one emits them in pieces, and returns a ``Rest`` when there are more: it is
    asked for the next piece when what follows has room. Until then nothing else is given to it, and no
    snapshot is made.

    ``passes_time``: time from above goes on to what follows; one that makes time itself lets nothing by but
    time's end.
    """

    passes_time = True
    added_states: frozenset[str] = frozenset()
    """Keyed states that checkpoints of older versions lack; there they were empty."""
    gathers = False
    """Whether it wants to know, as the head of a chain, if more rows are ready: then ``rows_behind`` says
    so while it is given some.
    """
    rows_behind = False

    @property
    def wants_ticks(self) -> bool:
        """Whether it wants to know processing time."""
        return type(self).on_processing_time is not Operator.on_processing_time

    def open(self, context: Context) -> None:
        """Get ready; state is restored after this and before the first row."""

    def on_restored(self) -> None:
        """Learn that state is restored, rows in flight among it."""

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        """Take rows of one port."""
        raise AssertionError(f"{type(self).__name__} takes no rows")

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        """Take the merged watermark of all ports, before it is forwarded by the task; emit what it
        completes.
        """
        return None

    def passes_on(self, time_us: int) -> int:
        """Return the watermark to forward for one that was taken: an earlier one when rows given later may
        have earlier times.
        """
        return time_us

    def on_processing_time(self, now_ms: int, out: Output) -> PendingOutput | None:
        """Take a tick of the clock (about every 50 ms of the driver, or as simulated)."""
        return None

    def on_port_time(self, port: int, time_us: int | None, out: Output) -> PendingOutput | None:
        """Take the watermark of one port, ``None``: it stands still until the next; told instead of the
        merged one to a join that asks.
        """
        return None

    def on_idle(self, out: Output) -> None:
        """Learn that time stands still here until the next watermark, while it may go on elsewhere;
        forwarded by the task.
        """

    def buffered_until_ms(self) -> float | None:
        """When rows held back to be taken together must go on (monotonic milliseconds); ``None`` when
        there are none.
        """
        return None

    def release(self, out: Output) -> PendingOutput | None:
        """Let go on what is held back; called when it is due."""
        return None

    def on_split(self, event: SplitEvent, out: Output) -> None:
        """Take news of a source split of this chain; forwarded unless consumed."""
        out.split(event)

    def ready(self) -> bool:
        """Whether it can take rows now; False (a full result queue) makes the task wait and so slows its
        inputs.
        """
        return True

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        """Flush what is not declared as state, and prepare commits; called before the snapshot and before the
        barrier is forwarded.

        Also called once at the end of input, with the id of the job's final checkpoint.
        """

    def on_port_end(self, port: int, out: Output) -> PendingOutput | None:
        """Learn that one port has ended."""
        return None

    def settled(self) -> bool:
        """Whether it may end; asked when all ports have ended. Until then what it holds back is released
        as it is due, and other tasks go on.
        """
        return True

    def on_end(self, out: Output) -> PendingOutput | None:
        """Emit what is left; called once, after the final watermark, when all ports have ended."""
        return None

    def keyed_states(self) -> dict[str, KeyedState]:
        """Declare keyed state by name."""
        return {}

    def copied_states(self) -> frozenset[str]:
        """Name the keyed states that every subtask holds all of: each writes the entries of its own key
        groups, all are restored everywhere.
        """
        return frozenset()

    def state_ports(self) -> dict[str, int]:
        """Say of which port the rows are that a keyed state holds, for those that are not of port 0."""
        return {}

    def list_states(self) -> dict[str, ListState]:
        """Declare redistributable state by name."""
        return {}

    def succeeds(self, operator_id: str) -> None:
        """Learn, before state is restored, that an operator of this id in a former query wrote it."""

    def on_keys(self, known: KeysKnown) -> None:
        """Learn the keys of the loaded side of a join ahead, between two batches."""

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Learn that a checkpoint is durable (sinks commit here)."""

    def close(self) -> None:
        """Release what was opened; called on every way out, must not raise."""


class HeadOperator(Operator):
    """The head of a source chain: gives rows when polled instead of taking them."""

    def poll(self, out: Output) -> SourceStatus:
        """Emit at most one batch without blocking; say whether there is more."""
        raise AssertionError(type(self))


@dataclass(frozen=True)
class SourceStatus:
    """What a poll found: ``more`` now, ``ended`` for good, or neither: come again at ``wake_ms`` (clock
    milliseconds) at the latest.

    ``rests``: a history has been given whole, and nothing follows in this deployment.
    """

    more: bool = False
    ended: bool = False
    wake_ms: int | None = None
    rests: bool = False


BuildOperator = Callable[[OperatorSpec, JobOptions], Operator]
"""Makes the operator of a spec for one subtask; handed in, so that simulations may put in others."""
