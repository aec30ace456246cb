"""Reading tokens by words: what every part of the query grammar asks, and how it complains about what it
did not expect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlglot import exp, parser
from sqlglot.tokens import Token, TokenType

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import nearest
from penstock.planner.parser.keywords import RESERVED
from penstock.planner.parser.scanner import MAX_DEPTH, too_deep
from penstock.planner.parser.syntax_nodes import place

T = TypeVar("T")


class TokenReader(parser.Parser):
    """sqlglot's parser with its lenient grammar left aside: tokens are words, symbols, names, strings and
    numbers; nothing is skipped.
    """

    def load(self, tokens: list[Token], text: str) -> None:
        """Start at the first token of a text."""
        self.reset()
        self.sql = text
        self._chunks = [tokens]
        self._advance_chunk()
        self.depth = 0
        self.operators = 0
        self.parameters = 0
        self.implicit_alias: Token | None = None

    # words and symbols

    def word(self, ahead: int = 0) -> str:
        """Return the upper-case bare word ``ahead`` tokens on, or an empty string when there stands
        something else.
        """
        token = self.token(ahead)
        return token.text.upper() if token is not None and token.token_type is TokenType.VAR else ""

    def token(self, ahead: int = 0) -> Token | None:
        """Return the token ``ahead`` of the current one, or ``None`` past the end."""
        index = self._index + ahead
        return self._tokens[index] if 0 <= index < self._tokens_size else None

    def at(self, kind: TokenType, ahead: int = 0) -> bool:
        """Return whether the token ``ahead`` is of that kind."""
        token = self.token(ahead)
        return token is not None and token.token_type is kind

    def at_words(self, *words: str) -> bool:
        """Return whether these words come next."""
        return all(self.word(index) == word for index, word in enumerate(words))

    def take_words(self, *words: str) -> bool:
        """Pass over these words if they come next."""
        if not self.at_words(*words):
            return False
        self._advance(len(words))
        return True

    def need_word(self, word: str) -> None:
        """Pass over a word or complain that it is missing."""
        if not self.take_words(word):
            raise self.unexpected(word)

    def take(self, kind: TokenType) -> bool:
        """Pass over a symbol if it comes next."""
        return self._match(kind)

    def need(self, kind: TokenType, symbol: str) -> None:
        """Pass over a symbol or complain that it is missing."""
        if not self._match(kind):
            raise self.unexpected(symbol)

    def separated(self, item: Callable[[], T]) -> list[T]:
        """Return one or more items separated by commas; there is no item without text."""
        items = [item()]
        while self.take(TokenType.COMMA):
            items.append(item())
        return items

    # names

    def is_name(self, ahead: int = 0) -> bool:
        """Return whether a quoted name or a word that is not reserved stands there (but ``left.a`` and
        ``window.start`` are paths).
        """
        word = self.word(ahead)
        if word in ("LEFT", "RIGHT", "WINDOW"):
            return self.at(TokenType.DOT, ahead + 1)
        return self.at(TokenType.IDENTIFIER, ahead) or (word != "" and word not in RESERVED)

    def identifier(self, what: str) -> exp.Identifier:
        """Return the name that stands here or complain that a ``what`` was expected."""
        if not self.is_name():
            raise self.no_name(what)
        self._advance()
        token = self._prev
        if not token.text:
            raise PenstockError(
                "SQL-1008",
                "a quoted name may not be empty",
                span=Span(token.start, token.end + 1),
                sqlstate="42602",
            )
        return place(
            exp.Identifier(this=token.text, quoted=token.token_type is TokenType.IDENTIFIER),
            token.start,
            token.end + 1,
        )

    def no_name(self, what: str) -> PenstockError:
        """Return the complaint that no name stands where a ``what`` was expected."""
        word = self.word()
        if word in RESERVED and self._curr:
            hint = f"quote it to use it as a name: `{self._curr.text}`"
            message = f"{word} is a reserved word and cannot be a {what} here"
            return PenstockError("SQL-1008", message, span=self.here(), hint=hint, sqlstate="42601")
        return self.unexpected(what if what.startswith(("a ", "an ")) else f"a {what}")

    # places and complaints

    def placed(self, begin: int, node: exp.Expr) -> Any:
        """Note that a node reaches from the token of index ``begin`` to the one just read."""
        return place(node, self._tokens[begin].start, self._tokens[max(begin, self._index - 1)].end + 1)

    def here(self) -> Span:
        """Return the place of the current token, or just behind the last one at the end."""
        if self._curr:
            return Span(self._curr.start, self._curr.end + 1)
        end = self._tokens[-1].end + 1 if self._tokens else 0
        return Span(end, end + 1)

    def place_of(self, begin: int) -> Span:
        """Return the place from the token of index ``begin`` to the one just read."""
        return Span(self._tokens[begin].start, self._tokens[max(begin, self._index - 1)].end + 1)

    def unexpected(self, *expected: str) -> PenstockError:
        """Return the complaint about the current token: what was expected, and what a misspelt word near
        it may have meant.
        """
        words = [word for word in expected if word.isupper() and word[0].isalpha()]
        blamed, meant = self._misspelt(words)
        wanted = _any_of(expected)
        if blamed is not None and meant is not None:
            span = Span(blamed.start, blamed.end + 1)
            return PenstockError(
                "SQL-1001",
                f'unexpected "{blamed.text}"',
                span=span,
                hint=f'did you mean "{meant}"?',
                sqlstate="42601",
            )
        if not self._curr:
            return PenstockError(
                "SQL-1001",
                f"the statement ends where {wanted} was expected",
                span=self.here(),
                sqlstate="42601",
            )
        text = self.sql[self._curr.start : self._curr.end + 1]
        shown = text if len(text) <= 40 else text[:37] + "..."
        shown = shown if shown.startswith(("'", '"', "`")) else f'"{shown}"'
        return PenstockError(
            "SQL-1001", f"unexpected {shown}: {wanted} was expected", span=self.here(), sqlstate="42601"
        )

    def _misspelt(self, words: Sequence[str]) -> tuple[Token | None, str | None]:
        current = self.token()
        if (
            current is not None
            and current.token_type is TokenType.VAR
            and current.text.upper() not in RESERVED
        ):
            meant = nearest(current.text, words)
            if meant is not None:
                return current, meant
        alias = self.implicit_alias
        if alias is not None and alias is self.token(-1):
            meant = nearest(alias.text, [*words, "GROUP", "ORDER"])
            if meant is not None:
                return alias, {"GROUP": "GROUP BY", "ORDER": "ORDER BY"}.get(meant, meant)
        return None, None

    def not_yet(self, what: str, instead: str, begin: int | None = None) -> PenstockError:
        """Return the refusal of a construct this release does not run, with what to write instead."""
        span = self.here() if begin is None else self.place_of(begin)
        return PenstockError(
            "SQL-1601", f"{what} is not supported yet", span=span, hint=instead, sqlstate="0A000"
        )

    def enter(self) -> None:
        """Go one level deeper; refuse what nests too deep."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise too_deep(self.here())

    def leave(self) -> None:
        """Come back from a level."""
        self.depth -= 1


def _any_of(expected: Sequence[str]) -> str:
    expected = [word if word.strip("()[],=") else f'"{word}"' for word in expected]
    if len(expected) > 6:
        return "the end of the query or its next part"
    return expected[0] if len(expected) == 1 else f"{', '.join(expected[:-1])} or {expected[-1]}"
