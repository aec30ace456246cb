"""The grammar of the last clauses of a query: EMIT, LATE ROWS and WITH HISTORY."""

from __future__ import annotations

from sqlglot import exp

from penstock.planner.grouping_parser import GroupingParser
from penstock.planner.syntax import EmitClause, HistoryClause


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
