"""The arguments of a Table API method: SQL texts and column expressions, as trees and as SQL text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from penstock.catalog.errors import PenstockError, SourceText
from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.select_list import item_name
from penstock.planner.parser.query_parser import parse_expression, parse_item, parse_sort_item
from penstock.planner.parser.syntax_nodes import AllColumns, HostValue, Reference, span_of
from penstock.planner.table_api.expressions import ColumnExpression
from penstock.planner.table_api.sql_text import expression_text, name_text, outer_text

Item = str | ColumnExpression
# maps a reference that knows its table to the name of that table in FROM
Qualify = Callable[[exp.Expr], exp.Expr]


@dataclass(frozen=True)
class SqlPiece:
    """One argument: its syntax tree, and the text that parses to it: an expression with an optional name."""

    tree: exp.Expr
    expression: str
    name: str | None = None

    @property
    def sql(self) -> str:
        """The text as a select item."""
        return self.expression if self.name is None else f"{self.expression} AS {name_text(self.name)}"

    def without_alias(self) -> SqlPiece:
        """Return the expression of a select item, as GROUP BY takes it."""
        return SqlPiece(self.tree.this if isinstance(self.tree, exp.Alias) else self.tree, self.expression)


class Pieces:
    """The arguments of one call. As a context manager it adds their text to errors, so that the caret is
    below the one at fault.
    """

    def __init__(self, items: Sequence[Item], named: Mapping[str, Any] | None = None) -> None:
        self._items: list[tuple[str | None, Any]] = [(None, item) for item in items]
        # agg(n=count()): the name is the column's
        self._items += list((named or {}).items())
        texts = [item if isinstance(item, str) else "<expression>" for _, item in self._items]
        self.text = ", ".join(texts)
        # The arguments are joined by ", ", so spans in each refer to one common text.
        self._starts = [sum(len(text) + 2 for text in texts[:at]) for at in range(len(texts))]

    def __enter__(self) -> Pieces:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, PenstockError) and self.text:
            # the error quotes the arguments, with its caret below the one at fault
            error.with_source(SourceText(self.text))

    def items(self, qualify: Qualify) -> list[SqlPiece]:
        """Return select items."""
        return self._parsed(parse_item, qualify)

    def expressions(self, qualify: Qualify) -> list[SqlPiece]:
        """Return plain expressions."""
        return self._parsed(parse_expression, qualify)

    def sort_items(self, qualify: Qualify) -> list[SqlPiece]:
        """Return ORDER BY items; a bare column is ascending, NULLs first, as in SQL."""
        return [
            piece
            if isinstance(piece.tree, exp.Ordered)
            else SqlPiece(exp.Ordered(this=piece.tree, desc=False, nulls_first=True), piece.sql)
            for piece in self._parsed(parse_sort_item, qualify)
        ]

    def _parsed(self, parse: Callable[[str, int, int | None], exp.Expr], qualify: Qualify) -> list[SqlPiece]:
        return [
            self._piece(name, item, start, parse, qualify)
            for (name, item), start in zip(self._items, self._starts, strict=True)
        ]

    def _piece(
        self,
        name: str | None,
        item: Any,
        start: int,
        parse: Callable[[str, int, int | None], exp.Expr],
        qualify: Qualify,
    ) -> SqlPiece:
        # A copy, because one expression may be used in several trees.
        if isinstance(item, ColumnExpression):
            tree = qualify(item.tree.copy())
            # agg(n=col("a").alias("b")): the keyword is the name
            tree = _renamed(tree, name) if name is not None else tree
            if isinstance(tree, exp.Alias):
                return SqlPiece(tree, outer_text(tree.this), tree.args["alias"].name)
            return SqlPiece(tree, outer_text(tree))
        if isinstance(item, str):
            # a keyword's text is an expression: "a AS b" would have two names
            tree = (parse if name is None else parse_expression)(self.text, start, start + len(item))
            if name is None:
                return self._text_piece(tree, item)
            return SqlPiece(_renamed(tree, name), _closed(item), name)
        raise _no_item(item)

    def _text_piece(self, tree: exp.Expr, item: str) -> SqlPiece:
        inner = span_of(tree.this) if isinstance(tree, exp.Alias) else None
        # a text keeps its spelling; only its alias is apart, as GROUP BY takes none
        if inner is None:
            return SqlPiece(tree, _closed(item))
        return SqlPiece(tree, _closed(self.text[inner.start : inner.end]), tree.args["alias"].name)


def column_name(item: Item) -> str | None:
    """Return the column that an argument names, or ``None`` where it computes something."""
    tree = item.tree if isinstance(item, ColumnExpression) else parse_item(item)
    return tree.expressions[-1].name if isinstance(tree, Reference) else None


def listed(items: Item | Sequence[Item] | None) -> tuple[Item, ...]:
    """Return one argument, a sequence of them or none as a tuple."""
    if items is None:
        return ()
    # a string is a sequence too: "ab" is one column, not two
    return (items,) if isinstance(items, str | ColumnExpression) else tuple(items)


def _renamed(tree: exp.Expr, name: str) -> exp.Expr:
    inner = tree.this if isinstance(tree, exp.Alias) else tree
    return exp.Alias(this=inner, alias=exp.Identifier(this=name, quoted=True))


def _closed(text: str) -> str:
    # a comment to the end of the line must not hide what follows the text
    return text.strip() + ("\n" if "--" in text else "")


def _no_item(item: object) -> PenstockError:
    message = f"a column is a name, SQL text or a column expression, not {type(item).__name__}"
    hint = "call it: col('n').sum(), col('n').desc()" if callable(item) else "wrap a constant in lit(..)"
    return PenstockError("SQL-1014", message, hint=hint)


def all_but(names: Sequence[str]) -> ColumnExpression:
    """Return all columns except some."""
    return ColumnExpression(AllColumns(except_=[exp.Identifier(this=name, quoted=True) for name in names]))


def free_name(name: str, columns: Sequence[str]) -> str:
    """Return a column name that is not among others."""
    taken = {column.lower() for column in columns}
    return next(
        tried
        for tried in itertools.chain([name], (f"{name}_{n}" for n in itertools.count(2)))
        if tried not in taken
    )


def item_text(piece: SqlPiece, context: BindContext) -> str:
    """Return a select item as text, under the name that the binder chooses for it."""
    # an expression of Python operators has no text to be named by: SQL would choose another name
    if (
        piece.name is None
        and not isinstance(piece.tree, AllColumns)
        and item_name(piece.tree, context) == "expression"
    ):
        return f"{piece.sql} AS expression"
    return piece.sql


@dataclass(frozen=True)
class Tail:
    """ORDER BY, LIMIT and OFFSET of a SELECT."""

    order: tuple[Item, ...] = ()
    limit: int | None = None
    offset: int = 0

    def fill(self, tree: exp.Select, keys: Sequence[SqlPiece]) -> list[str]:
        """Set the clauses of a SELECT, ``keys`` being those of the order; return their lines of text."""
        lines = []
        if keys:
            tree.set("order", exp.Order(expressions=[key.tree for key in keys]))
            lines.append(f"ORDER BY {', '.join(key.sql for key in keys)}")
        # OFFSET 0 is no clause
        for key, value in (("limit", self.limit), ("offset", self.offset or None)):
            if value is not None:
                # A HostValue is a Python value in a tree, checked by the binder as a literal is.
                node = HostValue()
                node.meta["value"] = value
                tree.set(key, node)
                lines.append(f"{key.upper()} {expression_text(node)}")
        return lines


NO_TAIL = Tail()


def conjunction(pieces: Sequence[SqlPiece]) -> SqlPiece | None:
    """Return the AND of conditions, or ``None`` where there is none."""
    if len(pieces) < 2:
        return pieces[0] if pieces else None
    tree = pieces[0].tree
    for piece in pieces[1:]:
        tree = exp.And(this=tree, expression=piece.tree)
    return SqlPiece(tree, " AND ".join(f"({piece.sql})" for piece in pieces))
