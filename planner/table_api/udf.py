"""The decorators that make Python functions callable from SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.catalog.python_functions import CallMode, PythonAggregate, PythonScalar, PythonTable
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import DataType
from penstock.planner.parser.type_parser import parse_type


def udf(
    arg_types: Sequence[str],
    result: str,
    *,
    mode: str = "arrow",
    deterministic: bool = True,
    name: str | None = None,
    version: str = "",
) -> Callable[[Callable[..., Any]], PythonScalar]:
    """Return the decorator that makes a Python function a scalar function of SQL.

    ``arg_types`` and ``result`` are SQL types. ``mode`` "arrow": called with one Arrow array per argument,
    all of one length. It returns an array (Arrow or numpy) of that length, or one value for all rows.
    ``mode`` "row": called with the values of one row, NULL as None. Raises SQL-1204 for an unknown type,
    SQL-1332 for another mode.
    """
    # types are parsed when the module is loaded, so that a misspelt one fails there
    kinds, (kind,), how = _types(arg_types), _types([result]), _mode(mode)
    return lambda body: PythonScalar(name or body.__name__, kinds, body, how, deterministic, version, kind)


def udaf(
    arg_types: Sequence[str], result: str, *, mode: str = "arrow", name: str | None = None, version: str = ""
) -> Callable[[Callable[..., Any]], PythonAggregate]:
    """Return the decorator that makes a Python function an aggregate function of SQL.

    The engine buffers the rows of each group, so that it can retract rows and merge groups. It calls the
    function when it needs a value.

    ``mode`` "arrow": called once for many groups with ``(offsets, *columns)``. Group i has the rows
    ``offsets[i]`` up to ``offsets[i + 1]`` (an int64 numpy array). It returns one value per group as an
    array.

    ``mode`` "row": called once per group with one Arrow array per argument; it returns the value.

    Rows are in ascending order of their values, NULLs first. The function must return equal values for equal
    rows: to retract a result, the engine computes it again. Raises as ``udf``.
    """
    kinds, (kind,), how = _types(arg_types), _types([result]), _mode(mode)
    return lambda body: PythonAggregate(name or body.__name__, kinds, body, how, version=version, result=kind)


def udtf(
    arg_types: Sequence[str],
    columns: Mapping[str, str],
    *,
    mode: str = "arrow",
    deterministic: bool = True,
    name: str | None = None,
    version: str = "",
) -> Callable[[Callable[..., Any]], PythonTable]:
    """Return the decorator that makes a Python function a table function of SQL, called as ``LATERAL
    TABLE(f(..)) AS t(..)``.

    ``columns`` are the names and SQL types of its output. ``mode`` "arrow": called with one Arrow array per
    argument. It returns ``(rows, *columns)``: ``rows`` (int64, ascending) is, for each output row, the index
    of its input row.

    ``mode`` "row": called with the values of one row. It returns an iterable of tuples, or of values if there
    is one column. Raises as ``udf``.
    """
    kinds, how = _types(arg_types), _mode(mode)
    # a mapping keeps the order of its columns, which is that of the function's output
    schema = Schema(tuple(map(Field, columns, _types(list(columns.values())))))
    return lambda body: PythonTable(name or body.__name__, kinds, body, how, deterministic, version, schema)


def _types(texts: Sequence[str]) -> tuple[DataType, ...]:
    # a string is a sequence too: "INT" would be three types
    if isinstance(texts, str):
        hint = f'write ["{texts}"] for one argument'
        raise PenstockError(
            "SQL-1332", "the argument types of a Python function are a list of SQL types", hint=hint
        )
    return tuple(parse_type(text) for text in texts)


def _mode(mode: str) -> CallMode:
    if mode not in tuple(CallMode):
        hint = 'mode="arrow" is called with Arrow arrays, mode="row" with the values of one row'
        raise PenstockError("SQL-1332", f'a Python function has no mode "{mode}"', hint=hint)
    return CallMode(mode)
