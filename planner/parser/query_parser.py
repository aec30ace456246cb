"""The grammar of queries: WITH, SELECT, VALUES, set operations, GROUP BY, EMIT and ORDER BY. The functions at
the end parse a query, an expression or a select item of a text.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.functions.table import is_table_function
from penstock.planner.parser.clause_parser import EmitParser, GroupingParser
from penstock.planner.parser.dialect import tokenize
from penstock.planner.parser.distinct_on import with_first_rows
from penstock.planner.parser.expression_parser import ExpressionParser
from penstock.planner.parser.from_parser import TableParser
from penstock.planner.parser.hints import select_hints
from penstock.planner.parser.keywords import CLAUSES
from penstock.planner.parser.literal_parser import LiteralParser
from penstock.planner.parser.over_clause_parser import OverParser, refined, with_windows
from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.pipe_parser import PipeParser
from penstock.planner.parser.pivot_parser import PivotParser
from penstock.planner.parser.scanner import MAX_DEPTH, allow_depth, check_text
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    FunctionCall,
    OverClause,
    SummarizedTable,
    span_of,
)
from penstock.planner.parser.token_stream import QUERY_WORDS, RESHAPING_WORDS, TokenStream

# MINUS is Oracle's and Spark's word for EXCEPT
_SET_NODES = {"UNION": exp.Union, "EXCEPT": exp.Except, "MINUS": exp.Except, "INTERSECT": exp.Intersect}
_SET_WORDS = tuple(_SET_NODES)
_AFTER_SELECT = ("CLUSTER", "DISTRIBUTE", "SORT")
"""Words that begin Spark's clauses of where rows are computed, with BY behind them."""
_UNSORTED = "{word} BY has no effect: rows of one key meet by themselves; ORDER BY sorts a result"


class QueryParser:
    """Parses queries."""

    def __init__(self, tokens: TokenStream) -> None:
        self._tokens = tokens
        self._literals = LiteralParser(tokens)
        context = ParserContext(tokens)
        self._over = OverParser(context)
        self._expressions = ExpressionParser(context, self._literals, self._over)
        self._tables = TableParser(context, self._over)
        self._groupings = GroupingParser(context)
        self._pivots = PivotParser(context)
        self._emits = EmitParser(tokens, self._literals)
        self._pipes = PipeParser(
            context, self._tables, self._over, self._groupings, self._item, self._row_count
        )
        # subqueries: the levels below call it
        context.query = self.query

    def whole_query(self) -> exp.Expr:
        """Return the query that is the whole text; raise SQL-1001 for tokens behind it."""
        node = self.query()
        if self._tokens.current:
            raise self._tokens.unexpected(*CLAUSES)
        return node

    def whole_expression(self) -> exp.Expr:
        """Return the scalar expression that is the whole text; raise SQL-1001 for tokens behind it."""
        node = self._expressions.scalar()
        if self._tokens.current:
            raise self._tokens.unexpected("the end of the expression")
        return node

    def whole_item(self) -> exp.Expr:
        """Return the select item that is the whole text; raise SQL-1001 for tokens behind it."""
        node = self._item()
        if self._tokens.current:
            raise self._tokens.unexpected("the end of the expression")
        return node

    def whole_sort_item(self) -> exp.Expr:
        """Return the ORDER BY item that is the whole text; raise SQL-1001 for tokens behind it."""
        node = self._over.sort_item()
        if self._tokens.current:
            raise self._tokens.unexpected("ASC", "DESC", "NULLS")
        return node

    def query(self) -> exp.Expr:
        """Return a query: WITH, set operations, ORDER BY, LIMIT, OFFSET and EMIT."""
        self._tokens.enter()
        begin = self._tokens.index
        # WITH a AS (..), then the query, then ORDER BY, LIMIT and EMIT of the whole
        tables = self._with() if self._tokens.at_words("WITH") else None
        node = self._set_operations(begin)
        if tables is not None:
            node.set("with_", tables)
        self._modifiers(node)
        if "first_of" in node.meta:
            with_first_rows(node)
        # FROM t |> WHERE .. |> SELECT ..
        node = self._pipes.operators(node)
        self._tokens.leave()
        return node

    def _with(self) -> exp.Expr:
        begin = self._tokens.index
        self._tokens.advance()
        # a name, not the word, in WITH recursive AS (..)
        recursive = self._tokens.at_words("RECURSIVE") and self._tokens.word(1) != "AS"
        if recursive:
            self._tokens.advance()
        tables = self._tokens.separated(self._common_table)
        return self._tokens.spanned(begin, exp.With(expressions=tables, recursive=recursive))

    def _common_table(self) -> exp.Expr:
        begin = self._tokens.index
        name = self._tokens.identifier("name for a WITH table")
        columns = (
            self._tables.column_names()
            if self._tokens.at(TokenType.L_PAREN) and self._tokens.word(1) not in QUERY_WORDS
            else []
        )
        # name [(columns)] AS (query)
        self._tokens.need_word("AS")
        # PostgreSQL's words of how it is computed: a WITH table that is read twice is computed once anyway
        if not self._tokens.take_words("NOT", "MATERIALIZED"):
            self._tokens.take_words("MATERIALIZED")
        self._tokens.need(TokenType.L_PAREN, "(")
        body = self.query()
        self._tokens.need(TokenType.R_PAREN, ")")
        return self._tokens.spanned(
            begin, exp.CTE(this=body, alias=exp.TableAlias(this=name, columns=columns))
        )

    def _set_operations(self, begin: int) -> exp.Expr:
        # INTERSECT binds tighter than UNION and EXCEPT
        return self._chained(begin, ("UNION", "EXCEPT", "MINUS"), self._intersections)

    def _intersections(self) -> exp.Expr:
        return self._chained(self._tokens.index, ("INTERSECT",), self._term)

    def _chained(self, begin: int, words: tuple[str, ...], operand: Callable[[], exp.Expr]) -> exp.Expr:
        node = operand()
        steps = 0
        while (word := self._tokens.word()) in words:
            steps += 1
            # a chain of set operations is a tree as deep as it is long
            if steps > 1000:
                raise PenstockError(
                    "SQL-1007",
                    f"more than 1,000 {word} branches are over the limit",
                    span=self._tokens.current_span(),
                    sqlstate="54001",
                )
            self._tokens.advance()
            # UNION is UNION DISTINCT
            distinct = not self._tokens.take_words("ALL")
            if distinct:
                self._tokens.take_words("DISTINCT")
            node = self._tokens.spanned(
                begin, _SET_NODES[word](this=node, expression=operand(), distinct=distinct)
            )
        return node

    def _term(self) -> exp.Expr:
        begin = self._tokens.index
        if self._tokens.at_words("SELECT"):
            return self._select(begin)
        if self._tokens.at_words("VALUES"):
            return self._tables.values()
        # (SELECT ..) UNION ..: a branch in parentheses, which may have an ORDER BY of its own
        if self._tokens.take(TokenType.L_PAREN):
            inner = self.query()
            self._tokens.need(TokenType.R_PAREN, ")")
            return self._tokens.spanned(begin, exp.Subquery(this=inner))
        if self._tokens.at_words("TABLE") and self._tokens.is_name(1):
            return self._whole_table(begin)
        if self._tokens.at_words("FROM"):
            return self._from_first(begin)
        if self._tokens.word() in RESHAPING_WORDS:
            return self._reshaped(begin)
        if self._tokens.at_words("SUMMARIZE"):
            return self._summarized(begin)
        raise self._tokens.unexpected("SELECT", "VALUES", "WITH")

    def _whole_table(self, begin: int) -> exp.Expr:
        """Expand ``TABLE t`` to SELECT * FROM t."""
        self._tokens.advance()
        table = self._tables.named_table(self._tokens.index)
        every = self._tokens.spanned(begin, AllColumns(this=None, except_=[]))
        return self._tokens.spanned(
            begin, exp.Select(expressions=[every], from_=exp.From(this=table), joins=[])
        )

    def _reshaped(self, begin: int) -> exp.Expr:
        """Expand ``PIVOT t ON ..`` to SELECT * FROM t PIVOT (..), and UNPIVOT alike."""
        word = self._tokens.word()
        self._tokens.advance()
        tables, first = exp.Select(), self._tokens.index
        self._from(tables)
        table = tables.args["from_"].this
        # PIVOT a JOIN b USING (k) ON ..
        if tables.args["joins"]:
            joined = self._pipes.every_row(first, table)
            joined.set("joins", tables.args["joins"])
            table = self._tokens.spanned(first, exp.Subquery(this=joined))
        return self._pipes.every_row(begin, self._pivots.statement(begin, word, table))

    def _summarized(self, begin: int) -> exp.Expr:
        """Expand ``SUMMARIZE t`` and ``SUMMARIZE SELECT ..`` to SELECT * FROM its rows."""
        self._tokens.advance()
        first = self._tokens.index
        table = exp.Subquery(this=self.query()) if self._tokens.begins_query() else self._tables.table()
        summarized = SummarizedTable(this=self._tokens.spanned(first, table))
        return self._pipes.every_row(begin, self._tokens.spanned(begin, summarized))

    # select

    def _from_first(self, begin: int) -> exp.Expr:
        """Parse ``FROM t [SELECT ..] [WHERE ..]``; without a list it is all columns."""
        self._tokens.advance()
        tables = exp.Select()
        self._from(tables)
        if self._tokens.at_words("SELECT"):
            node = self._select_list()
        else:
            node = self._pipes.every_row(begin, tables.args["from_"].this)
        node.set("from_", tables.args["from_"])
        node.set("joins", tables.args["joins"])
        return self._clauses(begin, node)

    def _select(self, begin: int) -> exp.Expr:
        node = self._select_list()
        # SELECT without FROM is one row of constants
        if self._tokens.take_words("FROM"):
            self._from(node)
        return self._clauses(begin, node)

    def _select_list(self) -> exp.Select:
        """Parse SELECT with its hints, DISTINCT and its items."""
        self._tokens.advance()
        # hints are comments between SELECT and the next token; none at the end, where an item is missing
        hints = select_hints(self._tokens.text, self._tokens.previous.end + 1, self._tokens.current.start)
        # SELECT [DISTINCT | ALL] items, then the clauses in their order
        distinct = self._tokens.take_words("DISTINCT")
        # DISTINCT ON (a, b): the first row of each (a, b)
        first_of = self._first_of() if distinct and self._tokens.at_words("ON") else None
        if not distinct:
            self._tokens.take_words("ALL")
        node = exp.Select(
            expressions=self._tokens.separated(self._item),
            distinct=exp.Distinct() if distinct and first_of is None else None,
        )
        if first_of is not None:
            node.meta["first_of"] = first_of
        if hints:
            node.meta["hints"] = hints
        return node

    def _clauses(self, begin: int, node: exp.Select) -> exp.Expr:
        """Parse the clauses behind FROM, in their order."""
        if self._tokens.take_words("WHERE"):
            node.set("where", self._expressions.scalar())
        if self._tokens.at_words("GROUP"):
            node.meta.pop("open", None)
            node.set("group", self._group())
        if self._tokens.take_words("HAVING"):
            node.set("having", self._expressions.scalar())
        # WINDOW may precede QUALIFY or follow it
        windows = self._windows()
        if self._tokens.take_words("QUALIFY"):
            node.set("qualify", self._expressions.scalar())
        windows |= self._windows()
        with_windows(node, windows)
        # DISTRIBUTE BY a SORT BY b: they change no row, so the binder notes them
        while self._tokens.word() in _AFTER_SELECT and self._tokens.word(1) == "BY":
            word = self._tokens.word()
            node.meta.setdefault("notes", []).append(_UNSORTED.format(word=word))
            self._tokens.advance(2)
            self._tokens.separated(self._over.sort_item)
        return self._tokens.spanned(begin, node)

    def _first_of(self) -> list[exp.Expr]:
        """Return the keys of ``ON (a, b)`` behind DISTINCT."""
        self._tokens.advance()
        self._tokens.need(TokenType.L_PAREN, "(")
        keys = self._tokens.separated(self._expressions.scalar)
        self._tokens.need(TokenType.R_PAREN, ")")
        return keys

    def _windows(self) -> dict[str, OverClause]:
        """Return the windows of a WINDOW clause by name in lower case; none without the clause."""
        windows: dict[str, OverClause] = {}
        if not self._tokens.take_words("WINDOW"):
            return windows
        for name, window in self._tokens.separated(self._named_window):
            # window names are case-insensitive
            if name.name.lower() in windows:
                raise PenstockError(
                    "SQL-1045",
                    f'the window "{name.name}" is given twice',
                    span=span_of(name),
                    sqlstate="42712",
                )
            # WINDOW v AS (PARTITION BY a), w AS (v ORDER BY b)
            base = window.args.get("name")
            windows[name.name.lower()] = window if base is None else refined(window, windows)
        return windows

    def _named_window(self) -> tuple[exp.Identifier, OverClause]:
        name = self._tokens.identifier("window")
        self._tokens.need_word("AS")
        return name, self._over.window(self._tokens.index)

    def _item(self) -> exp.Expr:
        star = self._expressions.star()
        if star is not None:
            return star
        if self._tokens.at_words("FROM"):
            hint = "leave out the comma before it; a column of that name is quoted: `from`"
            if self._tokens.previous.token_type is not TokenType.COMMA:
                hint = "write SELECT *; a column of that name is quoted: `from`"
            raise PenstockError(
                "SQL-1001",
                "an expression is missing before FROM",
                span=self._tokens.current_span(),
                hint=hint,
                sqlstate="42601",
            )
        begin = self._tokens.index
        node = self._expressions.scalar()
        # posexplode(a) AS (pos, x)
        many = isinstance(node, FunctionCall) and is_table_function(str(node.this))
        if many and self._tokens.at_words("AS") and self._tokens.at(TokenType.L_PAREN, 1):
            self._tokens.advance()
            names = self._tables.column_names()
            return self._tokens.spanned(begin, exp.Aliases(this=node, expressions=names))
        alias = self._tables.alias("column alias")
        return node if alias is None else self._tokens.spanned(begin, exp.Alias(this=node, alias=alias))

    def _from(self, node: exp.Select) -> None:
        node.set("from_", exp.From(this=self._tables.table()))
        joins = []
        begin = self._tokens.index
        # joins are left-associative: each one joins the tables before it
        while (join := self._tables.join() or self._tables.lateral_view()) is not None:
            joins.append(join)
            if len(joins) > MAX_DEPTH:
                message = f"FROM with more than {MAX_DEPTH} joins is over the limit"
                hint = "join some of them in a WITH clause or a view"
                raise PenstockError(
                    "SQL-1007", message, span=self._tokens.span_from(begin), hint=hint, sqlstate="54001"
                )
            begin = self._tokens.index
        node.set("joins", joins)

    def _group(self) -> exp.Expr:
        begin = self._tokens.index
        self._tokens.advance()
        self._tokens.need_word("BY")
        # GROUP BY ALL: the binder, which knows the columns of *, finds the keys
        if self._tokens.take_words("ALL"):
            return self._tokens.spanned(begin, exp.Group(all=True))
        return self._tokens.spanned(begin, self._groupings.groups())

    # after the query

    def _modifiers(self, node: exp.Expr) -> None:
        if self._tokens.at_words("ORDER"):
            node.set("order", self._order())
        # LIMIT, OFFSET and FETCH in any order, each once; FETCH FIRST n ROWS ONLY is a LIMIT
        while self._tokens.word() in ("LIMIT", "OFFSET", "FETCH"):
            word = self._tokens.word()
            key = "offset" if word == "OFFSET" else "limit"
            if node.args.get(key) is not None:
                raise PenstockError(
                    "SQL-1001",
                    f"{key.upper()} is given twice",
                    span=self._tokens.current_span(),
                    sqlstate="42601",
                )
            # LIMIT ALL is no limit
            if not self._tokens.take_words("LIMIT", "ALL"):
                node.set(key, self._count_of_rows(word))
        if self._tokens.at_words("EMIT"):
            node.set("emit", self._emits.emit())
        if self._tokens.at_words("LATE", "ROWS"):
            node.set("late_rows", self._emits.late_rows())
        if self._tokens.at_words("WITH", "HISTORY"):
            node.set("history", self._emits.history())
        # .. ORDER BY a UNION ..: the clause would belong to one branch only
        if self._tokens.word() in _SET_WORDS:
            raise self._tokens.not_yet(
                f"ORDER BY or LIMIT before {self._tokens.word()}", "put the branch in parentheses"
            )

    def _order(self) -> exp.Expr:
        begin = self._tokens.index
        self._tokens.advance()
        self._tokens.need_word("BY")
        # ORDER BY ALL [DESC]: the binder, which knows the columns of *, finds the keys
        if self._tokens.at_words("ALL"):
            every = self._over.direction(exp.Ordered(this=self._every_column(), desc=False))
            return self._tokens.spanned(begin, exp.Order(expressions=[every]))
        return self._tokens.spanned(
            begin, exp.Order(expressions=self._tokens.separated(self._over.sort_item))
        )

    def _every_column(self) -> exp.Expr:
        begin = self._tokens.index
        self._tokens.advance()
        return self._tokens.spanned(begin, AllColumns(this=None, except_=[]))

    def _count_of_rows(self, word: str) -> exp.Expr:
        self._tokens.advance()
        if word == "FETCH":
            if not (self._tokens.take_words("FIRST") or self._tokens.take_words("NEXT")):
                raise self._tokens.unexpected("FIRST", "NEXT")
            # FETCH FIRST ROW ONLY is one row
            count: exp.Expr = (
                exp.Literal.number("1") if self._tokens.word() in ("ROW", "ROWS") else self._row_count()
            )
            if not (self._tokens.take_words("ROWS") or self._tokens.take_words("ROW")):
                raise self._tokens.unexpected("ROWS")
            self._tokens.need_word("ONLY")
            return count
        count = self._row_count()
        if word == "LIMIT" and self._tokens.at(TokenType.COMMA):
            raise self._tokens.not_yet("LIMIT offset, count", "write LIMIT count OFFSET offset")
        # OFFSET 10 ROWS is the standard's spelling
        if word == "OFFSET":
            self._tokens.take_words("ROWS") or self._tokens.take_words("ROW")
        return count

    def _row_count(self) -> exp.Expr:
        span = self._tokens.current_span()
        node = self._literals.literal()
        if (
            node is None
            or not isinstance(node, exp.Literal | exp.Placeholder)
            or (isinstance(node, exp.Literal) and not node.name.isdigit())
        ):
            raise PenstockError(
                "SQL-1012",
                "a number of rows is a whole number such as 10",
                span=span,
                hint="write the number itself, or ? and pass it: LIMIT 10",
                sqlstate="2201W",
            )
        return node


def token_stream(text: str, start: int) -> TokenStream:
    """Return the tokens of a text from ``start`` on, with the offsets of the whole text."""
    check_text(text)
    allow_depth()
    # blanks in place of the text before keep all offsets those of the whole text
    return TokenStream(tokenize(" " * start + text[start:]), text)


def parse_query(text: str, start: int = 0) -> exp.Expr:
    """Return the syntax tree of the query from ``start`` to the end of ``text``. Raise SQL-10xx with a span
    into ``text``.
    """
    tokens = token_stream(text, start)
    if not tokens.current:
        raise PenstockError(
            "SQL-1004",
            "a query is missing",
            span=Span(start, start + 1),
            hint="write SELECT .. FROM ..",
            sqlstate="42601",
        )
    return QueryParser(tokens).whole_query()


def parse_expression(text: str, start: int = 0, end: int | None = None) -> exp.Expr:
    """Return the syntax tree of the scalar expression between ``start`` and ``end``. Raise SQL-10xx with a
    span into ``text``.
    """
    tokens = token_stream(text[:end], start)
    if not tokens.current:
        raise PenstockError(
            "SQL-1004", "an expression is missing", span=Span(start, start + 1), sqlstate="42601"
        )
    return QueryParser(tokens).whole_expression()


def parse_item(text: str, start: int = 0, end: int | None = None) -> exp.Expr:
    """Return the syntax tree of one select item between ``start`` and ``end``: a star, or an expression with
    an optional alias.
    """
    tokens = token_stream(text[:end], start)
    if not tokens.current:
        raise PenstockError(
            "SQL-1004", "an expression is missing", span=Span(start, start + 1), sqlstate="42601"
        )
    return QueryParser(tokens).whole_item()


def parse_sort_item(text: str, start: int = 0, end: int | None = None) -> exp.Expr:
    """Return the syntax tree of one ORDER BY item between ``start`` and ``end``."""
    return QueryParser(token_stream(text[:end], start)).whole_sort_item()
