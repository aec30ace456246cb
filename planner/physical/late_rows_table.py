"""`<job>$late` as a table: its columns are those of the operators of a job that drop late rows."""

from __future__ import annotations

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import STRING, TIMESTAMP
from penstock.planner.physical.operator_specs import JobGraph

LATE_SUFFIX = "$late"
_FIRST = (Field("operator", STRING, False), Field("window_end", TIMESTAMP), Field("watermark", TIMESTAMP))


def late_tables(graph: JobGraph, job_id: str, name: str) -> tuple[CatalogTable, ...]:
    """Return the tables `<id>$late` and `<name>$late` of a job's late rows; none when no operator drops late
    rows.
    """
    # three columns of every late row, then the columns of all inputs by name, each once
    fields = {field.name.lower(): field for field in _FIRST}
    specs = [spec for chain in graph.chains for spec in chain.operators if spec.node.drops_late(spec.facts)]
    if not specs:
        return ()
    for spec in specs:
        for columns in spec.node.inputs:
            for field in columns.schema:
                fields.setdefault(field.name.lower(), Field(field.name, field.type))
    schema = Schema(tuple(fields.values()))
    options = {"connector": "late", "job": job_id}
    return tuple(
        CatalogTable(f"{word}{LATE_SUFFIX}", schema, schema, options, temporary=True)
        # one table if the job's name is its id
        for word in dict.fromkeys((job_id, name))
    )
