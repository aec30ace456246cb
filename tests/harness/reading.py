"""Reads tables through the source operator, as a task would, with the test's own clock and output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable, MetadataColumn, WatermarkRule
from penstock.catalog.types import TIMESTAMP, DataType
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyGroups, Services, SplitEvent
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process.bad_records import BadRecords
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.operators.source.source import SourceOperator
from penstock.planner.expressions.nodes import Column, Expression
from tests.harness.operator_specs import source_spec

Row = dict[str, Any]


class Taken:
    """An output that keeps what it is given."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.events: list[SplitEvent] = []

    def collect(self, batch: Batch) -> None:
        self.batches.append(batch)

    def watermark(self, time_us: int) -> None:
        raise AssertionError("sources make no watermarks")

    def idle(self) -> None:
        raise AssertionError("sources are never idle themselves")

    def split(self, event: SplitEvent) -> None:
        self.events.append(event)

    @property
    def rows(self) -> list[Row]:
        return [row for batch in self.batches for row in batch.rows.to_pylist()]

    @property
    def split_events(self) -> list[tuple[str, int]]:
        return [(str(event.kind), event.origin) for event in self.events]


def table_of(
    columns: dict[str, DataType],
    options: dict[str, str],
    *,
    metadata: dict[str, tuple[str, DataType]] | None = None,
    watermark: str | None = None,
    partitioned_by: Sequence[str] = (),
    name: str = "t",
) -> CatalogTable:
    fields = [Field(name, kind) for name, kind in columns.items()]
    extra = [MetadataColumn(name, key) for name, (key, _) in (metadata or {}).items()]
    fields += [Field(name, kind) for name, (_, kind) in (metadata or {}).items()]
    schema = Schema(tuple(fields))
    rule = (
        None
        if watermark is None
        else WatermarkRule(
            watermark, Column(TIMESTAMP, True, index=schema.index_of(watermark) or 0), watermark
        )
    )
    return CatalogTable(name, schema, schema, options, tuple(extra), (), rule, (), tuple(partitioned_by))


def open_source(
    table: CatalogTable,
    *,
    columns: Sequence[str] | None = None,
    predicate: Expression | None = None,
    batch: int = 32_768,
    subtask: int = 0,
    parallelism: int = 1,
    clock: ManualClock | None = None,
    services: Services | None = None,
) -> SourceOperator:
    names = table.source_schema.names
    indexes = tuple(range(len(names))) if columns is None else tuple(names.index(name) for name in columns)
    spec = source_spec("op1", "source", table.source_schema.select(indexes), table, indexes, predicate)
    operator = SourceOperator(spec, JobOptions(batch_max_rows=batch))
    groups = KeyGroups(0, 128, 128)
    given = services or Services(BadRecords())
    operator.open(
        Context(
            "op1",
            "source",
            subtask,
            parallelism,
            groups,
            clock or ManualClock(),
            OperatorMetrics(),
            given,
            "job",
        )
    )
    return operator


def drain(
    operator: SourceOperator,
    out: Taken | None = None,
    *,
    polls: int = 100_000,
    each: Callable[[], None] | None = None,
) -> Taken:
    """Poll until the end, or ``polls`` times."""
    out = out or Taken()
    for _ in range(polls):
        if operator.poll(out).ended:
            break
        if each is not None:
            each()
    operator.close()
    return out


def read(table: CatalogTable, **how: Any) -> list[Row]:
    return drain(open_source(table, **how)).rows


def resume_everywhere(table: CatalogTable, expected: list[Row], *, batch: int) -> None:
    """Stop after every poll, begin anew from the snapshot, and demand exactly the rest."""
    operator, out = open_source(table, batch=batch), Taken()
    for _ in range(100_000):
        if operator.poll(out).ended:
            break
        items = operator.snapshot_items()
        operator.close()
        operator = open_source(table, batch=batch)
        operator.restore_items(items)
    assert out.rows == expected


def as_rows(table: pa.Table) -> list[Row]:
    return table.to_pylist()
