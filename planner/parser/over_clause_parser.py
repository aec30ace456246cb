"""The grammar of OVER: partition, order, frame."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.planner.parser.literal_parser import LiteralParser
from penstock.planner.parser.syntax_nodes import FrameBound, OverClause


class OverParser(LiteralParser):
    """OVER clauses."""

    scalar: Callable[[], exp.Expr]
    """The grammar of whole expressions, which stands above this one."""

    sort_item: Callable[[], exp.Expr]
    """The grammar of one item of an ORDER BY."""

    operand: Callable[[], exp.Expr]
    """The grammar of what binds tighter than a comparison."""

    def over(self) -> exp.Expr:
        """Return the OVER clause that stands here."""
        begin = self._index
        self._advance()
        if not self.at(TokenType.L_PAREN):
            return self.placed(begin, OverClause(name=self.identifier("window")))
        return self.window(begin)

    def window(self, begin: int) -> OverClause:
        """Return what stands in the parentheses of a window."""
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
        self.placed(begin, node)
        return node

    def _frame(self, node: OverClause) -> None:
        node.set("unit", self.word())
        self._advance()
        between = self.take_words("BETWEEN")
        node.set("first", self._bound())
        if between:
            self.need_word("AND")
            node.set("last", self._bound())
        if self.at_words("EXCLUDE"):
            raise self.not_yet("EXCLUDE in a frame", "leave it out")

    def _bound(self) -> exp.Expr:
        begin = self._index
        if self.take_words("CURRENT"):
            self.need_word("ROW")
            return self.placed(begin, FrameBound(current=True))
        distance = None if self.take_words("UNBOUNDED") else self.operand()
        if self.word() not in ("PRECEDING", "FOLLOWING"):
            raise self.unexpected("PRECEDING", "FOLLOWING")
        following = self.word() == "FOLLOWING"
        self._advance()
        return self.placed(begin, FrameBound(this=distance, following=following))
