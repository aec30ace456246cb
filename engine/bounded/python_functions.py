"""Python scalar functions on the bounded backends: the same object as an Arrow function of Spark's Python workers or of DuckDB."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from catalog.python_functions import CallMode, PythonScalar
from catalog.types import to_arrow, to_spark
from planner.sql_flavour import python_name


def column_function(function: PythonScalar) -> Callable[..., Any]:
    """Return the function from columns to a column of exactly the declared type.

    It carries its imports along, for it runs in Spark's Python workers, which need not have penstock. A function of no arguments is given one column
    all the same, for the number of its rows.
    """
    body, by_row, name = function.body, function.mode is CallMode.ROW, function.name
    wanted, kind = [to_arrow(arg) for arg in function.arg_types], to_arrow(function.result)

    def own(*args: Any) -> Any:
        import traceback
        from pathlib import Path

        try:
            return body(*args)
        except Exception as error:  # noqa: BLE001  the program's own code may raise anything
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}, line {frame.lineno}, in {frame.name}"
            reason = str(error).split("\n")[0]
            raise ValueError(f"Python function {name}: {type(error).__name__}: {reason} (raised at {place})") from None

    def call(*given: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        count = len(given[0])
        flat = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in given[: len(wanted)]]
        columns = [column.cast(target) for column, target in zip(flat, wanted, strict=True)]
        if by_row:
            rows = zip(*(column.to_pylist() for column in columns), strict=True) if columns else [()] * count
            return pa.array([own(*row) for row in rows], kind)
        result = own(*columns)
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if isinstance(result, np.ndarray):
            result = pa.array(result)
        if not isinstance(result, pa.Array):
            value = result.as_py() if isinstance(result, pa.Scalar) else result
            return pa.array([value] * count, kind)
        if len(result) != count:
            raise ValueError(f"Python function {name} gave {len(result)} values for {count} rows")
        return result.cast(kind)

    return call


def register_on_spark(session: Any, functions: Sequence[PythonScalar]) -> None:
    """Make functions known to a Spark session under the names the text calls them by."""
    if not functions:
        return
    from pyspark.sql.functions import arrow_udf

    for function in functions:
        declared = arrow_udf(_annotated(column_function(function)), to_spark(function.result))
        session.udf.register(python_name(function), declared if function.deterministic else declared.asNondeterministic())


def _annotated(call: Callable[..., Any]) -> Callable[..., Any]:
    """Say in Spark's way that a function goes from arrays to an array."""

    def typed(*columns: pa.Array) -> pa.Array:
        return call(*columns)

    return typed


def register_on_duckdb(connection: Any, functions: Sequence[PythonScalar]) -> None:
    """Make functions known to a DuckDB connection under the names the text calls them by."""
    import duckdb

    for function in functions:
        kinds = [duckdb.type(name) for name in map(_duckdb_type, function.arg_types)] or [duckdb.type("INTEGER")]
        connection.create_function(
            python_name(function),
            _signed(column_function(function), len(kinds)),
            kinds,
            duckdb.type(_duckdb_type(function.result)),
            type="arrow",
            null_handling="special",
            side_effects=not function.deterministic,
        )


def _signed(call: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Say how many arguments a function takes: DuckDB asks its signature."""

    def signed(*columns: Any) -> Any:
        return call(*columns)

    signed.__signature__ = inspect.Signature([inspect.Parameter(f"a{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(count)])  # type: ignore[attr-defined]
    return signed


def _duckdb_type(kind: Any) -> str:
    from planner.duckdb_sql import DuckDbFlavour

    return DuckDbFlavour().kind(kind).sql("duckdb")
