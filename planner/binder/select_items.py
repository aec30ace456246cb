"""The items of a select list: an item may read those before it by their aliases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.select_list import item_name, star_columns
from penstock.planner.expressions.nodes import Expression
from penstock.planner.parser.syntax_nodes import AllColumns, consume


@dataclass(frozen=True)
class Item:
    """One column of the select list: its tree (None for a column of ``*``), its bound expression and its
    name.
    """

    tree: exp.Expr | None
    expression: Expression
    name: str
    aliased: bool = False


def list_items(nodes: Sequence[exp.Expr], binder: ExpressionBinder) -> list[Item]:
    """Return the items of a select list. Each may read those before it by their aliases; a name that is given
    twice is no such alias.
    """
    items: list[Item] = []
    aliases: dict[str, Expression] = {}
    repeated: set[str] = set()
    binder.aliases = aliases
    for node in nodes:
        for item in _items(node, binder):
            items.append(item)
            name = item.name.lower()
            if item.aliased and (name in aliases or name in repeated):
                aliases.pop(name, None)
                repeated.add(name)
            elif item.aliased:
                aliases[name] = item.expression
    return items


def without_results(aliases: Mapping[str, Expression], *kinds: type[Expression]) -> dict[str, Expression]:
    """Return the aliases whose expressions hold no placeholder of these kinds."""
    return {
        name: expression
        for name, expression in aliases.items()
        if not any(isinstance(node, kinds) for node in expression.walk())
    }


def _items(node: exp.Expr, binder: ExpressionBinder) -> list[Item]:
    # * or t.*
    if isinstance(node, AllColumns):
        return [Item(None, value, name) for name, value in star_columns(node, binder)]
    # expression AS name
    if isinstance(node, exp.Alias):
        consume(node, "this", "alias")
        # aliased: GROUP BY, HAVING and QUALIFY may use this name; ORDER BY may use any name of the list
        return [Item(node.this, binder.bind(node.this), node.args["alias"].name, True)]
    expression = binder.bind(node)
    return [Item(node, expression, item_name(node, binder.context))]
