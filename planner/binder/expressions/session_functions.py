"""Functions of the session in which a statement is planned: CURRENT_DATABASE and its kin."""

from __future__ import annotations

from collections.abc import Callable

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import STRING
from penstock.planner.binder.context import BindContext
from penstock.planner.expressions.nodes import Expression, Literal

_FACTS: dict[str, Callable[[BindContext], str]] = {
    "current_catalog": lambda context: context.catalog.current.catalog,
    "current_database": lambda context: context.catalog.current.database,
    "current_schema": lambda context: context.catalog.current.database,
    "current_timezone": lambda context: str(context.settings.get("table.local-time-zone")),
}
SESSION_FUNCTIONS = frozenset(_FACTS)
"""Their names. Each is a constant: what it is when the statement is planned."""


def session_function(name: str, arguments: int, context: BindContext, span: Span | None) -> Expression | None:
    """Return a call as a constant, or ``None`` for another function."""
    fact = _FACTS.get(name)
    if fact is None:
        return None
    if arguments:
        raise PenstockError(
            "SQL-1102", f"{name} takes no argument", span=span, hint=f"write {name}()", sqlstate="42883"
        )
    return Literal(STRING, False, value=fact(context), span=span)
