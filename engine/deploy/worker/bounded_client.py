"""A worker's side of bounded subplans: the coordinator runs them and sends their rows, or says when they
are staged.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.api.operator import Services
from penstock.engine.bounded.backend import BoundedResult
from penstock.engine.bounded.registry import BoundedBackends
from penstock.engine.deploy.protocol.messages import BoundedRows, BoundedTaken, BoundedWanted
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import BoundedInput
from penstock.planner.physical.operator_specs import HistorySource, JobGraph, OperatorSpec

Send = Callable[[Any], None]


class SentQuery(BoundedResult):
    """The rows of a bounded query as the coordinator sends them."""

    def __init__(self, query: int, send: Send) -> None:
        self._query = query
        self._send = send
        self._rows: deque[pa.RecordBatch] = deque()
        self._failure: Exception | None = None
        self._complete = False
        self._lock = threading.Lock()

    def came(self, message: BoundedRows) -> None:
        """Take what the coordinator sent."""
        with self._lock:
            if message.rows is not None:
                self._rows.append(message.rows)
            self._failure = None if message.error is None else message.error.raised()
            self._complete = self._complete or message.ended

    def poll(self) -> pa.RecordBatch | None:
        with self._lock:
            if not self._rows:
                if self._failure is not None:
                    raise self._failure
                return None
            rows = self._rows.popleft()
        self._send(BoundedTaken(self._query))
        return rows

    @property
    def ended(self) -> bool:
        with self._lock:
            return self._complete and not self._rows and self._failure is None

    def close(self) -> None:
        self._send(BoundedTaken(self._query, closed=True))


class SentBackends(BoundedBackends):
    """The backend whose queries run in the coordinator's process; they are known there by the operators
    that want them.
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

    def run(
        self, plan: LogicalPlan, *, staging_dir: Path | None = None, time_zone: str = "UTC"
    ) -> BoundedResult:
        """Ask for a query's rows."""
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
        """Ask for the rows of a history."""
        return self._ask(spec.operator_id, None, splits)

    def _ask(self, operator_id: str, staging_dir: Path | None, splits: tuple[str, ...]) -> SentQuery:
        number = next(self._numbers)
        self._queries[number] = query = SentQuery(number, self._send)
        self._send(BoundedWanted(number, operator_id, staging_dir, splits))
        return query

    def came(self, message: BoundedRows) -> None:
        """Give a query what the coordinator sent."""
        self._queries[message.query].came(message)
