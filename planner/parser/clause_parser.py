"""The grammar of GROUP BY: plain keys, GROUPING SETS, ROLLUP and CUBE, multiplied out into one list of
grouping sets.

The grammar of the last clauses of a query: EMIT, LATE ROWS and WITH HISTORY.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.planner.parser.from_parser import TableParser
from penstock.planner.parser.syntax_nodes import EmitClause, GroupingSets, HistoryClause

Keys = list[exp.Expr]
T = TypeVar("T")

MAX_GROUPING_SETS = 256


class GroupingParser(TableParser):
    """What stands behind GROUP BY."""

    def groups(self) -> exp.Expr:
        """Return the keys of GROUP BY, or its grouping sets where it names several."""
        begin = self._index
        sets: list[Keys] = [[]]
        plain = True
        for more in self.separated(self._element):
            plain &= len(more) == 1
            if len(sets) * len(more) > MAX_GROUPING_SETS:
                message = f"more than {MAX_GROUPING_SETS} grouping sets are over the limit"
                raise PenstockError("SQL-1007", message, span=self.place_of(begin), sqlstate="54001")
            sets = [keys + others for keys in sets for others in more]
        if plain and sets[0]:
            return exp.Group(expressions=sets[0])
        rows = [self.placed(begin, exp.Tuple(expressions=[key.copy() for key in keys])) for keys in sets]
        return exp.Group(expressions=[self.placed(begin, GroupingSets(expressions=rows))])

    def _element(self) -> list[Keys]:
        """One element of GROUP BY as the sets it stands for."""
        if self.at_words("GROUPING", "SETS") and self.at(TokenType.L_PAREN, 2):
            self._advance(2)
            return [keys for element in self._listed(self._set) for keys in element]
        for word in ("ROLLUP", "CUBE"):
            if self.at_words(word) and self.at(TokenType.L_PAREN, 1):
                self._advance()
                parts = self._listed(self._part)
                return self._rolled(parts) if word == "ROLLUP" else self._cubed(parts)
        return [[self.scalar()]]

    def _listed(self, item: Callable[[], T]) -> list[T]:
        self.need(TokenType.L_PAREN, "(")
        items = self.separated(item)
        self.need(TokenType.R_PAREN, ")")
        return items

    def _set(self) -> list[Keys]:
        nested = self.at_words("GROUPING", "SETS") or (
            self.word() in ("ROLLUP", "CUBE") and self.at(TokenType.L_PAREN, 1)
        )
        return self._element() if nested else [self._part()]

    def _part(self) -> Keys:
        """One key, or several in parentheses that come and go together, or none: ``()``."""
        if self.at(TokenType.L_PAREN) and self.at(TokenType.R_PAREN, 1):
            self._advance(2)
            return []
        node = self.scalar()
        if isinstance(node, exp.Tuple):
            return list(node.expressions)
        return [node.this if isinstance(node, exp.Paren) else node]

    @staticmethod
    def _rolled(parts: list[Keys]) -> list[Keys]:
        return [[key for part in parts[:count] for key in part] for count in range(len(parts), -1, -1)]

    def _cubed(self, parts: list[Keys]) -> list[Keys]:
        if 1 << len(parts) > MAX_GROUPING_SETS:
            message = f"a CUBE of {len(parts)} makes more than {MAX_GROUPING_SETS} grouping sets"
            raise PenstockError(
                "SQL-1007",
                message,
                span=self.here(),
                hint="name the sets you need: GROUPING SETS (..)",
                sqlstate="54001",
            )
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


class EmitParser(GroupingParser):
    """EMIT, LATE ROWS and WITH HISTORY."""

    def emit(self) -> exp.Expr:
        """Return the EMIT clause that stands here."""
        begin = self._index
        self._advance()
        node = EmitClause(this="final")
        if self.take_words("ON"):
            self.need_word("WINDOW")
            self.need_word("CLOSE")
            node.set("this", "on window close")
        elif self.take_words("CHANGES"):
            node.set("this", "changes")
            if self.take_words("EVERY"):
                node.set("every", self._length())
        elif not self.take_words("FINAL"):
            raise self.unexpected("ON WINDOW CLOSE", "CHANGES", "FINAL")
        if not self.at_words("WITH", "HISTORY") and self.take_words("WITH"):
            self.need_word("LATENESS")
            node.set("lateness", self._length())
        return self.placed(begin, node)

    def late_rows(self) -> exp.Expr:
        """Return the name of the table that late rows go to."""
        self._advance(2)
        self.need_word("INTO")
        return self.identifier("table for late rows")

    def history(self) -> exp.Expr:
        """Return the clause WITH HISTORY that stands here."""
        begin = self._index
        self._advance(2)
        return self.placed(begin, HistoryClause())

    def _length(self) -> exp.Expr:
        node = self.literal() if self.at_words("INTERVAL") else None
        if node is None:
            raise self.unexpected("INTERVAL")
        return node
