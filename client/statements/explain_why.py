"""EXPLAIN WHY ROW: the input rows that made a row of a result, with their positions and weights."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import MaterializedView
from penstock.catalog.types import BIGINT, STRING
from penstock.client.results.result import Result, rows_result
from penstock.client.statements.explained_query import drops_late_rows, explained_query, run_bounded
from penstock.planner.expressions.nodes import AggregateCall, SortKey
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import column_of
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.sort import TopN
from penstock.planner.provenance.late_rows import drop_late_rows
from penstock.planner.provenance.lineage import Leaf, trace_lineage
from penstock.planner.provenance.restrictions import Restriction, restrict
from penstock.planner.provenance.source_positions import LocatedRows, located_rows
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.execution.query_pipeline import QueryPipeline
    from penstock.client.execution.session_state import SessionState

DEFAULT_LIMIT = 100
"""Input rows of each table that are shown; the others are counted."""
_COLUMNS = (
    Field("source", STRING, False),
    Field("position", STRING),
    Field("weight", BIGINT, False),
    Field("input_row", STRING, False),
)


def explain_why(state: SessionState, pipeline: QueryPipeline, node: nodes.ExplainWhy) -> Result:
    """Return the input rows of the result rows that meet the conditions, one row each: table, position,
    weight, and the row as JSON. Raises WHY-7101 to WHY-7103 for queries whose input rows cannot be found,
    WHY-7104 where no row meets the conditions.
    """
    query = explained_query(state, node)
    if drops_late_rows(state, pipeline, node, query.plan):
        query = replace(query, plan=drop_late_rows(query.plan))
    restrictions = tuple(map(Restriction, query.conditions))
    leaves = trace_lineage(query.plan, restrictions)
    made = count_rows(pipeline, restrict(query.plan, restrictions))
    if not made:
        raise PenstockError(
            "WHY-7104",
            "no row of the result meets these conditions",
            span=node.conditions[0].span,
            hint="EXPLAIN WHY NOT ROW with the same conditions says what let it go",
            sqlstate="02000",
        )
    limit = node.limit or DEFAULT_LIMIT
    notes, parts = [], []
    for rows in input_rows(leaves):
        part, more = _shown(pipeline, rows, limit)
        parts.append(part)
        if more:
            notes.append(f"{rows.table}: {more:,} more input row{'' if more == 1 else 's'}")
    shown = pa.concat_tables(parts) if parts else Schema(_COLUMNS).to_arrow().empty_table()
    # SELECT explode(ARRAY[1, 2])
    if not shown.num_rows:
        notes.append("the query makes the row of constants: no input row is in it")
    notes += [
        f"EXPLAIN WHY ROW (..) OF VIEW {name} has the rows that made rows of the view"
        for name in sorted(_views_read(query.plan))
    ]
    if made > 1:
        notes.insert(0, f"{made:,} rows of the result meet these conditions")
    return replace(rows_result(shown), note="; ".join(notes) or None)


def _views_read(plan: LogicalPlan) -> set[str]:
    return {
        scan.table.name
        for scan in plan.walk()
        if isinstance(scan, Scan) and isinstance(scan.table, MaterializedView)
    }


def input_rows(leaves: list[Leaf]) -> list[LocatedRows]:
    """Return the rows of the leaves of a lineage, table by table. A row that two scans of a table have read
    is there once, where its position says that it is one.
    """
    by_table: dict[tuple[str, int], list[LocatedRows]] = {}
    for number, (leaf, restrictions) in enumerate(leaves):
        # the one row of a SELECT without FROM is no input
        if isinstance(leaf, Values) and leaf.schema.names == ["nothing"]:
            continue
        rows = located_rows(leaf, restrictions)
        by_table.setdefault((rows.table, -1 if rows.position else number), []).append(rows)
    return [_merged(scans) for scans in by_table.values()]


def _merged(scans: list[LocatedRows]) -> LocatedRows:
    first = scans[0]
    if len(scans) == 1:
        return first
    every = Union(tuple(rows.plan for rows in scans))
    width = len(first.plan.schema)
    return replace(first, plan=Aggregate(every, tuple(range(width)), (), ()))


def count_rows(pipeline: QueryPipeline, plan: LogicalPlan) -> int:
    """Return the number of rows of a bounded plan."""
    call = AggregateCall("count", (), BIGINT, False)
    counted = run_bounded(pipeline, Aggregate(plan, (), (call,), ("n",)))
    return int(counted.column(0)[0].as_py())


def _shown(pipeline: QueryPipeline, rows: LocatedRows, limit: int) -> tuple[pa.Table, int]:
    """Return the first input rows of a table as they are shown, and how many more there are."""
    plan, width = rows.plan, rows.width
    keys = tuple(SortKey(column_of(plan, i)) for i in range(width, len(plan.schema)))
    # one more than is shown: only then the rest is counted
    found = run_bounded(pipeline, TopN(plan, keys, limit + 1))
    more = count_rows(pipeline, plan) - limit if found.num_rows > limit else 0
    return _as_text(rows, found.slice(0, limit)), more


def _as_text(rows: LocatedRows, found: pa.Table) -> pa.Table:
    """Return input rows as position, weight and JSON."""
    # its kernels: not before rows are shown
    from penstock.engine.changelog.consolidate import summed
    from penstock.engine.formats.json_text import json_lines
    from penstock.engine.formats.variant_columns import StoredColumns

    width, weights = rows.width, np.ones(found.num_rows, np.int64)
    if not rows.position:
        # nothing tells equal rows apart: they are one row of their number
        found, weights = summed(found, weights)
    batch = found.combine_chunks().to_batches()[0] if found.num_rows else None
    if batch is None:
        return Schema(_COLUMNS).to_arrow().empty_table()
    fields = tuple(rows.plan.schema)[:width]
    # a VARIANT is JSON already
    stored = StoredColumns([field.name for field in fields], [field.type for field in fields], "json")
    texts = pc.utf8_rtrim(json_lines(stored.of(batch.columns[:width])), "\n")
    position = [
        pc.if_else(
            pc.is_valid(column),
            pc.binary_join_element_wise(f"{key.rpartition('.')[2]} ", column.cast(pa.string()), ""),
            "",
        )
        for key, column in zip(rows.position, batch.columns[width:], strict=True)
    ]
    where = (
        pc.binary_join_element_wise(*position, ", ") if position else pa.nulls(batch.num_rows, pa.string())
    )
    columns = [pa.array([rows.table] * batch.num_rows, pa.string()), where, pa.array(weights), texts]
    return pa.Table.from_arrays(columns, schema=Schema(_COLUMNS).to_arrow())
