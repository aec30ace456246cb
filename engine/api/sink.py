"""The sink interface: write batches, prepare what a checkpoint holds, commit once the checkpoint is
durable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import field
from typing import Any, Protocol

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.operator import KeyedState, OperatorEvent, Services
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics

Committable = dict[str, Any]


@dataclass(frozen=True)
class Origin:
    """The writer of the checkpoint a sink is restored from: the job by its owner, the sink by its operator
    id, and the checkpoint's number.
    """

    owner: str
    operator_id: str
    checkpoint_id: int


@dataclass(frozen=True)
class SinkRequest:
    """One subtask of a sink: ``table`` None collects to the client; ``upsert_key`` names the columns that
    identify a row.

    ``owner`` with the operator id is unique: a sink knows by it what it has staged. It may publish what
    another owner staged if its checkpoint (``origin``) says so, but never deletes it: that job may be
    running. ``job_id`` is for people. ``resumes`` False: the job keeps no checkpoints, so nothing resumes
    from one. ``key_group``: one of the key groups that the subtask owns. ``report_event``: sends an event to
    the job master. ``upserts``: a row of weight 1 replaces that of its key, others delete it.
    """

    table: CatalogTable | None
    schema: Schema
    upsert_key: tuple[int, ...] | None
    operator_id: str
    job_id: str
    subtask: int
    parallelism: int
    services: Services
    metrics: OperatorMetrics = field(default_factory=OperatorMetrics)
    owner: str = ""
    origin: Origin | None = None
    resumes: bool = True
    key_group: int = 0
    report_event: Callable[[OperatorEvent], None] = lambda event: None
    upserts: bool = False


def writer_name(owner: str, operator_id: str) -> str:
    """Return the name of a job's sink operator, which no other writer of its table has. Its staging folder,
    its files and its parts of the commit log are named by it.
    """
    # 64 bits: short enough for file names, and two writers of one table practically never share a name
    return hashlib.sha256(f"{owner}\n{operator_id}".encode()).hexdigest()[:16]


class SinkWriter(Protocol):
    """Writes the rows of one subtask. What it prepares is JSON-ready and enough to commit or abort in
    another process.
    """

    def keyed_states(self) -> dict[str, KeyedState]:
        """Return the state of the writer that checkpoints hold, by name."""

    def recover(self, pending: list[Committable]) -> None:
        """Drop what earlier attempts of this subtask left behind, except ``pending``, which belongs to a
        completed checkpoint. Called before the first row.
        """

    def on_restored(self) -> None:
        """All state is restored: commit what a writer keeps in its keyed state."""

    def write(self, batch: Batch) -> None:
        """Write rows."""

    # two-phase commit: prepare before the barrier, commit when the checkpoint is complete
    def prepare(self, checkpoint_id: int) -> list[Committable]:
        """Make what was written since the last call durable but not visible; return what is needed to make it
        visible.
        """

    def commit(self, items: list[Committable]) -> None:
        """Make prepared rows visible. Idempotent."""

    def completed(self, checkpoint_id: int) -> None:
        """A checkpoint is complete, and all rows of this subtask up to it are committed."""

    def abort(self, items: list[Committable]) -> None:
        """Delete prepared rows. Idempotent."""

    def ready(self) -> bool:
        """Whether it can take rows now."""

    def end(self) -> None:
        """No row follows."""

    def close(self) -> None:
        """Close what is open, and delete what was never prepared."""


class DirectSink:
    """The base of sinks that publish as they write: they prepare and commit nothing."""

    def keyed_states(self) -> dict[str, KeyedState]:
        return {}

    def recover(self, pending: list[Committable]) -> None:
        """Nothing is left behind."""

    def on_restored(self) -> None:
        """Nothing is to be committed."""

    def prepare(self, checkpoint_id: int) -> list[Committable]:
        return []

    def commit(self, items: list[Committable]) -> None:
        """Nothing was prepared."""

    def completed(self, checkpoint_id: int) -> None:
        """Nothing to record."""

    def abort(self, items: list[Committable]) -> None:
        """Nothing was prepared."""

    def ready(self) -> bool:
        return True

    def end(self) -> None:
        """Everything is published."""

    def close(self) -> None:
        """Nothing is open."""
