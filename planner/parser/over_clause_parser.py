"""The grammar of OVER (partition, order, frame) and of named windows: WINDOW w AS (..)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.planner.parser.literal_parser import LiteralParser
from penstock.planner.parser.syntax_nodes import FrameBound, OverClause, set_span, span_of


class OverParser(LiteralParser):
    """Parses OVER clauses."""

    scalar: Callable[[], exp.Expr]
    """The grammar of whole expressions; ``ExpressionParser`` defines it."""

    sort_item: Callable[[], exp.Expr]
    """The grammar of one item of an ORDER BY; ``QueryParser`` defines it."""

    operand: Callable[[], exp.Expr]
    """The grammar of operators that bind tighter than a comparison."""

    def over(self) -> exp.Expr:
        """Return the OVER clause at the current token: a window's name or a window in parentheses."""
        begin = self._index
        self._advance()
        if not self.at(TokenType.L_PAREN):
            return self.spanned(begin, OverClause(name=self.identifier("window")))
        return self.window(begin)

    def window(self, begin: int) -> OverClause:
        """Return the window in parentheses: PARTITION BY, ORDER BY and the frame."""
        self.need(TokenType.L_PAREN, "(")
        node = OverClause(partition=[], order=[])
        if self.take_words("PARTITION"):
            self.need_word("BY")
            node.set("partition", self.separated(self.scalar))
        if self.take_words("ORDER"):
            self.need_word("BY")
            node.set("order", self.separated(self.sort_item))
        if self.at_words("GROUPS"):
            raise self.not_yet("a frame of GROUPS", "use ROWS or RANGE")
        if self.word() in ("ROWS", "RANGE"):
            self._frame(node)
        if not self.at(TokenType.R_PAREN):
            raise self.unexpected("PARTITION", "ORDER", "ROWS", "RANGE", ")")
        self._advance()
        self.spanned(begin, node)
        return node

    def _frame(self, node: OverClause) -> None:
        node.set("unit", self.word())
        self._advance()
        # without BETWEEN the frame ends at the current row: only the first bound is set
        between = self.take_words("BETWEEN")
        node.set("first", self._bound())
        if between:
            self.need_word("AND")
            node.set("last", self._bound())
        if self.at_words("EXCLUDE"):
            raise self.not_yet("EXCLUDE in a frame", "leave it out")

    def _bound(self) -> exp.Expr:
        begin = self._index
        # CURRENT ROW, UNBOUNDED PRECEDING, n FOLLOWING
        if self.take_words("CURRENT"):
            self.need_word("ROW")
            return self.spanned(begin, FrameBound(current=True))
        distance = None if self.take_words("UNBOUNDED") else self.operand()
        if self.word() not in ("PRECEDING", "FOLLOWING"):
            raise self.unexpected("PRECEDING", "FOLLOWING")
        following = self.word() == "FOLLOWING"
        self._advance()
        return self.spanned(begin, FrameBound(this=distance, following=following))


def with_windows(node: exp.Select, windows: Mapping[str, OverClause]) -> None:
    """Replace every ``OVER w`` of a SELECT by a copy of the window it names. Raise SQL-1067 for a name
    without a window.
    """
    for clause in list(node.find_all(OverClause)):
        name = clause.args.get("name")
        if name is None:
            continue
        known = windows.get(name.name.lower())
        if known is None:
            hint = (
                did_you_mean(name.name, windows, others=True)
                or "write WINDOW w AS (PARTITION BY .. ORDER BY ..) behind the query, or OVER (..)"
            )
            raise PenstockError(
                "SQL-1067",
                f'there is no window "{name.name}"',
                span=span_of(name),
                hint=hint,
                sqlstate="42P20",
            )
        # errors in the window point to the OVER clause that names it
        meant, span = known.copy(), span_of(clause)
        clause.replace(meant if span is None else set_span(meant, span.start, span.end))
