"""The grammar of ``|>``: each operator of a pipe is a clause over the rows of what is before it."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.planner.parser.clause_parser import GroupingParser
from penstock.planner.parser.from_parser import TableParser
from penstock.planner.parser.over_clause_parser import OverParser
from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.syntax_nodes import AllColumns

_OPEN = "open"
"""In the meta of a SELECT whose list is a bare star: further clauses may join it, so aliases stay known."""
_OPERATORS = (
    "WHERE", "SELECT", "EXTEND", "SET", "DROP", "AS", "AGGREGATE", "ORDER BY", "LIMIT", "JOIN", "UNION",
)  # fmt: skip
_CLOSING = ("group", "having", "qualify", "order", "limit", "offset", "with_", "emit")
_SETS = {"UNION": exp.Union, "EXCEPT": exp.Except, "INTERSECT": exp.Intersect}


class PipeParser:
    """Parses FROM-first queries and what follows ``|>``, into SELECTs over SELECTs."""

    def __init__(
        self,
        context: ParserContext,
        tables: TableParser,
        over: OverParser,
        groupings: GroupingParser,
        item: Callable[[], exp.Expr],
        row_count: Callable[[], exp.Expr],
    ) -> None:
        self._context = context
        self._tokens = context.tokens
        self._tables = tables
        self._over = over
        self._groupings = groupings
        self._item = item
        self._row_count = row_count

    def every_row(self, begin: int, source: exp.Expr) -> exp.Select:
        """Return ``SELECT * FROM source``, which further clauses may join."""
        node: exp.Select = self._tokens.spanned(
            begin, exp.Select(expressions=[self._star(begin)], from_=exp.From(this=source), joins=[])
        )
        node.meta[_OPEN] = True
        return node

    def operators(self, node: exp.Expr) -> exp.Expr:
        """Return a query with the operators of its pipe; the query itself when no ``|>`` follows."""
        begin = self._tokens.index
        while self._tokens.touching(TokenType.PIPE, TokenType.GT):
            self._tokens.advance(2)
            # clauses that stand behind a star close it
            if any(node.args.get(key) is not None for key in _CLOSING):
                node.meta.pop(_OPEN, None)
            node = self._operator(begin, node)
        return node

    def _operator(self, begin: int, node: exp.Expr) -> exp.Expr:
        word = self._tokens.word()
        if self._tokens.take_words("WHERE"):
            return self._where(begin, node)
        if self._tokens.take_words("SELECT"):
            return self._select(begin, node)
        if self._tokens.take_words("EXTEND"):
            return self._listed(begin, node, [self._star(begin), *self._tokens.separated(self._item)])
        if self._tokens.take_words("SET"):
            return self._listed(begin, node, [self._star(begin, replace=self._tokens.separated(self._set))])
        if self._tokens.take_words("DROP"):
            names = self._tokens.separated(lambda: self._tokens.identifier("column"))
            return self._listed(begin, node, [self._star(begin, except_=names)])
        if self._tokens.take_words("AS"):
            return self._over_rows(begin, node, self._tokens.identifier("table alias"))
        if self._tokens.take_words("AGGREGATE"):
            return self._aggregate(begin, node)
        if self._tokens.at_words("ORDER", "BY"):
            self._tokens.advance(2)
            node = self._ordered(begin, node, self._tokens.separated(self._over.sort_item))
            return self._limited(begin, node) if self._tokens.word() in ("LIMIT", "OFFSET") else node
        if word in ("LIMIT", "OFFSET"):
            return self._limited(begin, node)
        if word in _SETS:
            return self._set_operation(begin, node, word)
        open_ = self._open(begin, node)
        if open_.args.get("where") is not None:
            open_ = self._over_rows(begin, node)
        join = self._tables.join()
        if join is None:
            message = f"{word} is no operator of a pipe" if word else "an operator is missing behind |>"
            near = did_you_mean(word, _OPERATORS) or f"its operators are {', '.join(_OPERATORS)}"
            raise PenstockError(
                "SQL-1001", message, span=self._tokens.current_span(), hint=near, sqlstate="42601"
            )
        open_.append("joins", join)
        return open_

    # a SELECT that takes a clause

    def _open(self, begin: int, node: exp.Expr) -> exp.Select:
        """Return the query itself while its list is a star with no clause behind WHERE, else one over it."""
        if isinstance(node, exp.Select) and node.meta.get(_OPEN):
            return node
        return self._over_rows(begin, node)

    def _over_rows(self, begin: int, node: exp.Expr, alias: exp.Identifier | None = None) -> exp.Select:
        source = self._tokens.spanned(begin, exp.Subquery(this=node))
        if alias is not None:
            source.set("alias", exp.TableAlias(this=alias, columns=[]))
        return self.every_row(begin, source)

    def _star(
        self, begin: int, except_: list[exp.Identifier] | None = None, replace: list[exp.Expr] | None = None
    ) -> exp.Expr:
        star = AllColumns(this=None, except_=except_ or [], replace=replace or [])
        node: exp.Expr = self._tokens.spanned(begin, star)
        return node

    # operators

    def _where(self, begin: int, node: exp.Expr) -> exp.Expr:
        select = self._open(begin, node)
        condition, known = self._context.scalar(), select.args.get("where")
        if known is not None:
            condition = self._tokens.spanned(
                begin, exp.And(this=exp.Paren(this=known), expression=exp.Paren(this=condition))
            )
        select.set("where", condition)
        return select

    def _select(self, begin: int, node: exp.Expr) -> exp.Expr:
        distinct = self._tokens.take_words("DISTINCT")
        select = self._listed(begin, node, self._tokens.separated(self._item))
        if distinct:
            select.set("distinct", exp.Distinct())
        return select

    def _listed(self, begin: int, node: exp.Expr, items: list[exp.Expr]) -> exp.Select:
        select = self._open(begin, node)
        select.set("expressions", items)
        del select.meta[_OPEN]
        return select

    def _set(self) -> exp.Expr:
        """Return one ``column = value`` as an item of ``* REPLACE (..)``."""
        begin = self._tokens.index
        name = self._tokens.identifier("column")
        self._tokens.need(TokenType.EQ, "=")
        node: exp.Expr = self._tokens.spanned(begin, exp.Alias(this=self._context.scalar(), alias=name))
        return node

    def _aggregate(self, begin: int, node: exp.Expr) -> exp.Expr:
        """Keys come first, then the aggregates; a key may have an alias."""
        select = self._open(begin, node)
        calls = [] if self._tokens.at_words("GROUP") else self._tokens.separated(self._item)
        keys: list[exp.Expr] = []
        if self._tokens.take_words("GROUP"):
            self._tokens.need_word("BY")
            keys = self._tokens.separated(self._item)
            groups = [(key.this if isinstance(key, exp.Alias) else key).copy() for key in keys]
            select.set("group", self._tokens.spanned(begin, exp.Group(expressions=groups)))
        return self._listed(begin, select, [*keys, *calls])

    def _ordered(self, begin: int, node: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
        # the order of rows that are cut or ordered already is an order of their result
        if any(node.args.get(key) is not None for key in ("order", "limit", "offset", "with_")):
            node = self._over_rows(begin, node)
        node.set("order", self._tokens.spanned(begin, exp.Order(expressions=items)))
        node.meta.pop(_OPEN, None)
        return node

    def _limited(self, begin: int, node: exp.Expr) -> exp.Expr:
        if any(node.args.get(key) is not None for key in ("limit", "offset")):
            node = self._over_rows(begin, node)
        if self._tokens.take_words("LIMIT"):
            node.set("limit", self._row_count())
        if self._tokens.take_words("OFFSET"):
            node.set("offset", self._row_count())
        node.meta.pop(_OPEN, None)
        return node

    def _set_operation(self, begin: int, node: exp.Expr, word: str) -> exp.Expr:
        self._tokens.advance()
        distinct = not self._tokens.take_words("ALL")
        if distinct:
            self._tokens.take_words("DISTINCT")
        branches: list[exp.Expr] = []
        while True:
            first = self._tokens.index
            self._tokens.need(TokenType.L_PAREN, "(")
            inner = self._context.query()
            self._tokens.need(TokenType.R_PAREN, ")")
            branches.append(self._tokens.spanned(first, exp.Subquery(this=inner)))
            if not self._tokens.take(TokenType.COMMA):
                break
        result: exp.Expr = self._tokens.spanned(begin, exp.Subquery(this=node))
        for branch in branches:
            result = self._tokens.spanned(
                begin, _SETS[word](this=result, expression=branch, distinct=distinct)
            )
        return result
