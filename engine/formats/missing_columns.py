"""Columns that a file lacks because it was written before they were added to the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.catalog.schema import Field
from penstock.engine.formats.column_adapter import file_column
from penstock.engine.formats.csv import header_names
from penstock.engine.formats.file_task import FileTask, unreadable
from penstock.engine.formats.file_types import Fit, matching


def with_columns_there(task: FileTask, kind: str) -> FileTask:
    """Return a file task without the nullable columns that the file lacks. The file's reader reports the
    other missing ones (DAT-4203).

    A csv file without a header has the first of the declared columns, as many as its first record has values.
    In json any row may lack any.
    """
    names = _names(task, kind)
    # json, where any row may lack any column, or a csv file without records
    if names is None:
        return task
    there = {name.lower() for name in names}
    wanted = tuple(field for field in task.wanted if field.name.lower() in there or not field.nullable)
    # values are matched by position, so the declared columns are cut to the width of the file
    headless = kind == "csv" and not task.dialect.header
    declared = task.declared[: len(names)] if headless else task.declared
    return replace(
        # the predicate refers to positions in ``wanted``, which have moved
        task,
        wanted=wanted,
        declared=declared,
        predicate=task.predicate if wanted == task.wanted else None,
    )


def _names(task: FileTask, kind: str) -> list[str] | None:
    """Return the names of a file's columns, None for a format that does not record them."""
    if kind == "csv":
        first = header_names(task)
        return (
            first
            if first is None or task.dialect.header
            else [field.name for field in task.declared[: len(first)]]
        )
    return list(file_schema(task, kind).names) if kind in ("parquet", "arrow") else None


def file_schema(task: FileTask, kind: str) -> pa.Schema:
    """Return the schema of a parquet or arrow file; an INT96 of parquet is a timestamp of nanoseconds."""
    try:
        with task.open_seekable() if task.compression is None else task.open_stream() as file:
            return _schema(file, kind)
    except (OSError, pa.ArrowInvalid) as error:
        raise unreadable(task.path, error) from error


def columns_of(
    schema: pa.Schema, path: str, wanted: Iterable[Field], nulls: bool
) -> dict[str, tuple[pa.Field, Fit]]:
    """Return for each requested field the file's column and its fit. DAT-4203, 4205 and 4208 as
    ``file_column`` raises them.

    ``nulls``: a nullable field is left out where the file has no such column.
    """
    there = [
        field for field in wanted if matching(schema.names, field.name) or not (nulls and field.nullable)
    ]
    return {field.name: file_column(path, schema, field) for field in there}


def _schema(file: pa.NativeFile, kind: str) -> pa.Schema:
    if kind == "parquet":
        return pq.read_schema(file)
    try:
        return pa.ipc.open_file(file).schema
    # not an Arrow file, so an Arrow stream
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file).schema
