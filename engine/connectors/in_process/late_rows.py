"""Late rows, stored in this process for `<job>$late`. Operators report them to a log of the service that
stores them; a source reads them as a table.
"""

from __future__ import annotations

import threading
from collections import deque

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.operator import Services
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.api.stream_elements import MIN_WATERMARK_US
from penstock.engine.connectors.in_process.registered_source import TableReader
from penstock.engine.metrics.operator_metrics import LateLog

# rows of a job; whole batches are dropped, so fewer may remain
MAX_KEPT = 10_000


@dataclass(frozen=True, eq=False)
class _LateBatch:
    """Late rows of one operator and batch; ``watermarks`` and ``ends`` (of windows) int64 microseconds."""

    operator: str
    rows: pa.RecordBatch
    watermarks: np.ndarray
    ends: np.ndarray | None


class LateRows:
    """The service that stores the last late rows of each job. Rows that a restarted job reads again may
    appear twice.
    """

    def __init__(self) -> None:
        self._batches: dict[str, deque[_LateBatch]] = {}
        self._lock = threading.Lock()

    def add(
        self,
        job_id: str,
        operator: str,
        rows: pa.RecordBatch,
        watermarks: np.ndarray,
        ends: np.ndarray | None,
    ) -> None:
        """Store rows of a job; beyond 10,000 the oldest are dropped."""
        # of one large batch only its last rows
        first = max(0, rows.num_rows - MAX_KEPT)
        batch = _LateBatch(
            operator, rows.slice(first), watermarks[first:], None if ends is None else ends[first:]
        )
        with self._lock:
            batches = self._batches.setdefault(job_id, deque())
            batches.append(batch)
            total = sum(item.rows.num_rows for item in batches)
            # the oldest batches go first
            while total > MAX_KEPT:
                total -= batches.popleft().rows.num_rows

    def forget(self, job_id: str) -> None:
        """Drop the rows of a job."""
        with self._lock:
            self._batches.pop(job_id, None)

    def arrow_table(self, job_id: str, schema: Schema) -> pa.Table:
        """Return the stored rows of a job: operator, window_end, watermark, then the columns of its operators
        by name. A column that an operator lacks is NULL.
        """
        arrow = schema.to_arrow()
        with self._lock:
            batches = list(self._batches.get(job_id, ()))
        return pa.Table.from_batches([_shown(item, arrow) for item in batches], arrow)


def _shown(batch: _LateBatch, schema: pa.Schema) -> pa.RecordBatch:
    count = batch.rows.num_rows
    ends = pa.nulls(count, pa.int64()) if batch.ends is None else pa.array(batch.ends)
    known = {
        "operator": pa.repeat(pa.scalar(batch.operator), count),
        "window_end": ends.view(pa.timestamp("us")),
        # no watermark yet is NULL
        "watermark": array_of(batch.watermarks, batch.watermarks == MIN_WATERMARK_US).view(
            pa.timestamp("us")
        ),
    }
    columns = []
    for field in schema:
        index = batch.rows.schema.get_field_index(field.name)
        # a fact of the batch, a column of its operator, or a column of another operator of the job
        if field.name in known:
            columns.append(known[field.name])
        elif index >= 0 and batch.rows.schema.field(index).type == field.type:
            columns.append(batch.rows.column(index))
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def late_log(services: Services, job_id: str, operator: str) -> LateLog | None:
    """Return the log for an operator's late rows, None where late rows are not stored."""
    try:
        # a service is looked up by its class
        store: LateRows = services.get(LateRows)
    except KeyError:
        return None
    return lambda rows, watermarks, ends: store.add(job_id, operator, rows, watermarks, ends)


class LateSource:
    """One split: the rows stored at the time it is opened."""

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._job_id = request.table.options["job"]

    def splits(self) -> list[str]:
        return [self._job_id]

    def recall(self, split_ids: list[str]) -> None:
        """Accept any split ids: the store exists as long as the process."""

    def open(self, split_id: str, position: Position | None) -> TableReader:
        schema = self._request.table.source_schema
        names = [schema[index].name for index in self._request.columns]
        rows = self._request.services.get(LateRows).arrow_table(self._job_id, schema)
        return TableReader(rows, names, (position or {}).get("row", 0))

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0
