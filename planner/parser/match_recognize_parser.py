"""The grammar of MATCH_RECOGNIZE, except for the pattern itself."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.planner.parser.expression_parser import ExpressionParser
from penstock.planner.parser.syntax_nodes import (
    AfterMatch,
    RowDefinition,
    RowMatches,
    RowPattern,
    RowSubset,
    set_span,
)


class MatchParser(ExpressionParser):
    """Parses MATCH_RECOGNIZE clauses."""

    sort_item: Callable[[], exp.Expr]
    """The grammar of one item of an ORDER BY; ``QueryParser`` defines it."""

    def match_recognize(self, table: exp.Expr) -> exp.Expr:
        """Return the MATCH_RECOGNIZE clause at the current token, applied to a table."""
        begin = self._index
        self._advance()
        self.need(TokenType.L_PAREN, "(")
        node = RowMatches(this=table)
        if self.take_words("PARTITION"):
            self.need_word("BY")
            node.set("partition", self.separated(self.scalar))
        if self.take_words("ORDER"):
            self.need_word("BY")
            node.set("order", self.separated(self.sort_item))
        if self.take_words("MEASURES"):
            node.set("measures", self.separated(self._measure))
        # ONE ROW PER MATCH is the default
        node.set("all_rows", self._rows_per_match())
        if self.at_words("AFTER", "MATCH"):
            node.set("skip", self._skip())
        if self.word() in ("INITIAL", "SEEK"):
            raise self.not_yet(self.word(), "leave it out: matches are looked for everywhere")
        if not self.at_words("PATTERN"):
            raise self.unexpected("PATTERN")
        node.set("pattern", self._pattern())
        if self.take_words("WITHIN"):
            node.set("within", self.operand())
        if self.take_words("SUBSET"):
            node.set("subsets", self.separated(self._subset))
        self.need_word("DEFINE")
        node.set("defines", self.separated(self._definition))
        self.need(TokenType.R_PAREN, ")")
        return self.spanned(begin, node)

    def _measure(self) -> exp.Expr:
        begin = self._index
        value = self.scalar()
        self.need_word("AS")
        return self.spanned(begin, exp.Alias(this=value, alias=self.identifier("column name")))

    def _rows_per_match(self) -> bool:
        if self.take_words("ONE"):
            self.need_word("ROW")
        elif self.take_words("ALL"):
            self.need_word("ROWS")
        else:
            return False
        every = self._prev.text.upper() == "ROWS"
        self.need_word("PER")
        self.need_word("MATCH")
        if self.at_words("WITH", "UNMATCHED") or self.at_words("SHOW") or self.at_words("OMIT"):
            instead = "leave it out: rows of no match are not shown, and no match is empty"
            raise self.not_yet(f"{self.word()} {self.word(1)}".strip(), instead)
        return every

    def _skip(self) -> exp.Expr:
        begin = self._index
        self._advance(2)
        self.need_word("SKIP")
        if self.take_words("PAST"):
            self.need_word("LAST")
            self.need_word("ROW")
            return self.spanned(begin, AfterMatch(kind="past"))
        self.need_word("TO")
        if self.take_words("NEXT", "ROW"):
            return self.spanned(begin, AfterMatch(kind="next"))
        kind = "last"
        # SKIP TO A is SKIP TO LAST A; a variable may be called first
        if self.word() in ("FIRST", "LAST") and self.is_name(1):
            kind = self.word().lower()
            self._advance()
        return self.spanned(begin, AfterMatch(this=self.identifier("row variable"), kind=kind))

    def _pattern(self) -> exp.Expr:
        """Cut out the text of PATTERN; ``row_pattern_parser`` has the grammar of it."""
        self._advance()
        opening = self._curr
        self.need(TokenType.L_PAREN, "(")
        # up to the parenthesis that closes PATTERN
        depth = 1
        while self._curr:
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self._curr.token_type, 0)
            if not depth:
                break
            self._advance()
        closing = self._curr
        self.need(TokenType.R_PAREN, ")")
        start = opening.end + 1
        return set_span(RowPattern(this=self.sql[start : closing.start]), start, closing.start)

    def _subset(self) -> exp.Expr:
        begin = self._index
        name = self.identifier("row variable")
        self.need(TokenType.EQ, "=")
        self.need(TokenType.L_PAREN, "(")
        members = self.separated(lambda: self.identifier("row variable"))
        self.need(TokenType.R_PAREN, ")")
        return self.spanned(begin, RowSubset(this=name, expressions=members))

    def _definition(self) -> exp.Expr:
        begin = self._index
        name = self.identifier("row variable")
        self.need_word("AS")
        return self.spanned(begin, RowDefinition(this=self.scalar(), alias=name))
