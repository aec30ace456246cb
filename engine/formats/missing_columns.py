"""Which of a table's columns a file has: files written before a column was added to the table have it not."""

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
    """Return what to read of a file without the columns it has not and that may be NULL. The others are for
    its reader to miss (DAT-4203).

    A csv file without a header has the first of the declared columns, as many as its first record has values.
    In json any row may lack any.
    """
    names = _names(task, kind)
    if names is None:
        return task
    there = {name.lower() for name in names}
    wanted = tuple(field for field in task.wanted if field.name.lower() in there or not field.nullable)
    headless = kind == "csv" and not task.dialect.header
    declared = task.declared[: len(names)] if headless else task.declared
    return replace(
        task, wanted=wanted, declared=declared, predicate=task.predicate if wanted == task.wanted else None
    )


def _names(task: FileTask, kind: str) -> list[str] | None:
    """Return the names of a file's columns, None where nothing tells them."""
    if kind == "csv":
        first = header_names(task)
        return (
            first
            if first is None or task.dialect.header
            else [field.name for field in task.declared[: len(first)]]
        )
    return list(file_schema(task, kind).names) if kind in ("parquet", "arrow") else None


def file_schema(task: FileTask, kind: str) -> pa.Schema:
    """Return the columns and types a parquet or arrow file says it has; an INT96 of parquet as a timestamp
    of nanoseconds.
    """
    try:
        with task.open_seekable() if task.compression is None else task.open_stream() as file:
            return _schema(file, kind)
    except (OSError, pa.ArrowInvalid) as error:
        raise unreadable(task.path, error) from error


def columns_of(
    schema: pa.Schema, path: str, wanted: Iterable[Field], nulls: bool
) -> dict[str, tuple[pa.Field, Fit]]:
    """Return the file's column and how it is read for each wanted field. DAT-4203, 4205 and 4208 as
    ``file_column`` says.

    ``nulls``: a field that may be NULL is left out where the file has no such column.
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
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file).schema
