"""The grammar of OVER (partition, order, frame) and of named windows: WINDOW w AS (..)."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.syntax_nodes import FrameBound, OverClause, set_span, span_of

_PARTS = ("PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS")


class OverParser:
    """Parses OVER clauses."""

    def __init__(self, context: ParserContext) -> None:
        self._context, self._tokens = context, context.tokens

    def over(self) -> exp.Expr:
        """Return the OVER clause at the current token: a window's name or a window in parentheses."""
        begin = self._tokens.index
        self._tokens.advance()
        # OVER w names a window of the WINDOW clause
        if not self._tokens.at(TokenType.L_PAREN):
            return self._tokens.spanned(begin, OverClause(name=self._tokens.identifier("window")))
        return self.window(begin)

    def window(self, begin: int) -> OverClause:
        """Return the window in parentheses: the name of another one, PARTITION BY, ORDER BY and the frame."""
        self._tokens.need(TokenType.L_PAREN, "(")
        node = OverClause(partition=[], order=[])
        # (w ORDER BY b): what is written is added to the window w
        named = self._tokens.word() not in _PARTS and self._tokens.is_name()
        if named and (self._tokens.word(1) in _PARTS or self._tokens.at(TokenType.R_PAREN, 1)):
            node.set("name", self._tokens.identifier("window"))
        # (PARTITION BY a ORDER BY b ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), each part optional
        if self._tokens.take_words("PARTITION"):
            self._tokens.need_word("BY")
            node.set("partition", self._tokens.separated(self._context.scalar))
        if self._tokens.take_words("ORDER"):
            self._tokens.need_word("BY")
            node.set("order", self._tokens.separated(self.sort_item))
        if self._tokens.word() in ("ROWS", "RANGE", "GROUPS"):
            self._frame(node)
        if not self._tokens.at(TokenType.R_PAREN):
            raise self._tokens.unexpected("PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS", ")")
        self._tokens.advance()
        self._tokens.spanned(begin, node)
        return node

    def sort_item(self) -> exp.Expr:
        """Return one item of an ORDER BY. NULLS come first when ascending and last when descending, unless
        written otherwise.
        """
        begin = self._tokens.index
        return self._tokens.spanned(
            begin, self.direction(exp.Ordered(this=self._context.scalar(), desc=False))
        )

    def direction(self, node: exp.Ordered) -> exp.Ordered:
        """Read ``[ASC | DESC] [NULLS FIRST | NULLS LAST]`` into a sort item, and return it."""
        if self._tokens.take_words("DESC"):
            node.set("desc", True)
        else:
            self._tokens.take_words("ASC")
        if self._tokens.take_words("NULLS"):
            if self._tokens.word() not in ("FIRST", "LAST"):
                raise self._tokens.unexpected("FIRST", "LAST")
            node.set("nulls_first", self._tokens.word() == "FIRST")
            self._tokens.advance()
        else:
            node.set("nulls_first", not node.args["desc"])
        return node

    def _frame(self, node: OverClause) -> None:
        node.set("unit", self._tokens.word())
        self._tokens.advance()
        # without BETWEEN the frame ends at the current row: only the first bound is set
        between = self._tokens.take_words("BETWEEN")
        node.set("first", self._bound())
        if between:
            self._tokens.need_word("AND")
            node.set("last", self._bound())
        if self._tokens.take_words("EXCLUDE"):
            node.set("exclude", self._exclusion())

    def _exclusion(self) -> str:
        # EXCLUDE CURRENT ROW, GROUP, TIES or NO OTHERS
        for words in (("CURRENT", "ROW"), ("GROUP",), ("TIES",), ("NO", "OTHERS")):
            if self._tokens.take_words(*words):
                return " ".join(words)
        raise self._tokens.unexpected("CURRENT ROW", "GROUP", "TIES", "NO OTHERS")

    def _bound(self) -> exp.Expr:
        begin = self._tokens.index
        # CURRENT ROW, UNBOUNDED PRECEDING, n FOLLOWING
        if self._tokens.take_words("CURRENT"):
            self._tokens.need_word("ROW")
            return self._tokens.spanned(begin, FrameBound(current=True))
        # an operand: a whole expression would read the AND of BETWEEN .. AND
        distance = None if self._tokens.take_words("UNBOUNDED") else self._context.operand()
        if self._tokens.word() not in ("PRECEDING", "FOLLOWING"):
            raise self._tokens.unexpected("PRECEDING", "FOLLOWING")
        following = self._tokens.word() == "FOLLOWING"
        self._tokens.advance()
        return self._tokens.spanned(begin, FrameBound(this=distance, following=following))


def with_windows(node: exp.Select, windows: Mapping[str, OverClause]) -> None:
    """Replace every ``OVER w`` and ``OVER (w ..)`` of a SELECT by a copy of the window it names. Raise
    SQL-1067 for a name without a window.
    """
    for clause in list(node.find_all(OverClause)):
        # OVER (..) has its window already
        if clause.args.get("name") is None:
            continue
        # errors in the window point to the OVER clause that names it
        meant, span = refined(clause, windows), span_of(clause)
        clause.replace(meant if span is None else set_span(meant, span.start, span.end))


def refined(clause: OverClause, windows: Mapping[str, OverClause]) -> OverClause:
    """Return a copy of the window that a clause names, with the parts that the clause adds. Raise SQL-1067
    for a name without a window, and for a part that the window has already.
    """
    name = clause.args["name"]
    known = windows.get(name.name.lower())
    if known is None:
        raise _wrong_window(
            name,
            f'there is no window "{name.name}"',
            did_you_mean(name.name, windows, others=True)
            or "write WINDOW w AS (PARTITION BY .. ORDER BY ..) behind the query, or OVER (..)",
        )
    meant = known.copy()
    for part, words in (("partition", "PARTITION BY"), ("order", "ORDER BY"), ("unit", "a frame")):
        added = clause.args.get(part)
        if not added:
            continue
        # an order or a partition would mean another frame; a frame is never taken over
        if part == "partition" or known.args.get(part) or known.args.get("unit"):
            raise _wrong_window(
                name,
                f'{words} cannot be added to the window "{name.name}"',
                "an ORDER BY and a frame are added where the window has none; write the whole window",
            )
        for key in (part, "first", "last", "exclude") if part == "unit" else (part,):
            meant.set(key, clause.args.get(key))
    return meant


def _wrong_window(name: exp.Identifier, message: str, hint: str) -> PenstockError:
    return PenstockError("SQL-1067", message, span=span_of(name), hint=hint, sqlstate="42P20")
