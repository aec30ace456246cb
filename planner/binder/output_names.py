"""What a column of a select list is called that has no alias."""

from __future__ import annotations

from sqlglot import exp

from penstock.planner.binder.context import BindContext
from penstock.planner.parser.syntax_nodes import FunctionCall, Reference, span_of


def item_name(node: exp.Expr, context: BindContext) -> str:
    """Return the name of a select item without an alias: a column's own, else the expression as it is
    written.
    """
    if isinstance(node, Reference):
        return node.expressions[-1].name
    if isinstance(node, exp.Paren):
        return item_name(node.this, context)
    return call_text(node) or context.written(span_of(node)) or "expression"


def call_text(node: exp.Expr) -> str:
    """Return a call as a column name, ``count(*)`` or ``sum(x)``, or an empty string for what is no simple
    call.
    """
    if not isinstance(node, FunctionCall):
        return ""
    args = ["*"] if node.args.get("star") else [_argument_text(arg) for arg in node.expressions]
    if not all(args) or node.args.get("filter") is not None:
        return ""
    return f"{str(node.this).lower()}({'DISTINCT ' if node.args.get('distinct') else ''}{', '.join(args)})"


def _argument_text(node: exp.Expr) -> str:
    if isinstance(node, Reference):
        return node.expressions[-1].name
    if isinstance(node, exp.Literal):
        return f"'{node.name}'" if node.is_string else node.name
    return call_text(node)
