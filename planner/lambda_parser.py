"""The grammar of functions as arguments: ``x -> ..`` and ``(x, y) -> ..``."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.planner.over_parser import OverParser
from penstock.planner.syntax import LambdaFunction


class LambdaParser(OverParser):
    """Arguments of calls."""

    def argument(self) -> exp.Expr:
        """Return one argument: an expression, or a function."""
        begin = self._index
        if self.is_name() and self.at(TokenType.ARROW, 1):
            names = [self.identifier("parameter")]
        elif self._begins_parameters():
            self._advance()
            names = self.separated(lambda: self.identifier("parameter"))
            self._advance()
        else:
            return self.scalar()
        self._advance()
        self.enter()
        node = self.placed(begin, LambdaFunction(this=self.scalar(), expressions=names))
        self.leave()
        return node

    def _begins_parameters(self) -> bool:
        if not self.at(TokenType.L_PAREN):
            return False
        ahead = 1
        while self.is_name(ahead) and self.at(TokenType.COMMA, ahead + 1):
            ahead += 2
        return self.is_name(ahead) and self.at(TokenType.R_PAREN, ahead + 1) and self.at(TokenType.ARROW, ahead + 2)

    def lists_arguments(self, ahead: int) -> bool:
        """Return whether a comma stands between the parenthesis ``ahead`` and the one that closes it."""
        depth = 0
        while (token := self.token(ahead)) is not None:
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
            if depth <= 0 or (depth == 1 and token.token_type is TokenType.COMMA):
                return depth == 1
            ahead += 1
        return False
