"""Every function and cast on a bounded backend beside our own kernels, over columns of awkward values."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.engine.bounded.backend import BoundedBackend
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.projection import Project
from penstock.planner.logical.scan import Scan
from tests.unit.engine.expressions.calls import run
from tests.unit.engine.expressions.spark_cases import COLUMNS, FAMILIES, rows

AT_ONCE = 60
REFUSED = "BND-5101"


def register(tables: RegisteredTables) -> Scan:
    batch = rows()
    tables.register("rows", pa.Table.from_batches([batch]))
    schema = Schema(tuple(Field(name, COLUMNS[name][0]) for name in batch.schema.names))
    return Scan(
        CatalogTable("rows", schema, schema, {"connector": "registered", "name": "rows"}),
        tuple(range(len(schema))),
    )


def differences(backend: BoundedBackend, scan: Scan, family: str) -> tuple[list[str], list[str]]:
    """Return what a backend answers otherwise than we do, and what it refuses to say."""
    said, refused = [], []
    for text, expression in FAMILIES[family]():
        try:
            backend.explain(Project(scan, (expression,), ("v",)))
            said.append((text, expression))
        except PenstockError as error:
            assert error.code == REFUSED
            refused.append(text)
    wrong = [
        line
        for start in range(0, len(said), AT_ONCE)
        for line in _compare(backend, scan, said[start : start + AT_ONCE])
    ]
    return wrong, refused


def _compare(backend: BoundedBackend, scan: Scan, cases: list[tuple[str, Expression]]) -> list[str]:
    plan = Project(
        scan, tuple(expression for _, expression in cases), tuple(f"v{i}" for i in range(len(cases)))
    )
    table = pa.Table.from_batches(list(backend.run(plan)), plan.schema.to_arrow())
    wrong = []
    for index, (text, expression) in enumerate(cases):
        theirs, ours = _plain(table.column(index).combine_chunks()), _plain(run(expression, rows()))
        parted = [(a, b) for a, b in zip(theirs, ours, strict=True) if not _same(a, b)]
        if parted:
            wrong.append(
                f"{text}: {backend.name} {parted[0][0]!r}, ours {parted[0][1]!r} ({len(parted)} rows)"
            )
    return wrong


def _plain(column: pa.Array) -> list[Any]:
    """Times as integers: Python's end at the year 9999."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    return (
        column.cast(pa.int64())
        if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)
        else column
    ).to_pylist()


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=1e-13)
    return type(a) is type(b) and a == b
