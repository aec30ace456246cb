"""``SELECT DISTINCT ON (a) .. ORDER BY b`` as QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1."""

from __future__ import annotations

from itertools import takewhile

from sqlglot import exp

from penstock.planner.parser.syntax_nodes import AllColumns, FunctionCall, OverClause, set_span, span_of


def with_first_rows(node: exp.Expr) -> None:
    """Rewrite a SELECT whose meta ``first_of`` are the keys of DISTINCT ON. Its ORDER BY chooses the row of
    each key and orders the result, as in PostgreSQL; without one any row of a key may be chosen.
    """
    keys = node.meta.pop("first_of")
    order = node.args.get("order")
    chosen = [] if order is None else [_own_tree(item, node) for item in order.expressions]
    partition = [_listed(key, node) for key in keys]
    # a key has one row, so what follows the keys in ORDER BY chooses that row and orders nothing
    leading = len(list(takewhile(lambda item: item.this in partition, chosen)))
    if order is not None and {item.this for item in chosen[:leading]} == set(partition):
        order.set("expressions", order.expressions[:leading])
    window = OverClause(partition=partition, order=chosen)
    number = FunctionCall(this="row_number", expressions=[], over=_at(window, keys[0]))
    first: exp.Expr = exp.EQ(this=_at(number, keys[0]), expression=_at(exp.Literal.number(1), keys[0]))
    first = _at(first, keys[0])
    known = node.args.get("qualify")
    node.set("qualify", first if known is None else _at(exp.And(this=known, expression=first), keys[0]))


def _own_tree(item: exp.Expr, select: exp.Expr) -> exp.Expr:
    copied = item.copy()
    copied.set("this", _listed(item.this, select))
    return copied


def _listed(tree: exp.Expr, select: exp.Expr) -> exp.Expr:
    """Return a key of ON or ORDER BY; a position is the item of the list that it names."""
    if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdigit():
        index = int(tree.name) - 1
        items = select.expressions
        # the positions behind a star depend on its columns, and a wrong one is an error of ORDER BY
        if 0 <= index < len(items) and not any(isinstance(i, AllColumns) for i in items[: index + 1]):
            item = items[index]
            return (item.this if isinstance(item, exp.Alias) else item).copy()
    return tree.copy()


def _at(node: exp.Expr, place: exp.Expr) -> exp.Expr:
    span = span_of(place)
    return node if span is None else set_span(node, span.start, span.end)
