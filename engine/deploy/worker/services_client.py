"""A worker's side of what is kept in the coordinator's process: printed lines, late rows, bad records,
materialized views.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process.bad_record_store import BadRecords, RejectedRecord
from penstock.engine.connectors.in_process.late_row_store import MAX_KEPT, LateRows
from penstock.engine.connectors.in_process.materialized_views import MaterializedContents, MaterializedTables
from penstock.engine.deploy.protocol.messages import (
    BadRecordsSeen,
    LateRowsSeen,
    ViewBegun,
    ViewCompleted,
    ViewStaged,
)
from penstock.engine.network.element_codec import pieces_that_fit

Send = Callable[[Any], None]


class SentLateRows(LateRows):
    """Sends late rows on, the last 10,000 of a batch."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def add(
        self,
        job_id: str,
        operator: str,
        rows: pa.RecordBatch,
        watermarks: np.ndarray,
        ends: np.ndarray | None,
    ) -> None:
        first = max(0, rows.num_rows - MAX_KEPT)
        self._send(
            LateRowsSeen(
                operator, rows.slice(first), watermarks[first:], None if ends is None else ends[first:]
            )
        )


class SentBadRecords(BadRecords):
    """Sends bad records on."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def add(self, table: str, records: list[RejectedRecord]) -> None:
        self._send(BadRecordsSeen(table, tuple(records)))


class SentView(MaterializedContents):
    """The writing face of a materialized view."""

    def __init__(self, name: str, send: Send) -> None:
        super().__init__(name, pa.schema([]))
        self._send = send

    def begin(self, attempt: int, subtask: int, parallelism: int, rows: list[Batch]) -> None:
        self._send(ViewBegun(self.name, subtask, parallelism, tuple(rows)))

    def stage(self, checkpoint_id: int, changes: list[Batch]) -> None:
        for batch in changes:
            self._send(ViewStaged(self.name, checkpoint_id, tuple(pieces_that_fit(batch))))

    def complete(self, checkpoint_id: int) -> None:
        self._send(ViewCompleted(self.name, checkpoint_id))


class SentViews(MaterializedTables):
    """Finds the writing face of any view."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def contents(self, name: str) -> MaterializedContents:
        return SentView(name, self._send)
