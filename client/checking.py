"""Checking a script without running it: parse and bind every statement, and gather the errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.errors import PenstockError
from client.catalog_statements import declare_filled
from client.materialized_views import declare_view
from client.scripts import PlacedStatement, placed_statements
from client.statements_run import run_statement
from planner import statement_nodes as nodes
from planner.alteration_nodes import AlterTable

if TYPE_CHECKING:
    from client.session import Session

MAX_ERRORS = 20
_HARMLESS = (
    nodes.CreateTable,
    nodes.CreateView,
    nodes.DropTable,
    nodes.CreateTableLike,
    nodes.DropView,
    AlterTable,
    nodes.Set,
    nodes.Reset,
    nodes.ShowCreate,
    nodes.Describe,
)


def check_script(session: Session, text: str, file: str | None = None) -> list[PenstockError]:
    """Return the errors of a script (up to 20), in the order they stand. DDL and SET take effect in the session: later statements need them."""
    errors: list[PenstockError] = []
    for statement in placed_statements(text, file, errors=errors):
        try:
            _check(session, statement)
        except PenstockError as error:
            errors.append(statement.place(error))
    errors.sort(key=lambda error: (error.line or 0, error.column or 0))
    return errors[:MAX_ERRORS]


def _check(session: Session, statement: PlacedStatement) -> None:
    match statement.node:
        case nodes.Subscribe() as subscribed:
            session.plan(session.bind(subscribed), mode="streaming")
        case nodes.Verify(query):
            session.plan(session.bind(query), mode="streaming")
        case nodes.Query() | nodes.Insert() | nodes.StatementSet() as query:
            session.plan(session.bind(query))
        case nodes.CreateMaterializedView() as view:
            declare_view(session, view)
        case nodes.DropMaterializedView(name):
            session.catalog.drop_materialized_view(name.text, name.span)
        case nodes.CreateTableAs() as filled:
            declare_filled(session, filled)
        case nodes.Explain(_, query):
            session.plan(session.bind(query))
        case node if isinstance(node, _HARMLESS):
            run_statement(session, node)
