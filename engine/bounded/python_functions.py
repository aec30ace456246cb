"""Python functions on the bounded backends: the same object as an Arrow function of Spark's Python workers
or of DuckDB.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.catalog.python_functions import CallMode, PythonAggregate, PythonScalar
from penstock.catalog.types import to_arrow, to_spark
from penstock.planner.sql_generator.dialect import python_name


def column_function(function: PythonScalar) -> Callable[..., Any]:
    """Return the function from columns to a column of exactly the declared type.

    It imports everything it needs inside: it runs in Spark's Python workers, which need not have penstock. A
    function of no arguments still receives one column, which carries the number of rows.
    """
    # computed here: the closure is pickled for Spark's workers and may hold Arrow types, none of our classes
    by_row, wanted = function.mode is CallMode.ROW, [to_arrow(arg) for arg in function.arg_types]
    own, as_column = _raising(function), _result_reader(function)

    def call(*arguments: Any) -> Any:
        import pyarrow as pa

        count = len(arguments[0])
        # columns may come in chunks; a function without arguments gets one column for its length
        flat = [
            column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            for column in arguments[: len(wanted)]
        ]
        columns = [column.cast(target) for column, target in zip(flat, wanted, strict=True)]
        # one call per row of Python values; the other mode is one call per batch of Arrow arrays
        if by_row:
            rows = zip(*(column.to_pylist() for column in columns), strict=True) if columns else [()] * count
            return as_column([own(*row) for row in rows], count, each=True)
        return as_column(own(*columns), count)

    return call


def group_function(function: PythonAggregate) -> Callable[..., Any]:
    """Return the function from a column of lists to a column of the groups' values. Each list has the rows of
    a group, as structs of the arguments.

    It imports everything it needs inside, as ``column_function`` does.
    """
    by_group, wanted, kind = (
        function.mode is CallMode.ROW,
        [to_arrow(arg) for arg in function.arg_types],
        to_arrow(function.result),
    )
    own, as_column = _raising(function), _result_reader(function)

    def call(lists: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        if isinstance(lists, pa.ChunkedArray):
            lists = lists.combine_chunks()
        count = len(lists)
        if count == 0:
            return pa.array([], kind)
        # (groups + 1,): a sliced list array keeps the offsets of its parent, so they may not begin at 0
        bounds = lists.offsets.to_numpy().astype(np.int64)
        first, last = int(bounds[0]), int(bounds[-1])
        # the structs' fields as columns over the rows of all groups, one group after another
        parts = lists.values.slice(first, last - first).flatten()[: len(wanted)]
        columns, offsets = (
            [part.cast(target) for part, target in zip(parts, wanted, strict=True)],
            bounds - first,
        )
        # a group without rows is NULL: the function is not asked
        filled = np.flatnonzero(np.diff(offsets))
        if filled.size == 0:
            return pa.nulls(count, kind)
        offsets = np.append(offsets[filled], offsets[-1])
        # one call for all groups: offsets[g] to offsets[g + 1] are the rows of group g
        if not by_group:
            values = as_column(own(offsets, *columns), filled.size)
        else:
            slices = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
            values = as_column(
                [own(*(column.slice(start, end - start) for column in columns)) for start, end in slices],
                filled.size,
                each=True,
            )
        at = np.full(count, -1)
        at[filled] = np.arange(filled.size)
        return values.take(pa.array(at, mask=at < 0))

    return call


def _raising(function: PythonScalar | PythonAggregate) -> Callable[..., Any]:
    """Wrap the program's function: its exceptions name the function and the line that raised them."""
    body, name = function.body, function.name

    def own(*args: Any) -> Any:
        import traceback
        from pathlib import Path

        try:
            return body(*args)
        except (Exception, SystemExit) as error:  # noqa: BLE001  the program's own code may raise anything
            # the innermost frame: the user's line, not ours
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(frame.filename).name}, line {frame.lineno}, in {frame.name}"
            reason = str(error).split("\n")[0]
            # a text that error_translation finds again in Spark's or DuckDB's message
            raise ValueError(
                f"Python function {name}: {type(error).__name__}: {reason} (raised at {where})"
            ) from None

    return own


def _result_reader(function: PythonScalar | PythonAggregate) -> Callable[..., Any]:
    """Return a converter from the function's results to a column of the declared type. The results are an
    array, or one value for all rows; with ``each`` a list, one result per call.
    """
    name, kind, declared = function.name, to_arrow(function.result), str(function.result)

    def as_column(result: Any, count: int, each: bool = False) -> Any:
        import numpy as np
        import pyarrow as pa

        def bad(what: str) -> ValueError:
            return ValueError(f"Python function {name} returned {what} (declared to return {declared})")

        # compute functions of Arrow return chunked arrays for chunked input
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        # a list from a vectorized function would otherwise become one value that all rows share
        if not each and isinstance(result, list | tuple | dict | set):
            raise bad(f"a {type(result).__name__}, not an Arrow array")
        try:
            # numpy array, Arrow scalar or a plain value; of the last two all rows get the same
            if isinstance(result, np.ndarray):
                result = pa.array(result)
            elif not isinstance(result, pa.Array):
                value = result.as_py() if isinstance(result, pa.Scalar) else result
                result = pa.array(value if each else [value] * count, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise bad(f"a value that is no {kind}: {str(error).splitlines()[0]}") from None
        # a filter inside the function, say
        if len(result) != count:
            raise bad(f"{len(result)} values for {count} rows")
        try:
            return result.cast(kind)
        except pa.ArrowException:
            raise bad(f"{result.type} values that are no {kind}") from None

    return as_column


def register_on_spark(session: Any, functions: Sequence[PythonScalar | PythonAggregate]) -> None:
    """Register functions in a Spark session under the names used in the query text."""
    if not functions:
        return
    from pyspark.sql.functions import arrow_udf

    for function in functions:
        call = (
            group_function(function) if isinstance(function, PythonAggregate) else column_function(function)
        )
        # Spark must neither repeat nor reorder a call that is not deterministic
        declared = arrow_udf(_annotated(call), to_spark(function.result))
        session.udf.register(
            python_name(function), declared if function.deterministic else declared.asNondeterministic()
        )


def _annotated(call: Callable[..., Any]) -> Callable[..., Any]:
    """Annotate a function for Spark: arrays to an array."""

    def typed(*columns: pa.Array) -> pa.Array:
        return call(*columns)

    return typed


def register_on_duckdb(connection: Any, functions: Sequence[PythonScalar]) -> None:
    """Register functions in a DuckDB connection under the names used in the query text."""
    import duckdb

    for function in functions:
        # DuckDB has no Arrow function without arguments: such a one gets an INTEGER it does not read
        kinds = [duckdb.type(name) for name in map(_duckdb_type, function.arg_types)] or [
            duckdb.type("INTEGER")
        ]
        connection.create_function(
            python_name(function),
            _signed(column_function(function), len(kinds)),
            kinds,
            duckdb.type(_duckdb_type(function.result)),
            type="arrow",
            # special: NULL arguments reach the function; by default DuckDB would answer NULL itself
            null_handling="special",
            side_effects=not function.deterministic,
        )


def _signed(call: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Set the signature of a function: DuckDB reads the number of arguments from it."""

    def signed(*columns: Any) -> Any:
        return call(*columns)

    parameters = [inspect.Parameter(f"a{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(count)]
    signed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return signed


def _duckdb_type(kind: Any) -> str:
    from penstock.planner.sql_generator.duckdb.dialect import DuckDbFlavour

    return DuckDbFlavour().kind(kind).sql("duckdb")
