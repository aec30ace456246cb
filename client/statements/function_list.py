"""All functions of a session: how each is called, and one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.functions.aggregate import AGGREGATES
from penstock.catalog.functions.registry import INTERNAL_NAMES, SCALAR_FAMILIES
from penstock.catalog.functions.relation import FILE_TABLE_FUNCTIONS, WINDOW_TABLE_FUNCTIONS
from penstock.catalog.functions.table import TABLE_FUNCTIONS
from penstock.catalog.functions.window import WINDOW_FUNCTIONS
from penstock.catalog.python_functions import FunctionEntry, PythonAggregate, PythonScalar, PythonTable
from penstock.client.statements.functions import python_function_kind
from penstock.client.statements.settings import matches

if TYPE_CHECKING:
    from penstock.client.execution.session_state import SessionState


@dataclass(frozen=True)
class FunctionFacts:
    """One function as ``\\df`` lists it."""

    name: str
    usage: str
    kind: str
    help: str
    aliases: tuple[str, ...] = ()


def function_list(state: SessionState, like: str | None) -> list[FunctionFacts]:
    """Return the functions whose name or alias matches a pattern, by name."""
    listed = [
        FunctionFacts(function.name, function.usage, kind, function.help, function.aliases)
        for kind, functions in (
            *(("scalar", family) for family in SCALAR_FAMILIES.values()),
            ("aggregate", AGGREGATES),
        )
        for function in functions
        if function.name not in INTERNAL_NAMES
    ]
    listed += [
        FunctionFacts(function.name.lower(), function.usage, kind, function.help)
        for kind, functions_of_rows in (
            ("with OVER", WINDOW_FUNCTIONS),
            ("table", TABLE_FUNCTIONS),
            ("window table", WINDOW_TABLE_FUNCTIONS),
            ("file", FILE_TABLE_FUNCTIONS),
        )
        for function in functions_of_rows
    ]
    listed += [_python_function(entry) for entry in state.catalog.functions.entries()]
    found = (one for one in listed if any(matches(name, like) for name in (one.name, *one.aliases)))
    return sorted(found, key=lambda one: (one.name, one.kind))


def _python_function(entry: FunctionEntry) -> FunctionFacts:
    function = entry.function
    # A stored function is imported when it is first called, and its types are those of its module.
    if function is None:
        return FunctionFacts(
            entry.name, f"{entry.name}(..)", python_function_kind(entry), f"{entry.target}, not imported yet."
        )
    arguments = ", ".join(map(str, function.arg_types))
    match function:
        case PythonTable(result=schema):
            result = f"rows of {', '.join(f'{field.name} {field.type}' for field in schema)}"
        case PythonScalar(result=kind) | PythonAggregate(result=kind):
            result = str(kind)
        case _:
            result = "anything"
    sentence = (function.body.__doc__ or "").strip().partition("\n")[0]
    return FunctionFacts(
        entry.name, f"{entry.name}({arguments}) → {result}", python_function_kind(entry), sentence
    )
