"""The source interfaces: a connector lists splits and opens them; a split reader returns rows without
blocking, and its position.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.clock import Clock
from penstock.engine.api.operator import Services
from penstock.engine.api.row_arrivals import RowArrivals
from penstock.engine.api.scan_pruning import Skipping
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.planner.expressions.nodes import Expression

Position = dict[str, Any]


@dataclass(frozen=True)
class ScanRequest:
    """What one subtask asks of a connector: ``columns`` are positions of ``table.source_schema``;
    ``predicate`` reads positions of ``columns``.

    ``skipping``: what is learned of the wanted rows during the scan. ``resumes`` False: the job keeps no
    checkpoints, so nothing resumes from one. A connector that knows when rows arrive says so to ``arrivals``.
    """

    table: CatalogTable
    columns: tuple[int, ...]
    predicate: Expression | None
    batch_max_rows: int
    clock: Clock
    services: Services
    metrics: OperatorMetrics = field(default_factory=OperatorMetrics)
    skipping: Skipping | None = None
    resumes: bool = True
    arrivals: RowArrivals = field(default_factory=RowArrivals)


class SplitReader(Protocol):
    """Reads one split in its order. Never blocks."""

    @property
    def ended(self) -> bool:
        """Whether the split has ended for good."""

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        """Return up to ``max_rows`` rows of the requested columns; ``None`` when there is nothing now. After
        an empty batch poll again at once.

        A changelog table returns a Batch with weights, perhaps of one row more: the rows of one change stay
        together.
        """

    def position(self) -> Position:
        """Return the position after the last returned row, JSON-ready."""

    def close(self) -> None:
        """Release what is open."""


@runtime_checkable
class LagReader(Protocol):
    """A split reader that also knows how far its split's end is. A reader without this method has no lag."""

    def lag(self) -> int | None:
        """Return how many records of the split are not returned yet, ``None`` while that is unknown. Called
        about once a second between two polls: it must not block.
        """


@runtime_checkable
class ArrivalReporter(Protocol):
    """A split reader that reports to ``ScanRequest.arrivals`` when rows come after a poll without rows."""

    @property
    def reports_arrivals(self) -> bool:
        """Whether it does so now: a split without rows is polled a few times a second only then."""


@runtime_checkable
class CheckpointListener(Protocol):
    """A split reader whose outside holds data back until a checkpoint has it, such as a replication slot."""

    def checkpoint_completed(self, position: Position) -> None:
        """A checkpoint with this position of the split is durable: what precedes it is never read again."""


class SourceConnector(Protocol):
    """Lists the splits of a table and opens them. One object a subtask; every subtask lists all splits and
    reads its own.
    """

    def splits(self) -> list[str]:
        """Return the stable ids of all splits there are now, sorted. A split keeps its id for as long as
        its content is the same.

        The first call lists what a new job begins with, unless ``recall`` came before it. Every other call
        is a discovery.
        """

    def recall(self, split_ids: list[str]) -> None:
        """Learn which splits an earlier run knew. DAT-4107 when the content of one has changed. A missing one
        is noticed when it is opened.
        """

    def open(self, split_id: str, position: Position | None) -> SplitReader:
        """Open a split at its start or after a position it returned. DAT-4107 when its content has changed
        since it was listed.
        """

    def discover_every_ms(self) -> int | None:
        """Return how often to ask ``splits`` again for new ones; ``None`` when there will be none.

        Only an unbounded table discovers splits, the first time right after a restore. A bounded one ends
        when the splits of its first listing have.
        """

    def rows_per_second(self) -> int:
        """Return the rate all subtasks together should keep; 0: as fast as possible."""


@runtime_checkable
class PositionedSource(Protocol):
    """A source connector that knows where its splits begin before they are opened: a checkpoint has these
    positions, too. So a split is read from there, whenever it is opened first.
    """

    def first_position(self, split_id: str) -> Position:
        """Return where a split begins that ``splits`` has listed."""


_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.DOTALL)


def split_owner(split_id: str, parallelism: int) -> int:
    """Return the subtask that reads a split: a stable hash of its id. Ids that differ in their last number
    alone, such as the partitions of a topic, go round the subtasks.
    """
    numbered = _NUMBERED.fullmatch(split_id)
    text, number = numbered.groups() if numbered is not None else (split_id, "0")
    return (zlib.crc32(text.encode()) + int(number)) % parallelism


def reports_arrivals(reader: SplitReader) -> bool:
    """Return whether a reader that had no rows reports the next ones."""
    return isinstance(reader, ArrivalReporter) and reader.reports_arrivals


def lag_of(reader: SplitReader) -> int | None:
    """Return how many records of its split a reader has not returned, ``None`` when it does not know."""
    return reader.lag() if isinstance(reader, LagReader) else None
