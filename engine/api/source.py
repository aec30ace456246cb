"""The interfaces of sources: a connector lists splits and opens them; a split reader gives rows without
blocking and tells its position.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Protocol

import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.clock import Clock
from penstock.engine.api.operator import Services
from penstock.engine.api.scan_pruning import Skipping
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.planner.expressions.nodes import Expression

Position = dict[str, Any]


@dataclass(frozen=True)
class ScanRequest:
    """What one subtask asks of a connector: ``columns`` are positions of ``table.source_schema``;
    ``predicate`` reads positions of ``columns``.

    ``skipping``: what becomes known, while it reads, of the rows that are wanted.
    """

    table: CatalogTable
    columns: tuple[int, ...]
    predicate: Expression | None
    batch_max_rows: int
    clock: Clock
    services: Services
    metrics: OperatorMetrics = field(default_factory=OperatorMetrics)
    skipping: Skipping | None = None


class SplitReader(Protocol):
    """Reads one split in its order. Never blocks."""

    @property
    def ended(self) -> bool:
        """Whether the split has no more rows, for good."""

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        """Return up to ``max_rows`` rows of the asked columns; ``None`` when there is nothing now. An empty
        batch means: come again at once.

        A table of changes gives a Batch with weights, perhaps of a row more, for the rows of one change stay
        together.
        """

    def position(self) -> Position:
        """Return where to resume: after the last row given, JSON-ready."""

    def close(self) -> None:
        """Release what is open."""


class SourceConnector(Protocol):
    """Lists the splits of a table and opens them."""

    def splits(self) -> list[str]:
        """Return the stable ids of all splits there are now, sorted. A split keeps its id for as long as
        its content is the same.
        """

    def recall(self, split_ids: list[str]) -> None:
        """Learn which splits an earlier run knew. DAT-4107 when the content of one has changed (one that
        is gone is noticed when opened).
        """

    def open(self, split_id: str, position: Position | None) -> SplitReader:
        """Open a split at its start or after a position it once told. DAT-4107 when its content has
        changed since it was listed.
        """

    def discover_every_ms(self) -> int | None:
        """Return how often ``splits`` should be asked again for new ones; ``None`` when there will be
        none.
        """

    def rows_per_second(self) -> int:
        """Return the rate all subtasks together should keep; 0 when as fast as possible."""
