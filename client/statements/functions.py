"""CREATE FUNCTION, DROP FUNCTION and functions registered by the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.functions.registry import function_names
from penstock.catalog.functions.table import table_function_names
from penstock.catalog.process_table_functions import PythonProcessTable
from penstock.catalog.python_functions import (
    Decorated,
    FunctionEntry,
    PythonAggregate,
    PythonFunction,
    PythonScalar,
    PythonTable,
)
from penstock.client.results.result import Result, note_result
from penstock.planner.logical.over import OVER_ONLY
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.execution.session_state import SessionState


def change_functions(state: SessionState, node: nodes.CreateFunction | nodes.DropFunction) -> Result:
    """Create or drop a Python function, save the catalog that has it, and report the change."""
    result = _create(state, node) if isinstance(node, nodes.CreateFunction) else _drop(state, node)
    state.save_catalogs()
    return result


def register_function(state: SessionState, function: Decorated, name: str | None) -> None:
    """Make a decorated function of the program callable from SQL, in the place of one of that name
    registered before.
    """
    if not isinstance(function, PythonFunction):
        hint = 'decorate it: @penstock.udf(["BIGINT"], "DOUBLE"), or @penstock.udaf, udtf, ptf'
        raise PenstockError(
            "SQL-1334",
            f"{getattr(function, '__name__', type(function).__name__)} is no function of SQL",
            hint=hint,
            sqlstate="42883",
        )
    called = name or function.name
    _refuse_reserved(called, None)
    state.catalog.functions.create(FunctionEntry(called, None, function, temporary=True), or_replace=True)


def python_function_rows(state: SessionState) -> list[tuple[str, str]]:
    """Return name and kind of each Python function."""
    return [(entry.name, python_function_kind(entry)) for entry in state.catalog.functions.entries()]


def python_function_kind(entry: FunctionEntry) -> str:
    """Return what a Python function is: scalar, aggregate, table or process table."""
    match entry.function:
        # one value a row
        case PythonScalar():
            return "python scalar"
        # one value a group
        case PythonAggregate():
            return "python aggregate"
        # rows for each row: FROM t, LATERAL TABLE(f(x))
        case PythonTable():
            return "python table"
        # rows of tables: FROM f(TABLE t PARTITION BY k)
        case PythonProcessTable():
            return "python process table"
    return "python"


def _create(state: SessionState, node: nodes.CreateFunction) -> Result:
    name = node.name.text
    _refuse_reserved(name, node.name.span)
    if node.if_not_exists and name in state.catalog.functions:
        return note_result(f"function {name} exists already")
    # a stored catalog imports nothing: the module is imported when the function is first called
    function = None if state.loading else state.modules.load(node.target, node.target_span)
    entry = FunctionEntry(name, node.target, function, node.temporary)
    state.catalog.functions.create(entry, or_replace=node.or_replace, span=node.name.span)
    return note_result(f"function {name} created")


def _drop(state: SessionState, node: nodes.DropFunction) -> Result:
    dropped = state.catalog.functions.drop(node.name.text, node.if_exists, node.name.span)
    return note_result(f"function {node.name} dropped" if dropped else f"there is no function {node.name}")


def _refuse_reserved(name: str, span: Span | None) -> None:
    if name.lower() in (
        *function_names(),
        *table_function_names(),
        *OVER_ONLY,
        "extract",
        "grouping",
        "grouping_id",
    ):
        hint = f"call it by another name, for instance my_{name.lower()}"
        raise PenstockError(
            "SQL-1330", f'"{name}" is a function of the language', span=span, hint=hint, sqlstate="42723"
        )
