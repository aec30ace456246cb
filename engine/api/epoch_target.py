"""The interface of a target that stores an epoch atomically with its rows: exactly once needs nothing else of
it.

An epoch is the number of a checkpoint. Rows of an epoch are staged before its checkpoint is durable, and are
committed afterwards. After a crash the target says which epoch it has, and the staged rows of later ones are
committed again. So no target needs prepared transactions.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.sink import writer_name

DELETED = "__deleted"
"""The first column of UPSERTS rows, BOOLEAN: the row's key is gone."""


class StagedForm(StrEnum):
    """The form of the rows a target takes.

    INSERTS: rows as they are. UPSERTS: the last change of each key of the epoch, the column ``DELETED``
    before the others. CHANGES: every change in its order, the column ``op`` of
    ``engine/changelog/row_kinds`` before the others.
    """

    INSERTS = "inserts"
    UPSERTS = "upserts"
    CHANGES = "changes"


@dataclass(frozen=True)
class EpochWriter:
    """One subtask of one sink of one job. A target stores the last epoch of each."""

    owner: str
    operator_id: str
    subtask: int

    @property
    def name(self) -> str:
        """Its name in the target: letters, digits and dashes, at most 40."""
        return f"{writer_name(self.owner, self.operator_id)}-{self.subtask}"


class EpochTarget(Protocol):
    """Commits the rows of epochs. Any method may raise a retriable error; the sink calls it again."""

    form: StagedForm

    def fence(self, writers: list[EpochWriter]) -> None:
        """Make sure that no earlier attempt commits for these writers from now on. Called before anything
        else.
        """

    def last_committed(self, writer: EpochWriter) -> int:
        """Return the last epoch whose rows the target has, 0 for a writer it does not know."""

    def commit(self, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]) -> None:
        """Write the rows of an epoch and the epoch itself, both or neither; readers see them when it returns.

        It is called once ``last_committed`` is less than ``epoch``, in the order of epochs. Each iteration of
        ``rows`` reads them anew. STA-3504 when a later attempt has fenced this one off.
        """

    def retire(self, writer: EpochWriter) -> None:
        """Forget a writer whose job has ended and keeps no checkpoints. A target may keep it all the same."""

    def close(self) -> None:
        """Close what is open."""
