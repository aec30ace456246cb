"""What the frontend's golden scripts run: a catalog of sample tables, statements as nodes, plans as text."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

from penstock.catalog.catalog import Catalog
from penstock.catalog.errors import PenstockError, SourceText
from penstock.catalog.persistence.show_create import create_statement
from penstock.catalog.settings import Settings
from penstock.planner.binder.binder import Binder
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.sink import RowChanges
from penstock.planner.logical.windows import ON_CLOSE, AttachedWindow, Emission, Windowing
from penstock.planner.statements import nodes
from penstock.planner.statements.nodes import AlterTable, RenameTable
from penstock.planner.statements.script import ParsedStatement, parse_script

HERE = Path(__file__).parent


def run_statements(text: str, catalog: Catalog, settings: Settings | None = None) -> list[str]:
    """Bind every statement of a text in order, declarations into the catalog; return what each became, or
    raise with its place.
    """
    return [
        _placed(statement, text, Binder(catalog, settings or Settings())) for statement in parse_script(text)
    ]


def _placed(statement: ParsedStatement, text: str, binder: Binder) -> str:
    try:
        return _run(statement.node, binder)
    except PenstockError as error:
        raise error.with_source(SourceText(text, None, statement.ordinal), statement.offset) from None


def _run(node: nodes.Statement, binder: Binder) -> str:
    match node:
        case nodes.CreateTable():
            table = binder.bind_create_table(node)
            binder.catalog.create_table(table, node.if_not_exists, node.name.span)
            return f"table {table.name}"
        case nodes.CreateTableLike():
            table = binder.bind_create_table_like(node)
            binder.catalog.create_table(table, node.table.if_not_exists, node.table.name.span)
            return create_statement(table)
        case nodes.CreateTableAs():
            sink = binder.bind_create_table_as(node)
            return f"{create_statement(sink.table)}\n{plan_text(sink)}"
        case nodes.CreateView():
            view = binder.bind_create_view(node)
            binder.catalog.create_view(
                view, or_replace=node.or_replace, if_not_exists=node.if_not_exists, span=node.name.span
            )
            return f"view {view.name}"
        case nodes.DropTable():
            return f"dropped {binder.catalog.drop_table(node.name.text, node.if_exists, node.name.span)}"
        case nodes.DropView():
            return f"dropped {binder.catalog.drop_view(node.name.text, node.if_exists, node.name.span)}"
        case AlterTable():
            place = node.change.new.span if isinstance(node.change, RenameTable) else None
            binder.catalog.replace_table(binder.bind_alter_table(node), node.name.text, place)
            return "altered"
        case nodes.Set():
            binder.settings.set(node.key or "", node.value or "", node.value_span, key_span=node.key_span)
            return f"set {node.key}"
        case nodes.Reset():
            binder.settings.reset(node.key, node.key_span)
            return "reset"
        case nodes.Insert():
            return plan_text(binder.bind_insert(node))
        case nodes.ExecuteStatementSet():
            return plan_text(binder.bind_statement_set(node))
        case nodes.Query():
            return plan_text(binder.bind_query(node))
    return str(node)


@cache
def _sample_tables() -> tuple[Catalog, None]:
    catalog = Catalog()
    run_statements((HERE / "tables.sql").read_text(encoding="utf-8"), catalog)
    return catalog, None


def sample_catalog() -> Catalog:
    """A fresh catalog with the tables and views of tables.sql."""
    catalog = Catalog()
    for relation in _sample_tables()[0].permanent():
        if hasattr(relation, "query"):
            catalog.create_view(relation)
        else:
            catalog.create_table(relation)
    return catalog


def plan_text(plan: LogicalPlan, depth: int = 0) -> str:
    """A plan as an indented tree: each node's own facts, and the columns it gives where it makes new ones."""
    pad = "  " * depth
    lines = [f"{pad}{type(plan).__name__}{_facts(plan)}"]
    if depth == 0 or isinstance(plan, Aggregate | WindowAggregate | Scan | Values):
        lines.append(f"{pad}  : {', '.join(_column(field) for field in plan.schema)}")
    return "\n".join(lines + [plan_text(node, depth + 1) for node in plan.inputs])


def _column(field: object) -> str:
    role = f" [{field.role}]" if field.role else ""
    return f"{field.name} {field.type}{'' if field.nullable else ' NOT NULL'}{role}"


def _facts(plan: LogicalPlan) -> str:
    facts = []
    for field in dataclasses.fields(plan):
        value = getattr(plan, field.name)
        if (
            # what the optimizer alone sets is no part of a bound plan
            field.name in ("row_schema", "schema", "span", "upserts", "order_columns")
            or value in (None, (), ON_CLOSE)
            # windows close, except those that say so
            or (field.name == "closes" and value is True)
            or isinstance(value, LogicalPlan)
        ):
            continue
        if isinstance(value, tuple) and any(isinstance(item, LogicalPlan) for item in value):
            continue
        facts.append(value.name if field.name == "table" else f"{field.name}={_fact(value)}")
    return " " + " ".join(facts) if facts else ""


def _fact(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(_fact(item) for item in value) + ")"
    if isinstance(value, RowChanges):
        return value.kind
    if isinstance(value, Windowing | AttachedWindow | Emission):
        shown = {"kind": value.name} if isinstance(value, Windowing) else {}
        shown |= {
            f.name: getattr(value, f.name)
            for f in dataclasses.fields(value)
            if getattr(value, f.name) not in (0, (), False)
        }
        return "{" + ", ".join(f"{name}: {item}" for name, item in shown.items()) + "}"
    return str(value)
