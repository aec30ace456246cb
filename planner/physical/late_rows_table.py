"""`<job>$late` as a table: the columns of the operators of a job that drop late rows."""

from __future__ import annotations

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import STRING, TIMESTAMP
from penstock.planner.logical.aggregate import Phase
from penstock.planner.physical.operator_specs import (
    JobGraph,
    JoinSpec,
    MatchSpec,
    OperatorSpec,
    OverSpec,
    PartitionTopSpec,
    TemporalJoinSpec,
    TemporalSortSpec,
    WindowAggregateSpec,
    WindowTableSpec,
)

LATE_SUFFIX = "$late"
_FIRST = (Field("operator", STRING, False), Field("window_end", TIMESTAMP), Field("watermark", TIMESTAMP))


def late_tables(graph: JobGraph, job_id: str, name: str) -> tuple[CatalogTable, ...]:
    """Return the tables `<id>$late` and `<name>$late` of a job's late rows; none where no operator of it
    drops any.
    """
    fields = {field.name.lower(): field for field in _FIRST}
    inputs = [
        columns
        for chain in graph.chains
        for spec in chain.operators
        if (columns := _input_of(spec)) is not None
    ]
    for columns in inputs:
        for field in columns:
            fields.setdefault(field.name.lower(), Field(field.name, field.type))
    if not inputs:
        return ()
    schema = Schema(tuple(fields.values()))
    options = {"connector": "late", "job": job_id}
    return tuple(
        CatalogTable(f"{word}{LATE_SUFFIX}", schema, schema, options, temporary=True)
        for word in dict.fromkeys((job_id, name))
    )


def _input_of(spec: OperatorSpec) -> Schema | None:
    match spec:
        case WindowAggregateSpec(input_schema=columns, phase=phase):
            return None if phase is Phase.GLOBAL else columns
        case WindowTableSpec(window=window, schema=columns) if window.merging:
            return Schema(columns.fields[:-3])
        case OverSpec(in_time=True, input_schema=columns) | MatchSpec(input_schema=columns):
            return columns
        case JoinSpec(left_schema=left, right_schema=right, time=time) if time is not None:
            return left.concat(right)
        case TemporalJoinSpec(left_schema=left, right_schema=right):
            return left.concat(right)
        case PartitionTopSpec(window=window_of, input_schema=columns) if window_of is not None:
            return columns
        case TemporalSortSpec(schema=columns):
            return columns
    return None
