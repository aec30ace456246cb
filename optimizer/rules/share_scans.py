"""What several branches read of one table is read once: every branch reads the union of the columns and
takes its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.expressions.expression_properties import is_deterministic
from penstock.planner.expressions.nodes import Column, Expression, inline
from penstock.planner.logical.node_digest import table_text
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project, select_columns
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.time_attributes import WatermarkAssign


@dataclass(frozen=True)
class _Reading:
    """A table as a branch reads it, up to its watermark: which columns (over the table's own), which rows,
    which time and watermark.
    """

    table: str
    columns: tuple[Expression, ...]
    predicate: Expression | None
    watermark: tuple[Expression, Expression] | None

    @property
    def kind(self) -> tuple[object, ...]:
        """What two readings must have in common to be one."""
        return self.table, self.predicate, self.watermark


def share_sources(plan: LogicalPlan) -> LogicalPlan:
    """Widen readings of one table to the union of their columns wherever they differ in nothing else, so
    that one source serves them all.
    """
    found: dict[tuple[object, ...], list[_Reading]] = {}
    for node in _readers(plan):
        reading = _reading(node)
        # Readings with one table, predicate and watermark; their columns may differ.
        if reading is not None:
            found.setdefault(reading.kind, []).append(reading)
    # Equal readings are one source anyway: nodes with one digest are one operator.
    wide = {kind: _union(readings) for kind, readings in found.items() if len(set(readings)) > 1}
    return _rewritten(plan, wide) if wide else plan


def _readers(plan: LogicalPlan) -> list[LogicalPlan]:
    """The topmost nodes that are a reading, one for each occurrence in the plan."""
    if _reading(plan) is not None:
        return [plan]
    return [node for child in plan.inputs for node in _readers(child)]


def _reading(node: LogicalPlan) -> _Reading | None:
    match node:
        # A scan without a watermark; its columns are named by the table's own positions.
        case Scan(table=table, columns=columns, predicate=predicate):
            fields = ((i, table.source_schema[i]) for i in columns)
            own = tuple(Column(field.type, field.nullable, index=i, name=field.name) for i, field in fields)
            kept = None if predicate is None else inline(predicate, own)
            return _Reading(table_text(table), own, kept, None)
        # The watermark is of a column of the table.
        case WatermarkAssign(input=Scan() as scan):
            return _timed(node, _reading(scan))
        # The watermark is of a computed column. Computed once for all, so it must be deterministic.
        case WatermarkAssign(input=Project(input=Scan() as scan, expressions=expressions)) if all(
            map(is_deterministic, expressions)
        ):
            below = _reading(scan)
            assert below is not None
            return _timed(node, replace(below, columns=tuple(inline(e, below.columns) for e in expressions)))
    return None


def _timed(node: WatermarkAssign, below: _Reading | None) -> _Reading | None:
    if below is None:
        return None
    return replace(below, watermark=(below.columns[node.time_column], inline(node.watermark, below.columns)))


def _union(readings: Sequence[_Reading]) -> tuple[Expression, ...]:
    together: list[Expression] = []
    for reading in readings:
        together += [column for column in reading.columns if column not in together]
    return tuple(
        sorted(together, key=lambda column: column.index if isinstance(column, Column) else sys.maxsize)
    )


def _rewritten(node: LogicalPlan, wide: dict[tuple[object, ...], tuple[Expression, ...]]) -> LogicalPlan:
    reading = _reading(node)
    if reading is None:
        return node.with_inputs(tuple(_rewritten(child, wide) for child in node.inputs))
    columns = wide.get(reading.kind)
    if columns is None:
        return node
    return select_columns(
        _source(node, reading, columns),
        [columns.index(column) for column in reading.columns],
        node.schema.names,
    )


def _source(node: LogicalPlan, reading: _Reading, columns: tuple[Expression, ...]) -> LogicalPlan:
    """The shared reading, the same for every branch."""
    scan = next(below for below in node.walk() if isinstance(below, Scan))
    read = {i for column in (*columns, reading.predicate) if column is not None for i in column.columns()}
    # COUNT(*) reads no column; a scan has at least one.
    indexes = tuple(sorted(read)) or scan.columns
    # From the table's positions to those of the shared scan.
    places = {index: place for place, index in enumerate(indexes)}
    predicate = None if reading.predicate is None else reading.predicate.remap(places)
    source: LogicalPlan = Scan(scan.table, indexes, predicate)
    if not _are_columns(columns, indexes):
        names = tuple(_name(scan, column, i) for i, column in enumerate(columns))
        source = Project(source, tuple(column.remap(places) for column in columns), names)
    if reading.watermark is None:
        return source
    assert isinstance(node, WatermarkAssign)
    moved = {i: columns.index(column) for i, column in enumerate(reading.columns)}
    return WatermarkAssign(source, columns.index(reading.watermark[0]), node.watermark.remap(moved))


def _are_columns(columns: Sequence[Expression], indexes: Sequence[int]) -> bool:
    return [column.index if isinstance(column, Column) else None for column in columns] == list(indexes)


def _name(scan: Scan, column: Expression, place: int) -> str:
    return (
        scan.table.source_schema[column.index].name if isinstance(column, Column) else f"computed{place + 1}"
    )
