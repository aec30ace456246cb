"""The grammar of PIVOT, UNPIVOT and TABLESAMPLE behind a table of FROM."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.syntax_nodes import PivotedTable, SampledTable, UnpivotedTable

WORDS = ("PIVOT", "UNPIVOT", "TABLESAMPLE")


class PivotParser:
    """Parses PIVOT, UNPIVOT and TABLESAMPLE."""

    def __init__(self, context: ParserContext) -> None:
        self._context, self._tokens = context, context.tokens

    def table(self, begin: int, node: exp.Expr) -> exp.Expr:
        """Return the pivoted, unpivoted or sampled table at the current word, of the table before it."""
        word = self._tokens.word()
        self._tokens.advance()
        if word == "TABLESAMPLE":
            return self._sample(begin, node)
        return self._pivot(begin, node) if word == "PIVOT" else self._unpivot(begin, node)

    def _sample(self, begin: int, node: exp.Expr) -> exp.Expr:
        # TABLESAMPLE BERNOULLI (5), (5 PERCENT), (5 ROWS), (BUCKET 1 OUT OF 4 ON k), REPEATABLE (7)
        if not self._tokens.take_words("BERNOULLI"):
            self._tokens.take_words("SYSTEM")
        self._tokens.need(TokenType.L_PAREN, "(")
        sampled = SampledTable(this=node)
        if self._tokens.take_words("BUCKET"):
            bucket = self._number()
            self._tokens.need_word("OUT")
            self._tokens.need_word("OF")
            sampled.set("bucket", [bucket, self._number()])
            if self._tokens.take_words("ON"):
                sampled.set("by", self._tokens.separated(self._context.scalar))
        else:
            number = self._number()
            of_rows = self._tokens.take_words("ROWS")
            sampled.set("rows" if of_rows else "share", number)
            if not of_rows and not self._tokens.take_words("PERCENT"):
                self._tokens.take(TokenType.MOD)
        self._tokens.need(TokenType.R_PAREN, ")")
        if self._tokens.take_words("REPEATABLE"):
            self._tokens.need(TokenType.L_PAREN, "(")
            sampled.set("seed", self._number())
            self._tokens.need(TokenType.R_PAREN, ")")
        return self._tokens.spanned(begin, sampled)

    def _number(self) -> exp.Expr:
        begin = self._tokens.index
        if not self._tokens.at(TokenType.NUMBER):
            raise self._tokens.unexpected("a number")
        self._tokens.advance()
        return self._tokens.spanned(begin, exp.Literal.number(self._tokens.previous.text))

    def _pivot(self, begin: int, node: exp.Expr) -> exp.Expr:
        # PIVOT (SUM(a) AS s, COUNT(*) FOR b IN ('x' AS y, 'z'))
        self._tokens.need(TokenType.L_PAREN, "(")
        aggregates = self._tokens.separated(self._named)
        self._tokens.need_word("FOR")
        columns = self._listed(lambda: self._tokens.identifier("column"))
        self._tokens.need_word("IN")
        self._tokens.need(TokenType.L_PAREN, "(")
        values = self._tokens.separated(lambda: self._group(self._context.scalar))
        self._tokens.need(TokenType.R_PAREN, ")")
        self._tokens.need(TokenType.R_PAREN, ")")
        pivoted = PivotedTable(this=node, expressions=aggregates, columns=columns, values=values)
        return self._tokens.spanned(begin, pivoted)

    def _unpivot(self, begin: int, node: exp.Expr) -> exp.Expr:
        # UNPIVOT INCLUDE NULLS (v FOR n IN (a AS 'x', b)), ((v, w) FOR n IN ((a, b) AS 'x'))
        nulls = self._tokens.take_words("INCLUDE", "NULLS")
        if not nulls:
            self._tokens.take_words("EXCLUDE", "NULLS")
        self._tokens.need(TokenType.L_PAREN, "(")
        values = self._listed(lambda: self._tokens.identifier("column"))
        self._tokens.need_word("FOR")
        name = self._tokens.identifier("column")
        self._tokens.need_word("IN")
        self._tokens.need(TokenType.L_PAREN, "(")
        columns = self._tokens.separated(lambda: self._group(lambda: self._tokens.identifier("column")))
        self._tokens.need(TokenType.R_PAREN, ")")
        self._tokens.need(TokenType.R_PAREN, ")")
        unpivoted = UnpivotedTable(this=node, values=values, name=name, columns=columns, nulls=nulls)
        return self._tokens.spanned(begin, unpivoted)

    def _named(self) -> exp.Expr:
        begin = self._tokens.index
        return self._aliased(begin, self._context.scalar())

    def _aliased(self, begin: int, node: exp.Expr) -> exp.Expr:
        # x AS name, x name or x AS 'name'
        written = self._tokens.take_words("AS")
        if self._tokens.at(TokenType.STRING):
            here = self._tokens.index
            self._tokens.advance()
            text = exp.Identifier(this=self._tokens.previous.text, quoted=True)
            alias = self._tokens.spanned(here, text)
        elif written or (self._tokens.is_name() and not self._tokens.at_words("FOR")):
            alias = self._tokens.identifier("alias")
        else:
            return node
        return self._tokens.spanned(begin, exp.Alias(this=node, alias=alias))

    def _listed(self, item: Callable[[], exp.Expr]) -> list[exp.Expr]:
        """Return ``a`` or ``(a, b)`` as a list."""
        if not self._tokens.take(TokenType.L_PAREN):
            return [item()]
        items = self._tokens.separated(item)
        self._tokens.need(TokenType.R_PAREN, ")")
        return items

    def _group(self, item: Callable[[], exp.Expr]) -> exp.Expr:
        """Return ``a [AS x]`` or ``(a, b) [AS x]`` as a tuple, with its alias."""
        begin = self._tokens.index
        items = self._listed(item)
        return self._aliased(begin, self._tokens.spanned(begin, exp.Tuple(expressions=items)))
