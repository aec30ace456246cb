"""CREATE, DROP and ALTER: statements that change the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.results import Result, note_result
from planner import statement_nodes as nodes
from planner.alteration_nodes import AlterTable, RenameTable
from planner.binder import Binder

if TYPE_CHECKING:
    from client.running import Road
    from client.session import Session

CatalogChange = nodes.CreateTable | nodes.CreateTableLike | nodes.CreateView | nodes.DropTable | nodes.DropView | AlterTable


def change_catalog(session: Session, node: CatalogChange) -> Result:
    """Apply a change to the catalog, keep it where the session keeps its catalog, and say what was done."""
    result = _changed(session, node)
    session.keep_catalogs()
    return result


def create_filled(session: Session, node: nodes.CreateTableAs) -> Result:
    """Create the table of a query and start the job that fills it; a query that cannot be planned creates nothing."""
    name = node.table.name
    if node.table.if_not_exists and session.catalog.find(name.text) is not None:
        return note_result(f"table {name} exists already")
    road = declare_filled(session, node)
    session.keep_catalogs()
    return session.start(road)


def declare_filled(session: Session, node: nodes.CreateTableAs) -> Road:
    """Create the table of a query and return the road of the job that fills it."""
    sink = Binder(session.catalog, session.settings).bind_create_table_as(node)
    road = session.plan(sink)
    assert sink.table is not None
    session.catalog.create_table(sink.table, False, node.table.name.span)
    session.declared(sink.table)
    return road


def _changed(session: Session, node: CatalogChange) -> Result:
    catalog, binder = session.catalog, Binder(session.catalog, session.settings)
    match node:
        case nodes.CreateTable():
            if node.if_not_exists and catalog.find(node.name.text) is not None:
                return note_result(f"table {node.name} exists already")
            table = binder.bind_create_table(node)
            catalog.create_table(table, node.if_not_exists, node.name.span)
            session.declared(table)
            return note_result(f"table {node.name} created")
        case nodes.CreateTableLike(table=declared):
            if declared.if_not_exists and catalog.find(declared.name.text) is not None:
                return note_result(f"table {declared.name} exists already")
            table = binder.bind_create_table_like(node)
            catalog.create_table(table, declared.if_not_exists, declared.name.span)
            session.declared(table)
            return note_result(f"table {table.name} created")
        case nodes.CreateView():
            if node.if_not_exists and catalog.find(node.name.text) is not None:
                return note_result(f"view {node.name} exists already")
            view = binder.bind_create_view(node)
            catalog.create_view(view, or_replace=node.or_replace, if_not_exists=node.if_not_exists, span=node.name.span)
            return note_result(f"view {node.name} created")
        case nodes.DropTable():
            dropped = catalog.drop_table(node.name.text, node.if_exists, node.name.span)
            if dropped:
                session.bad_records.forget(catalog.qualified(node.name.text))
            return note_result(f"table {node.name} dropped" if dropped else f"there is no table {node.name}")
        case nodes.DropView():
            dropped = catalog.drop_view(node.name.text, node.if_exists, node.name.span)
            return note_result(f"view {node.name} dropped" if dropped else f"there is no view {node.name}")
        case AlterTable():
            table = binder.bind_alter_table(node)
            catalog.replace_table(table, node.name.text, node.change.new.span if isinstance(node.change, RenameTable) else None)
            session.bad_records.forget(catalog.qualified(node.name.text))
            return note_result(f"table {node.name} altered")
