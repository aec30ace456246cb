"""The worker's proxies of services that run in the coordinator's process: late rows, bad records, results,
materialized views, bounded queries. Each sends messages, and receives the replies that concern it.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.api.operator import Services
from penstock.engine.api.stream_elements import Batch
from penstock.engine.bounded.backend import BoundedBackend, BoundedResult
from penstock.engine.bounded.registry import BoundedBackends
from penstock.engine.connectors.in_process.bad_records import BadRecords, RejectedRecord
from penstock.engine.connectors.in_process.late_rows import MAX_KEPT, LateRows
from penstock.engine.connectors.in_process.materialized_views import MaterializedContents, MaterializedTables
from penstock.engine.connectors.in_process.result_channels import ResultChannel, ResultChannels
from penstock.engine.deploy.protocol.messages import (
    BadRecordsSeen,
    BoundedDemand,
    BoundedRows,
    BoundedWanted,
    LateRowsSeen,
    ResultCredit,
    ResultEnded,
    ResultRows,
    ViewBegun,
    ViewCompleted,
    ViewStaged,
)
from penstock.engine.exchange.channel import no_wakeup
from penstock.engine.network.element_codec import pieces_that_fit
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import BoundedInput
from penstock.planner.physical.operator_specs import HistorySource, JobGraph, OperatorSpec

Send = Callable[[Any], None]


class SentLateRows(LateRows):
    """Sends late rows to the coordinator, at most the last ``MAX_KEPT`` of a batch."""

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
        # more would be dropped on arrival
        first = max(0, rows.num_rows - MAX_KEPT)
        self._send(
            LateRowsSeen(
                operator, rows.slice(first), watermarks[first:], None if ends is None else ends[first:]
            )
        )


class SentBadRecords(BadRecords):
    """Sends bad records to the coordinator."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def add(self, table: str, records: list[RejectedRecord]) -> None:
        # the coordinator drops records that another attempt has sent before
        self._send(BadRecordsSeen(table, tuple(records)))


class SentView(MaterializedContents):
    """The writer of a materialized view whose contents are in the coordinator's process."""

    def __init__(self, name: str, send: Send) -> None:
        # without contents: the coordinator has them, so this schema is never used
        super().__init__(name, pa.schema([]))
        self._send = send

    def begin(self, attempt: int, subtask: int, parallelism: int, rows: list[Batch]) -> None:
        self._send(ViewBegun(self.name, subtask, parallelism, tuple(rows)))

    def stage(self, checkpoint_id: int, changes: list[Batch]) -> None:
        # a message has a limit of size
        for batch in changes:
            self._send(ViewStaged(self.name, checkpoint_id, tuple(pieces_that_fit(batch))))

    def complete(self, checkpoint_id: int) -> None:
        self._send(ViewCompleted(self.name, checkpoint_id))


class SentViews(MaterializedTables):
    """Returns the writer of any view."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def contents(self, name: str) -> MaterializedContents:
        return SentView(name, self._send)


# sent and not yet read by the client; then the sink exerts backpressure
BATCHES_AHEAD = 64


class SentResult(ResultChannel):
    """The producer of a result. It is ``full`` while ``BATCHES_AHEAD`` batches are sent and not yet read by
    the client.
    """

    def __init__(self, operator_id: str, send: Callable[[Any], None]) -> None:
        super().__init__()
        self._operator_id = operator_id
        self._send = send
        # batches sent and not yet read by the client
        self._ahead = 0
        self._lock = threading.Lock()

    def offer(self, batch: Batch, on_read: Callable[[], None] = no_wakeup) -> bool:
        # one frame per message: a large batch is split
        for piece in pieces_that_fit(batch) if batch.num_rows else ():
            with self._lock:
                self._ahead += 1
            self._send(ResultRows(self._operator_id, piece))
        return True

    def credit(self, batches: int) -> None:
        """The client has read ``batches`` more batches."""
        with self._lock:
            self._ahead -= batches

    @property
    def full(self) -> bool:
        # backpressure: the sink's task waits for credit
        return self._ahead >= BATCHES_AHEAD

    def subtask_ended(self, subtask: int, parallelism: int) -> None:
        self._send(ResultEnded(self._operator_id, subtask, parallelism))


class SentResults(ResultChannels):
    """Returns the producers of a deployment's collect sinks; this worker's subtasks share one per sink."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        super().__init__()
        self._send = send
        self._sent: dict[str, SentResult] = {}
        self._made = threading.Lock()

    def channel(self, operator_id: str, capacity_batches: int = BATCHES_AHEAD) -> SentResult:
        with self._made:
            if operator_id not in self._sent:
                self._sent[operator_id] = SentResult(operator_id, self._send)
            return self._sent[operator_id]

    def credited(self, message: ResultCredit) -> None:
        """Add credit from the coordinator."""
        self.channel(message.operator_id).credit(message.batches)


class SentQuery(BoundedResult):
    """The rows of a bounded query that runs in the coordinator's process."""

    def __init__(self, query: int, send: Send) -> None:
        self._query = query
        self._send = send
        self._rows: deque[pa.RecordBatch] = deque()
        self._failure: Exception | None = None
        self._complete = False
        self._lock = threading.Lock()

    def came(self, message: BoundedRows) -> None:
        """Store rows, the end or the error that the coordinator sent."""
        with self._lock:
            if message.rows is not None:
                self._rows.append(message.rows)
            # rows that came before the error are read first
            self._failure = None if message.error is None else message.error.raised()
            self._complete = self._complete or message.ended

    def poll(self) -> pa.RecordBatch | None:
        with self._lock:
            if not self._rows:
                if self._failure is not None:
                    raise self._failure
                return None
            rows = self._rows.popleft()
        # one batch read: the coordinator may send another
        self._send(BoundedDemand(self._query))
        return rows

    @property
    def ended(self) -> bool:
        with self._lock:
            return self._complete and not self._rows and self._failure is None

    def close(self) -> None:
        self._send(BoundedDemand(self._query, closed=True))


class SentBackends(BoundedBackends):
    """The backend whose queries run in the coordinator's process. It names a query by the operator that
    requests it.
    """

    def __init__(self, graph: JobGraph, scratch: Path, send: Send) -> None:
        super().__init__(Services())
        self._specs = [
            spec for chain in graph.chains for spec in chain.operators if isinstance(spec.node, BoundedInput)
        ]
        self._scratch = scratch
        self._send = send
        self._numbers = itertools.count(1)
        self._queries: dict[int, SentQuery] = {}

    def backend(self, name: str | None = None) -> Any:
        return self

    def for_plan(self, plan: LogicalPlan, name: str | None = None) -> BoundedBackend:
        # the coordinator chooses by the name that it has of the job
        return super().for_plan(plan)

    def run(
        self, plan: LogicalPlan, *, staging_dir: Path | None = None, time_zone: str = "UTC"
    ) -> BoundedResult:
        """Request a query's rows."""
        # by identity: the graph was decoded once, and operators have its plans
        operator_id = next((spec.operator_id for spec in self._specs if spec.node.plan is plan), None)
        if operator_id is None:
            hint = "write the table to files and read those again, or SET 'deployment' = 'embedded'"
            raise PenstockError(
                "BND-5020", "a worker process cannot read a table of Spark again", hint=hint, sqlstate="0A000"
            )
        return self._ask(operator_id, staging_dir, ())

    def run_history(
        self, spec: OperatorSpec[HistorySource, OperatorFacts], splits: tuple[str, ...], *, time_zone: str
    ) -> BoundedResult:
        """Request the rows of a history."""
        return self._ask(spec.operator_id, None, splits)

    def _ask(self, operator_id: str, staging_dir: Path | None, splits: tuple[str, ...]) -> SentQuery:
        number = next(self._numbers)
        self._queries[number] = query = SentQuery(number, self._send)
        self._send(BoundedWanted(number, operator_id, staging_dir, splits))
        return query

    def came(self, message: BoundedRows) -> None:
        """Pass a message of the coordinator to its query."""
        self._queries[message.query].came(message)
