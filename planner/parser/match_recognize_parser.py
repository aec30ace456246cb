"""The grammar of MATCH_RECOGNIZE, except for the pattern itself."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.planner.parser.over_clause_parser import OverParser
from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.syntax_nodes import (
    AfterMatch,
    RowDefinition,
    RowMatches,
    RowPattern,
    RowSubset,
    set_span,
)


class MatchParser:
    """Parses MATCH_RECOGNIZE clauses."""

    def __init__(self, context: ParserContext, over: OverParser) -> None:
        self._context, self._tokens = context, context.tokens
        self._over = over

    def match_recognize(self, table: exp.Expr) -> exp.Expr:
        """Return the MATCH_RECOGNIZE clause at the current token, applied to a table."""
        begin = self._tokens.index
        # the clauses have a fixed order, in which all but PATTERN and DEFINE are optional
        self._tokens.advance()
        self._tokens.need(TokenType.L_PAREN, "(")
        node = RowMatches(this=table)
        if self._tokens.take_words("PARTITION"):
            self._tokens.need_word("BY")
            node.set("partition", self._tokens.separated(self._context.scalar))
        if self._tokens.take_words("ORDER"):
            self._tokens.need_word("BY")
            node.set("order", self._tokens.separated(self._over.sort_item))
        if self._tokens.take_words("MEASURES"):
            node.set("measures", self._tokens.separated(self._measure))
        # ONE ROW PER MATCH is the default
        node.set("all_rows", self._rows_per_match())
        # without the clause the binder sets the default
        if self._tokens.at_words("AFTER", "MATCH"):
            node.set("skip", self._skip())
        # of row pattern matching in windows
        if self._tokens.word() in ("INITIAL", "SEEK"):
            raise self._tokens.not_yet(self._tokens.word(), "leave it out: matches are looked for everywhere")
        if not self._tokens.at_words("PATTERN"):
            raise self._tokens.unexpected("PATTERN")
        node.set("pattern", self._pattern())
        # WITHIN INTERVAL '1' HOUR: the longest duration of a match
        if self._tokens.take_words("WITHIN"):
            node.set("within", self._context.operand())
        if self._tokens.take_words("SUBSET"):
            node.set("subsets", self._tokens.separated(self._subset))
        self._tokens.need_word("DEFINE")
        node.set("defines", self._tokens.separated(self._definition))
        self._tokens.need(TokenType.R_PAREN, ")")
        return self._tokens.spanned(begin, node)

    def _measure(self) -> exp.Expr:
        begin = self._tokens.index
        value = self._context.scalar()
        self._tokens.need_word("AS")
        return self._tokens.spanned(
            begin, exp.Alias(this=value, alias=self._tokens.identifier("column name"))
        )

    def _rows_per_match(self) -> bool:
        if self._tokens.take_words("ONE"):
            self._tokens.need_word("ROW")
        elif self._tokens.take_words("ALL"):
            self._tokens.need_word("ROWS")
        else:
            return False
        # ALL ROWS PER MATCH emits each row of a match, ONE ROW PER MATCH its measures only
        every = self._tokens.previous.text.upper() == "ROWS"
        self._tokens.need_word("PER")
        self._tokens.need_word("MATCH")
        if (
            self._tokens.at_words("WITH", "UNMATCHED")
            or self._tokens.at_words("SHOW")
            or self._tokens.at_words("OMIT")
        ):
            instead = "leave it out: rows of no match are not shown, and no match is empty"
            raise self._tokens.not_yet(f"{self._tokens.word()} {self._tokens.word(1)}".strip(), instead)
        return every

    def _skip(self) -> exp.Expr:
        begin = self._tokens.index
        self._tokens.advance(2)
        self._tokens.need_word("SKIP")
        # AFTER MATCH SKIP PAST LAST ROW
        if self._tokens.take_words("PAST"):
            self._tokens.need_word("LAST")
            self._tokens.need_word("ROW")
            return self._tokens.spanned(begin, AfterMatch(kind="past"))
        # AFTER MATCH SKIP TO NEXT ROW, TO FIRST A, TO LAST A, TO A
        self._tokens.need_word("TO")
        if self._tokens.take_words("NEXT", "ROW"):
            return self._tokens.spanned(begin, AfterMatch(kind="next"))
        kind = "last"
        # SKIP TO A is SKIP TO LAST A; a variable may be called first
        if self._tokens.word() in ("FIRST", "LAST") and self._tokens.is_name(1):
            kind = self._tokens.word().lower()
            self._tokens.advance()
        return self._tokens.spanned(
            begin, AfterMatch(this=self._tokens.identifier("row variable"), kind=kind)
        )

    def _pattern(self) -> exp.Expr:
        """Cut out the text of PATTERN; ``row_pattern_parser`` has the grammar of it."""
        self._tokens.advance()
        opening = self._tokens.current
        self._tokens.need(TokenType.L_PAREN, "(")
        # up to the parenthesis that closes PATTERN
        depth = 1
        while self._tokens.current:
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self._tokens.current.token_type, 0)
            if not depth:
                break
            self._tokens.advance()
        closing = self._tokens.current
        self._tokens.need(TokenType.R_PAREN, ")")
        # the pattern is a language of its own: its text is parsed by another parser, at this offset
        start = opening.end + 1
        return set_span(RowPattern(this=self._tokens.text[start : closing.start]), start, closing.start)

    def _subset(self) -> exp.Expr:
        begin = self._tokens.index
        name = self._tokens.identifier("row variable")
        self._tokens.need(TokenType.EQ, "=")
        self._tokens.need(TokenType.L_PAREN, "(")
        members = self._tokens.separated(lambda: self._tokens.identifier("row variable"))
        self._tokens.need(TokenType.R_PAREN, ")")
        return self._tokens.spanned(begin, RowSubset(this=name, expressions=members))

    def _definition(self) -> exp.Expr:
        begin = self._tokens.index
        name = self._tokens.identifier("row variable")
        self._tokens.need_word("AS")
        return self._tokens.spanned(begin, RowDefinition(this=self._context.scalar(), alias=name))
