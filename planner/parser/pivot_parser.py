"""The grammar of PIVOT, UNPIVOT and TABLESAMPLE behind a table of FROM, and of DuckDB's statements PIVOT and
UNPIVOT.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.syntax_nodes import (
    FunctionCall,
    PivotedTable,
    SampledTable,
    UnpivotedTable,
    span_of,
)

WORDS = ("PIVOT", "UNPIVOT", "TABLESAMPLE")
_MAX_VALUES = 1000
"""Each value is a column, and of two lists each pair is one."""


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
        keys = self._keys()
        self._tokens.need(TokenType.R_PAREN, ")")
        pivoted = PivotedTable(this=node, expressions=aggregates, columns=columns, values=values, keys=keys)
        return self._tokens.spanned(begin, pivoted)

    def _keys(self) -> list[exp.Expr]:
        """Return the columns of GROUP BY; none without the clause."""
        if not self._tokens.take_words("GROUP"):
            return []
        self._tokens.need_word("BY")
        return self._tokens.separated(lambda: self._tokens.identifier("column"))

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

    def statement(self, begin: int, word: str, table: exp.Expr) -> exp.Expr:
        """Return the pivoted or unpivoted table of a statement, from the word ON behind its table on."""
        self._tokens.need_word("ON")
        # PIVOT_LONGER is DuckDB's other word for UNPIVOT
        return (self._pivot_on if word in ("PIVOT", "PIVOT_WIDER") else self._unpivot_on)(begin, table)

    def _pivot_on(self, begin: int, table: exp.Expr) -> exp.Expr:
        # PIVOT t ON a IN (1, 2), upper(b) IN ('X' AS x) USING SUM(v) AS s, COUNT(*) GROUP BY k
        first = self._tokens.index
        listed = self._tokens.separated(lambda: self._pivot_column(table))
        columns = prod(len(values) for _, values in listed)
        if columns > _MAX_VALUES:
            message = f"PIVOT with {columns:,} columns is over the limit of {_MAX_VALUES:,}"
            raise PenstockError("SQL-1007", message, span=self._tokens.span_from(first), sqlstate="54001")
        count = FunctionCall(this="count", expressions=[], distinct=False, star=True, order=[])
        aggregates = (
            self._tokens.separated(self._named)
            if self._tokens.take_words("USING")
            else [self._tokens.spanned(begin, count)]
        )
        pivoted = PivotedTable(
            this=table,
            expressions=aggregates,
            columns=[column for column, _ in listed],
            # a column for each combination
            values=[
                self._tokens.spanned(begin, exp.Tuple(expressions=[value.copy() for value in values]))
                for values in product(*(values for _, values in listed))
            ],
            keys=self._keys(),
            titled=True,
        )
        return self._tokens.spanned(begin, pivoted)

    def _pivot_column(self, table: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
        """Return a column or expression of ON and its values in IN, each with its alias."""
        begin = self._tokens.index
        column = self._context.operand()
        # a query in IN, as no IN, names no columns
        if not (self._tokens.take_words("IN") and not self._tokens.begins_query(1)):
            raise self._no_values(column, table)
        # DuckDB compares b alone in ON a + b IN (1, 2)
        if isinstance(column, exp.Binary):
            hint = "put the expression in parentheses: ON (a + b) IN (1, 2)"
            raise self._tokens.not_yet("an operator before IN", hint, begin)
        self._tokens.need(TokenType.L_PAREN, "(")
        values = self._tokens.separated(self._named)
        self._tokens.need(TokenType.R_PAREN, ")")
        return column, values

    def _no_values(self, column: exp.Expr, table: exp.Expr) -> PenstockError:
        what, source = map(self._written, (column, table))
        return PenstockError(
            "SQL-1601",
            "PIVOT without a list of values is not supported: its columns must be known before its rows",
            span=span_of(column),
            hint=f"write ON {what} IN ('a', 'b'); SELECT DISTINCT {what} FROM {source} lists the values",
            sqlstate="0A000",
        )

    def _written(self, node: exp.Expr) -> str:
        return self._tokens.text[node.meta["start"] : node.meta["end"] + 1]

    def _unpivot_on(self, begin: int, table: exp.Expr) -> exp.Expr:
        # UNPIVOT t ON a, (b, c) AS x, COLUMNS('q.*') INTO NAME n VALUE v, w
        columns = self._tokens.separated(self._unpivot_column)
        name = self._tokens.spanned(begin, exp.Identifier(this="name", quoted=True))
        values = [self._tokens.spanned(begin, exp.Identifier(this="value", quoted=True))]
        if self._tokens.take_words("INTO"):
            self._tokens.need_word("NAME")
            name = self._tokens.identifier("column")
            if not self._tokens.take_words("VALUES"):
                self._tokens.need_word("VALUE")
            values = self._tokens.separated(lambda: self._tokens.identifier("column"))
        unpivoted = UnpivotedTable(this=table, values=values, name=name, columns=columns, complete=True)
        return self._tokens.spanned(begin, unpivoted)

    def _unpivot_column(self) -> exp.Expr:
        begin = self._tokens.index
        every = self._context.star()
        if every is not None:
            # * EXCLUDE (a) is COLUMNS(* EXCLUDE (a))
            every = self._tokens.spanned(begin, FunctionCall(this="columns", expressions=[every]))
        node = every or self._context.scalar()
        if not isinstance(node, exp.Tuple):
            node = self._tokens.spanned(begin, exp.Tuple(expressions=[node]))
        return self._aliased(begin, node)

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
