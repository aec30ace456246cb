"""FROM STATE OF ..: a state of a job or savepoint as a bounded table."""

from __future__ import annotations

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable
from penstock.planner.binder.context import BindContext
from penstock.planner.parser.syntax_nodes import StateTable, consume, span_of


def state_table(tree: StateTable, context: BindContext) -> CatalogTable:
    """Return the table of a state in FROM, of the newest completed checkpoint where none is named. Raises
    STA-3xxx with the span of the reference.
    """
    consume(tree, "this", "reference", "alias")
    try:
        found = context.catalog.states.state_columns(tree.args["reference"])
    except PenstockError as error:
        raise error.with_span(span_of(tree)) from None
    schema = Schema(found.fields)
    return CatalogTable(tree.this.name, schema, schema, found.reference.options(), temporary=True)
