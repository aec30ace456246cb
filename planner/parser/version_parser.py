"""The grammar of versions of materialized views in FROM: ``view AS OF CHECKPOINT n``, ``view AS OF TIMESTAMP
'..'``, and ``DIFF(version, version)``.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.syntax_nodes import VersionDifference, ViewVersion

_KINDS = ("CHECKPOINT", "TIMESTAMP")


class VersionParser:
    """Parses versions of views in FROM."""

    def __init__(self, context: ParserContext, named_table: Callable[[int], exp.Expr]) -> None:
        self._tokens = context.tokens
        self._named_table = named_table

    def begins_version(self, ahead: int = 0) -> bool:
        """Return whether AS OF of a version comes ``ahead`` tokens on. An alias named of has no such word
        behind it.
        """
        return (
            self._tokens.word(ahead) == "AS"
            and self._tokens.word(ahead + 1) == "OF"
            and self._tokens.word(ahead + 2) in _KINDS
        )

    def begins_difference(self) -> bool:
        """Return whether DIFF of versions comes next. A table function may have that name."""
        if not (self._tokens.at_words("DIFF") and self._tokens.at(TokenType.L_PAREN, 1)):
            return False
        ahead = 3
        # DIFF(database.view AS OF ..
        while self._tokens.at(TokenType.DOT, ahead):
            ahead += 2
        return self.begins_version(ahead)

    def version(self, table: exp.Expr, begin: int) -> exp.Expr:
        """Return the version of a table whose AS OF is at the current token."""
        self._tokens.advance(2)
        kind = self._tokens.word()
        self._tokens.advance()
        if kind == "CHECKPOINT":
            if not self._tokens.at(TokenType.NUMBER) or not self._tokens.current.text.isdecimal():
                raise self._tokens.unexpected("the number of a checkpoint")
        elif not self._tokens.at(TokenType.STRING):
            raise self._tokens.unexpected("a timestamp in quotes")
        text = self._tokens.current.text
        self._tokens.advance()
        return self._tokens.spanned(
            begin, ViewVersion(this=table.this, checkpoint=kind == "CHECKPOINT", moment=text)
        )

    def difference(self, begin: int) -> exp.Expr:
        """Return DIFF(version, version)."""
        self._tokens.advance(2)
        sides = []
        for closing in (TokenType.COMMA, TokenType.R_PAREN):
            start = self._tokens.index
            table = self._named_table(start)
            if not self.begins_version() or not isinstance(table, exp.Table):
                raise self._tokens.unexpected("AS OF CHECKPOINT", "AS OF TIMESTAMP")
            sides.append(self.version(table, start))
            self._tokens.need(closing, "," if closing is TokenType.COMMA else ")")
        name = exp.Identifier(this="diff", quoted=False)
        return self._tokens.spanned(begin, VersionDifference(this=name, before=sides[0], after=sides[1]))
