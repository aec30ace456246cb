"""The grammar of two clauses: the grouping elements of GROUP BY, and EMIT with what follows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.planner.parser.literal_parser import LiteralParser
from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.syntax_nodes import EmitClause, GroupingSets, HistoryClause
from penstock.planner.parser.token_stream import TokenStream

Keys = list[exp.Expr]
T = TypeVar("T")

# the sets of a CUBE of eight columns
MAX_GROUPING_SETS = 256


class GroupingParser:
    """Parses the grouping elements of GROUP BY."""

    def __init__(self, context: ParserContext) -> None:
        self._context, self._tokens = context, context.tokens

    def groups(self) -> exp.Expr:
        """Return the keys of GROUP BY, or its grouping sets when there are several. Raise SQL-1007 above
        ``MAX_GROUPING_SETS`` sets.
        """
        begin = self._tokens.index
        # GROUP BY DISTINCT: each of the grouping sets once; the binder knows which are equal
        distinct = self._tokens.take_words("DISTINCT")
        elements = self._tokens.separated(self._element)
        # Spark's GROUP BY a, b WITH ROLLUP | WITH CUBE | GROUPING SETS (..) behind the keys
        behind = self._behind(elements)
        # GROUP BY a, ROLLUP (b, c) is the product of the sets of its elements
        sets: list[Keys] = [[]]
        plain = True
        for more in elements if behind is None else [behind]:
            plain &= len(more) == 1
            if len(sets) * len(more) > MAX_GROUPING_SETS:
                message = f"more than {MAX_GROUPING_SETS} grouping sets are over the limit"
                raise PenstockError("SQL-1007", message, span=self._tokens.span_from(begin), sqlstate="54001")
            sets = [keys + others for keys in sets for others in more]
        # one set: an ordinary GROUP BY
        if plain and sets[0]:
            return exp.Group(expressions=sets[0])
        rows = [
            self._tokens.spanned(begin, exp.Tuple(expressions=[key.copy() for key in keys])) for keys in sets
        ]
        return exp.Group(
            expressions=[self._tokens.spanned(begin, GroupingSets(expressions=rows, distinct=distinct))]
        )

    def _behind(self, elements: list[list[Keys]]) -> list[Keys] | None:
        """Return the grouping sets of WITH ROLLUP, WITH CUBE or GROUPING SETS behind plain keys, or ``None``
        without such words. The keys before GROUPING SETS only list what the sets may name.
        """
        keys = [key for element in elements for key in element[0]]
        for word in ("ROLLUP", "CUBE"):
            if self._tokens.take_words("WITH", word):
                parts = [[key] for key in keys]
                return self._rolled(parts) if word == "ROLLUP" else self._cubed(parts)
        if self._tokens.at_words("GROUPING", "SETS") and self._tokens.at(TokenType.L_PAREN, 2):
            return self._element()
        return None

    def _element(self) -> list[Keys]:
        """Return one element of GROUP BY as its grouping sets."""
        if self._tokens.at_words("GROUPING", "SETS") and self._tokens.at(TokenType.L_PAREN, 2):
            self._tokens.advance(2)
            return [keys for element in self._listed(self._set) for keys in element]
        for word in ("ROLLUP", "CUBE"):
            if self._tokens.at_words(word) and self._tokens.at(TokenType.L_PAREN, 1):
                self._tokens.advance()
                parts = self._listed(self._part)
                return self._rolled(parts) if word == "ROLLUP" else self._cubed(parts)
        # GROUP BY (): one group of all rows
        if self._tokens.at(TokenType.L_PAREN) and self._tokens.at(TokenType.R_PAREN, 1):
            self._tokens.advance(2)
            return [[]]
        node = self._context.scalar()
        # GROUP BY (a, b) is GROUP BY a, b
        return [list(node.expressions) if isinstance(node, exp.Tuple) else [node]]

    def _listed(self, item: Callable[[], T]) -> list[T]:
        self._tokens.need(TokenType.L_PAREN, "(")
        items = self._tokens.separated(item)
        self._tokens.need(TokenType.R_PAREN, ")")
        return items

    def _set(self) -> list[Keys]:
        # GROUPING SETS (ROLLUP (a, b), c)
        nested = self._tokens.at_words("GROUPING", "SETS") or (
            self._tokens.word() in ("ROLLUP", "CUBE") and self._tokens.at(TokenType.L_PAREN, 1)
        )
        return self._element() if nested else [self._part()]

    def _part(self) -> Keys:
        """Return one key, a group of keys in parentheses, or no key for ``()``. ROLLUP and CUBE treat a group
        of keys as one.
        """
        if self._tokens.at(TokenType.L_PAREN) and self._tokens.at(TokenType.R_PAREN, 1):
            self._tokens.advance(2)
            return []
        node = self._context.scalar()
        # ROLLUP ((a, b), c)
        if isinstance(node, exp.Tuple):
            return list(node.expressions)
        # (a) is a
        return [node.this if isinstance(node, exp.Paren) else node]

    @staticmethod
    def _rolled(parts: list[Keys]) -> list[Keys]:
        # (a, b), (a), ()
        return [[key for part in parts[:count] for key in part] for count in range(len(parts), -1, -1)]

    def _cubed(self, parts: list[Keys]) -> list[Keys]:
        if 1 << len(parts) > MAX_GROUPING_SETS:
            message = f"a CUBE of {len(parts)} makes more than {MAX_GROUPING_SETS} grouping sets"
            raise PenstockError(
                "SQL-1007",
                message,
                span=self._tokens.current_span(),
                hint="name the sets you need: GROUPING SETS (..)",
                sqlstate="54001",
            )
        # each bit of the counter leaves one part out; the first part has the highest bit
        chosen = []
        for left_out in range(1 << len(parts)):
            chosen.append(
                [
                    key
                    for i, part in enumerate(parts)
                    if not left_out >> (len(parts) - 1 - i) & 1
                    for key in part
                ]
            )
        return chosen


class EmitParser:
    """Parses EMIT, LATE ROWS and WITH HISTORY."""

    def __init__(self, tokens: TokenStream, literals: LiteralParser) -> None:
        self._tokens, self._literals = tokens, literals

    def emit(self) -> exp.Expr:
        """Return the EMIT clause at the current token."""
        begin = self._tokens.index
        self._tokens.advance()
        # EMIT FINAL | ON WINDOW CLOSE | CHANGES [EVERY interval | n ROWS], then [WITH LATENESS interval]
        node = EmitClause(this="final")
        if self._tokens.take_words("ON"):
            self._tokens.need_word("WINDOW")
            self._tokens.need_word("CLOSE")
            node.set("this", "on window close")
        elif self._tokens.take_words("CHANGES"):
            node.set("this", "changes")
            self._trigger(node)
        elif not self._tokens.take_words("FINAL"):
            raise self._tokens.unexpected("ON WINDOW CLOSE", "CHANGES", "FINAL")
        # WITH LATENESS belongs to EMIT, WITH HISTORY to the query
        if not self._tokens.at_words("WITH", "HISTORY") and self._tokens.take_words("WITH"):
            self._tokens.need_word("LATENESS")
            node.set("lateness", self._length())
        return self._tokens.spanned(begin, node)

    def _trigger(self, node: EmitClause) -> None:
        """Parse ``EVERY interval | n ROWS``, or ``AFTER``, where both may be joined by OR, into a clause."""
        every = self._tokens.take_words("EVERY")
        if not every and not self._tokens.take_words("AFTER"):
            return
        self._trigger_part(node)
        # AFTER 100 ROWS OR INTERVAL '5' SECOND: whichever comes first
        if not every and self._tokens.take_words("OR"):
            self._trigger_part(node)

    def _trigger_part(self, node: EmitClause) -> None:
        name = "rows" if self._tokens.word(1) == "ROWS" else "every"
        if node.args.get(name) is not None:
            raise self._tokens.unexpected("INTERVAL" if name == "rows" else "a number of rows")
        node.set(name, self._row_count() if name == "rows" else self._length())

    def _row_count(self) -> exp.Expr:
        span, node = self._tokens.current_span(), self._literals.literal()
        if not isinstance(node, exp.Literal) or not node.name.isdigit() or int(node.name) < 1:
            message = "a number of rows is a whole number above 0, such as 100"
            raise PenstockError("SQL-1012", message, span=span, sqlstate="2201W")
        self._tokens.need_word("ROWS")
        return node

    def late_rows(self) -> exp.Expr:
        """Return the name of the table that receives late rows."""
        self._tokens.advance(2)
        self._tokens.need_word("INTO")
        return self._tokens.identifier("table for late rows")

    def history(self) -> exp.Expr:
        """Return the WITH HISTORY clause at the current token."""
        begin = self._tokens.index
        self._tokens.advance(2)
        return self._tokens.spanned(begin, HistoryClause())

    def _length(self) -> exp.Expr:
        node = self._literals.literal() if self._tokens.at_words("INTERVAL") else None
        if node is None:
            raise self._tokens.unexpected("INTERVAL")
        return node
