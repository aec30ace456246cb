"""Reads a table of a PostgreSQL server by the source operator, as a job would: stopped and restored at any
point, its changes folded to rows and compared with the server's own.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import DataType
from penstock.engine.api.clock import SystemClock
from penstock.engine.operators.source.source import SourceOperator
from tests.harness.patience import await_that
from tests.harness.postgres_server import PostgresServer
from tests.harness.reading import Taken, open_source, table_of

Fold = Counter[tuple[Any, ...]]


def cdc_table(
    server: PostgresServer,
    name: str,
    columns: dict[str, DataType],
    *,
    key: tuple[str, ...] = ("id",),
    database: str = "postgres",
    metadata: dict[str, tuple[str, DataType]] | None = None,
    **options: str,
) -> CatalogTable:
    """Return a table of the connector; its slot has the table's name."""
    told = server.options(database, name, f"slot_{name}", **{"heartbeat__interval": "20 ms"} | options)
    table = table_of(columns, told, name=name, metadata=metadata)
    return dataclasses.replace(table, primary_key=key)


class CdcReading:
    """One job's reading of a table. ``fold`` is what its changes add up to; ``checkpoint`` and ``restart`` go
    back and forth as a job does.
    """

    def __init__(self, table: CatalogTable, *, batch: int = 32_768) -> None:
        self.table, self._batch = table, batch
        self.fold: Fold = Counter()
        self._saved: tuple[list[dict[str, Any]], Fold] = ([], Counter())
        self._checkpoints = 0
        self.operator = self._opened()

    def _opened(self) -> SourceOperator:
        operator = open_source(self.table, batch=self._batch, clock=SystemClock())  # type: ignore[arg-type]
        operator.restore_items(self._saved[0])
        return operator

    def poll(self) -> int:
        """Poll once, and fold what came."""
        out = Taken()
        for split in self.operator._splits:
            split.again_ms = 0
        self.operator.poll(out)
        for batch in out.batches:
            columns = [column.to_pylist() for column in batch.rows.columns]
            weights = [1] * batch.num_rows if batch.weights is None else batch.weights.tolist()
            for row, weight in zip(zip(*columns, strict=True), weights, strict=True):
                self.fold[row] += weight
                if not self.fold[row]:
                    del self.fold[row]
        return sum(batch.num_rows for batch in out.batches)

    def polls(self, count: int) -> None:
        """Poll until so many polls had rows."""
        for _ in range(count):
            await_that(self.poll, "a row", each_s=0.001)

    def reads(self, holds: Callable[[], object], what: str = "what is read") -> None:
        """Poll until something holds."""
        await_that(lambda: (self.poll(), holds())[1], what, each_s=0.001)

    def checkpoint(self, *, durable: bool = True) -> None:
        """Take a checkpoint, and report it."""
        self._checkpoints += 1
        out = Taken()
        self.operator.before_barrier(self._checkpoints, out)
        self._saved = (self.operator.snapshot_items(), Counter(self.fold))
        if durable:
            self.operator.on_checkpoint_complete(self._checkpoints)

    @property
    def position(self) -> dict[str, Any]:
        """The position of the last checkpoint."""
        return dict(self._saved[0][0]["position"])

    @property
    def counters(self) -> dict[str, int]:
        """What the reader has counted."""
        return self.operator._context.metrics.counters

    def restart(self) -> None:
        """Go back to the last checkpoint, as a killed job does."""
        self.operator.close()
        self.fold = Counter(self._saved[1])
        self.operator = self._opened()

    def declare(self, table: CatalogTable) -> None:
        """Go back to the last checkpoint with another declaration of the table."""
        self.table = table
        self.restart()

    def close(self) -> None:
        """Stop."""
        self.operator.close()


def rows_there(server: PostgresServer, text: str, database: str = "postgres") -> Fold:
    """Return the rows of a SELECT, from the server itself."""
    import psycopg

    with psycopg.connect(server.database_url(database)) as connection:
        return Counter(connection.execute(text).fetchall())
