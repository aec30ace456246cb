"""The interface of sinks: take batches, prepare what a checkpoint holds, commit it once the checkpoint is
durable.
"""

from __future__ import annotations

import hashlib
from dataclasses import field
from typing import Any, Protocol

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.operator import Services
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics

Committable = dict[str, Any]


@dataclass(frozen=True)
class Origin:
    """Who wrote the checkpoint a sink starts from: the job by its owner, the sink by its operator id
    there, and the checkpoint's number.
    """

    owner: str
    operator_id: str
    checkpoint_id: int


@dataclass(frozen=True)
class SinkRequest:
    """What one subtask of a sink is: ``table`` None collects to the client; ``upsert_key`` names the columns
    that identify a row.

    ``owner`` and the operator id are nobody else's: by them it knows what it has staged. What another owner
    staged it may publish if its checkpoint (``origin``) says so, but never deletes: that job may live.
    ``job_id`` is for people. ``resumes`` False: the job keeps no checkpoints, so nobody goes on from one.
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


def writer_name(owner: str, operator_id: str) -> str:
    """Return the name of a sink operator of a job among all that write to a table: of its staging folder,
    in its files' names, of its log's parts.
    """
    return hashlib.sha256(f"{owner}\n{operator_id}".encode()).hexdigest()[:16]


class SinkWriter(Protocol):
    """Writes the rows of one subtask. What it prepares is JSON-ready and enough to commit or abort in
    another process.
    """

    def recover(self, pending: list[Committable]) -> None:
        """Forget what earlier attempts of this subtask left behind, except ``pending``, which belongs to a
        completed checkpoint. Before any row.
        """

    def write(self, batch: Batch) -> None:
        """Take rows."""

    def prepare(self, checkpoint_id: int) -> list[Committable]:
        """Make what was written since the last call durable but not yet visible, and return what is needed
        to make it visible.
        """

    def commit(self, items: list[Committable]) -> None:
        """Make prepared rows visible; done again it changes nothing."""

    def completed(self, checkpoint_id: int) -> None:
        """Learn that a checkpoint is complete, after all of this subtask's rows up to it were committed."""

    def abort(self, items: list[Committable]) -> None:
        """Throw prepared rows away; done again it changes nothing."""

    def ready(self) -> bool:
        """Whether it can take rows now."""

    def end(self) -> None:
        """Learn that no row follows."""

    def close(self) -> None:
        """Release what is open, and throw away what was never prepared."""


class DirectSink:
    """What sinks that publish as they write have in common: nothing to prepare, nothing to commit."""

    def recover(self, pending: list[Committable]) -> None:
        """Nothing is ever left behind."""

    def prepare(self, checkpoint_id: int) -> list[Committable]:
        return []

    def commit(self, items: list[Committable]) -> None:
        """Nothing was prepared."""

    def completed(self, checkpoint_id: int) -> None:
        """Who reads it need not know."""

    def abort(self, items: list[Committable]) -> None:
        """Nothing was prepared."""

    def ready(self) -> bool:
        return True

    def end(self) -> None:
        """Everything is out already."""

    def close(self) -> None:
        """Nothing is open."""
