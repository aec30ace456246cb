"""The token stream of the query parser, and the errors of unexpected tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeVar

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import nearest
from penstock.planner.parser.keywords import RESERVED
from penstock.planner.parser.scanner import MAX_DEPTH, MAX_OPERATORS, too_deep, too_many_operators
from penstock.planner.parser.syntax_nodes import set_span

T = TypeVar("T")

QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM")
"""Words that begin a query; ``TABLE name`` begins one too."""
RESHAPING_WORDS = ("PIVOT", "PIVOT_WIDER", "UNPIVOT", "PIVOT_LONGER")
"""Words of DuckDB that begin a query when a table and ON follow; elsewhere they are names."""
ROW_CHANGES = ("UPDATE", "DELETE", "MERGE")
"""Words that begin a statement that changes rows of a table."""
TABLE_STATEMENTS = (*RESHAPING_WORDS, "SUMMARIZE")
"""Words of DuckDB that begin a statement of a table, which is a query."""

# behind the last token: false, and of no kind that the grammar asks for
_END = Token(TokenType.SENTINEL, "")


class TokenStream:
    """The tokens of one text and a cursor over them. No token is ever skipped.

    ``current`` is the next token, which is false at the end; ``previous`` is the last one read. Lookahead
    (``ahead``) counts from the current token and may point past the end.
    """

    def __init__(self, tokens: list[Token], text: str) -> None:
        self.sequence, self.text = tokens, text
        self._size = len(tokens)
        # upper-cased once: the grammar compares every word with many keywords
        self._words = tuple(
            token.text.upper() if token.token_type is TokenType.VAR else "" for token in tokens
        )
        self.index = 0
        self.current = tokens[0] if tokens else _END
        self.previous = _END
        # counters of the limits MAX_DEPTH and MAX_OPERATORS
        self.depth = 0
        self.operators = 0
        # the number of ? placeholders read so far
        self.parameters = 0
        # the last alias without AS: it may be a misspelt keyword, which a later error then names
        self.implicit_alias: Token | None = None

    def advance(self, count: int = 1) -> None:
        """Move the cursor on by ``count`` tokens; the text must have them."""
        self.index += count
        self.previous = self.sequence[self.index - 1]
        self.current = self.sequence[self.index] if self.index < self._size else _END

    # words and symbols

    def word(self, ahead: int = 0) -> str:
        """Return the bare word ``ahead`` tokens on in upper case, or an empty string for another token."""
        index = self.index + ahead
        return self._words[index] if index < self._size else ""

    def token(self, ahead: int = 0) -> Token | None:
        """Return the token ``ahead`` of the current one, or ``None`` past the end."""
        index = self.index + ahead
        return self.sequence[index] if 0 <= index < self._size else None

    def at(self, kind: TokenType, ahead: int = 0) -> bool:
        """Return whether the token ``ahead`` of the current one is of that kind."""
        index = self.index + ahead
        return index < self._size and self.sequence[index].token_type is kind

    def touching(self, *kinds: TokenType) -> bool:
        """Return whether tokens of these kinds come next, with nothing between them."""
        found = self.sequence[self.index : self.index + len(kinds)]
        return tuple(token.token_type for token in found) == kinds and all(
            first.end + 1 == second.start for first, second in pairwise(found)
        )

    def at_words(self, *words: str) -> bool:
        """Return whether these words come next."""
        return self._words[self.index : self.index + len(words)] == words

    def take_words(self, *words: str) -> bool:
        """Consume these words if they come next; return whether they did."""
        if self._words[self.index : self.index + len(words)] != words:
            return False
        self.advance(len(words))
        return True

    def need_word(self, word: str) -> None:
        """Consume a word, or raise SQL-1001."""
        if not self.take_words(word):
            raise self.unexpected(word)

    def take(self, kind: TokenType) -> bool:
        """Consume a symbol if it comes next; return whether it did."""
        if self.current.token_type is not kind:
            return False
        self.advance()
        return True

    def need(self, kind: TokenType, symbol: str) -> None:
        """Consume a symbol, or raise SQL-1001."""
        if not self.take(kind):
            raise self.unexpected(symbol)

    def separated(self, item: Callable[[], T]) -> list[T]:
        """Return one or more items separated by commas."""
        items = [item()]
        while self.take(TokenType.COMMA):
            items.append(item())
        return items

    def begins_query(self, ahead: int = 0) -> bool:
        """Return whether a query begins ``ahead`` tokens on."""
        word = self.word(ahead)
        if word in QUERY_WORDS or (word == "TABLE" and self.is_name(ahead + 1)):
            return True
        if word == "SUMMARIZE":
            # (SUMMARIZE t) and (SUMMARIZE SELECT ..)
            behind = self._behind_name(ahead + 1)
            return self.begins_query(ahead + 1) or (behind > ahead + 1 and self.at(TokenType.R_PAREN, behind))
        return word in RESHAPING_WORDS and self._table_and_on(ahead + 1)

    def _behind_name(self, ahead: int) -> int:
        """Return how far the token behind a table's name or path is; ``ahead`` without one."""
        if self.at(TokenType.STRING, ahead):
            return ahead + 1
        if self.is_name(ahead):
            ahead += 1
            while self.at(TokenType.DOT, ahead) and self.is_name(ahead + 1):
                ahead += 2
        return ahead

    def _table_and_on(self, ahead: int) -> bool:
        """Return whether a table, perhaps with an alias, and the word ON begin ``ahead`` tokens on."""
        ahead = self._behind_name(ahead)
        # (SELECT ..), and the arguments of a table function
        if self.at(TokenType.L_PAREN, ahead):
            ahead = self._behind_parentheses(ahead)
        ahead += self.word(ahead) == "AS"
        ahead += self.is_name(ahead)
        if self.at(TokenType.L_PAREN, ahead):
            ahead = self._behind_parentheses(ahead)
        return self.word(ahead) == "ON"

    def _behind_parentheses(self, ahead: int) -> int:
        depth = 0
        while (token := self.token(ahead)) is not None:
            depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
            ahead += 1
            if depth == 0:
                break
        return ahead

    # names

    def is_name(self, ahead: int = 0) -> bool:
        """Return whether the token ``ahead`` is a name: quoted, or a word that is not reserved. LEFT, RIGHT
        and WINDOW are names before a dot, as in ``window.start``.
        """
        word = self.word(ahead)
        # left.a, right.a, window.start
        if word in ("LEFT", "RIGHT", "WINDOW"):
            return self.at(TokenType.DOT, ahead + 1)
        return self.at(TokenType.IDENTIFIER, ahead) or (word != "" and word not in RESERVED)

    def identifier(self, what: str) -> exp.Identifier:
        """Return the name at the current token. Raise SQL-1008 for a reserved word or an empty name, SQL-1001
        for another token: a ``what`` was expected.
        """
        if not self.is_name():
            raise self.no_name(what)
        self.advance()
        token = self.previous
        # a quoted name is empty: ``
        if not token.text:
            raise PenstockError(
                "SQL-1008",
                "a quoted name may not be empty",
                span=Span(token.start, token.end + 1),
                sqlstate="42602",
            )
        return set_span(
            exp.Identifier(this=token.text, quoted=token.token_type is TokenType.IDENTIFIER),
            token.start,
            token.end + 1,
        )

    def no_name(self, what: str) -> PenstockError:
        """Return the error that the current token is no name where a ``what`` was expected."""
        word = self.word()
        if word in RESERVED and self.current:
            hint = f"quote it to use it as a name: `{self.current.text}`"
            # PostgreSQL and DuckDB have it in the select list
            if word == "UNNEST":
                hint = "write explode(array), or FROM UNNEST(array) AS t (x)"
            message = f"{word} is a reserved word and cannot be a {what} here"
            return PenstockError("SQL-1008", message, span=self.current_span(), hint=hint, sqlstate="42601")
        return self.unexpected(what if what.startswith(("a ", "an ")) else f"a {what}")

    # spans and errors

    def spanned(self, begin: int, node: exp.Expr) -> Any:
        """Set the span of a node from the token of index ``begin`` to the last token read, and return the
        node.
        """
        return set_span(node, self.sequence[begin].start, self.sequence[max(begin, self.index - 1)].end + 1)

    def current_span(self) -> Span:
        """Return the span of the current token; at the end, that of the character behind the last token."""
        if self.current:
            return Span(self.current.start, self.current.end + 1)
        end = self.sequence[-1].end + 1 if self.sequence else 0
        return Span(end, end + 1)

    def span_from(self, begin: int) -> Span:
        """Return the span from the token of index ``begin`` to the last token read."""
        return Span(self.sequence[begin].start, self.sequence[max(begin, self.index - 1)].end + 1)

    def unexpected(self, *expected: str) -> PenstockError:
        """Return the error SQL-1001 of the current token: the terminals expected there, or the word that a
        misspelt one resembles.
        """
        # only keywords can be misspelt, not symbols or descriptions
        words = [word for word in expected if word.isupper() and word[0].isalpha()]
        blamed, meant = self._misspelt(words)
        wanted = _any_of(expected)
        # a misspelt keyword is the most useful message, then the end of the text, then the token
        if blamed is not None and meant is not None:
            span = Span(blamed.start, blamed.end + 1)
            return PenstockError(
                "SQL-1001",
                f'unexpected "{blamed.text}"',
                span=span,
                hint=f'did you mean "{meant}"?',
                sqlstate="42601",
            )
        if not self.current:
            return PenstockError(
                "SQL-1001",
                f"the statement ends where {wanted} was expected",
                span=self.current_span(),
                sqlstate="42601",
            )
        text = self.text[self.current.start : self.current.end + 1]
        # shortened, as a long string would fill the message; a string shows in its own quotes
        shown = text if len(text) <= 40 else text[:37] + "..."
        shown = shown if shown.startswith(("'", '"', "`")) else f'"{shown}"'
        return PenstockError(
            "SQL-1001",
            f"unexpected {shown}: {wanted} was expected",
            span=self.current_span(),
            sqlstate="42601",
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
        # FROM t GRUOP BY a: the misspelt word was read as an alias, and the error is one token later
        alias = self.implicit_alias
        if alias is not None and alias is self.token(-1):
            meant = nearest(alias.text, [*words, "GROUP", "ORDER"])
            if meant is not None:
                return alias, {"GROUP": "GROUP BY", "ORDER": "ORDER BY"}.get(meant, meant)
        return None, None

    def not_yet(self, what: str, instead: str, begin: int | None = None) -> PenstockError:
        """Return the error SQL-1601 of a construct that is not supported, with what to write instead."""
        span = self.current_span() if begin is None else self.span_from(begin)
        return PenstockError(
            "SQL-1601", f"{what} is not supported yet", span=span, hint=instead, sqlstate="0A000"
        )

    def enter(self) -> None:
        """Enter a nesting level; raise SQL-1006 above ``MAX_DEPTH``."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise too_deep(self.current_span())

    def leave(self) -> None:
        """Leave a nesting level."""
        self.depth -= 1

    def count_operator(self) -> None:
        """Count one more operator. Raise SQL-1007 above ``MAX_OPERATORS``."""
        self.operators += 1
        if self.operators > MAX_OPERATORS:
            raise too_many_operators(self.current_span())


def _any_of(expected: Sequence[str]) -> str:
    expected = [word if word.strip("()[],=") else f'"{word}"' for word in expected]
    # a long list of terminals helps nobody
    if len(expected) > 6:
        return "the end of the query or its next part"
    return expected[0] if len(expected) == 1 else f"{', '.join(expected[:-1])} or {expected[-1]}"


# sqlglot's token types by the terminals of the statement grammar and of the type parser
SYMBOLS = {
    TokenType.L_PAREN: "LPAR",
    TokenType.R_PAREN: "RPAR",
    TokenType.COMMA: "COMMA",
    TokenType.EQ: "EQUAL",
    TokenType.LT: "LESSTHAN",
    TokenType.GT: "MORETHAN",
    TokenType.COLON: "COLON",
    TokenType.SEMICOLON: "SEMICOLON",
    TokenType.STRING: "STRING",
    TokenType.NUMBER: "NUMBER",
    TokenType.DOT: "DOT",
}
"""Terminals of the tokens that are neither words nor names."""
# terminals that are whole regions of SQL, as errors name them
REGIONS = {
    "EXPRESSION": "an expression",
    "QUERY": "a query",
    "ROW_CHANGE": "UPDATE, DELETE or MERGE",
    "SETTING": "a setting",
    "VALUE": "a value",
    "REST": "the rest of the statement",
}
TYPE_BEGINS = frozenset(("NAME", "INTERVAL", "ARRAY", "MAP", "ROW", "STRUCT"))
"""Terminals that may begin a type."""
# terminals as errors name them; keywords show as they are
_SHOWN = {
    "LPAR": '"("',
    "RPAR": '")"',
    "COMMA": '","',
    "EQUAL": '"="',
    "LESSTHAN": '"<"',
    "MORETHAN": '">"',
    "COLON": '":"',
    "SEMICOLON": '";"',
    "DOT": '"."',
    "STRING": "a text in single quotes",
    "NUMBER": "a number",
    "NAME": "a name",
    **REGIONS,
}


class AcceptingToken(Protocol):
    """A token with the terminals that the grammar accepted at its position, and the token before it."""

    @property
    def type(self) -> str: ...

    @property
    def value(self) -> str: ...

    @property
    def start_pos(self) -> int | None: ...

    @property
    def end_pos(self) -> int | None: ...

    @property
    def accepted(self) -> frozenset[str]: ...

    @property
    def previous(self) -> AcceptingToken | None: ...


def unexpected(token: AcceptingToken) -> PenstockError:
    """Return the error of a token that was not accepted: SQL-1001, or SQL-1008 for a reserved word
    in place of a name.
    """
    expected = sorted(token.accepted)
    before = token.previous
    span = Span(token.start_pos or 0, token.end_pos or 0)
    # blame a misspelt keyword first, here or one token earlier
    meant = _meant(token, expected)
    if meant is None and before is not None and before.type == "NAME":
        meant = _meant(before, before.accepted)
        if meant is not None:
            token, span = before, Span(before.start_pos or 0, before.end_pos or 0)
    if meant is not None:
        return PenstockError(
            "SQL-1001",
            f'unexpected "{token.value}"',
            span=span,
            hint=f'did you mean "{meant}"?',
            sqlstate="42601",
        )
    if before is None and TYPE_BEGINS.issuperset(expected):  # a type that stands in a query, or alone
        message = f"unexpected {_quoted(token.value)}: a type was expected"
        return PenstockError("SQL-1001", message, span=span, sqlstate="42601")
    # the first token of a statement
    if before is None:
        hint = (
            "statements begin with SELECT, INSERT, CREATE, DROP, EXPLAIN, SET, SHOW, DESCRIBE and "
            "others: HELP lists them"
        )
        return PenstockError(
            "SQL-1010",
            f'no statement begins with "{_short(token.value)}"',
            span=span,
            hint=hint,
            sqlstate="42601",
        )
    # a reserved word where a name was expected
    if token.type == "RESERVED" and "NAME" in expected:
        hint = f"quote it to use it as a name: `{token.value}`"
        return PenstockError(
            "SQL-1008", f"{token.value.upper()} is a reserved word", span=span, hint=hint, sqlstate="42601"
        )
    message = f"unexpected {_quoted(token.value)}: {_wanted(expected)} was expected"
    return PenstockError("SQL-1001", message, span=span, sqlstate="42601")


def _quoted(text: str) -> str:
    shown = _short(text)
    return shown if shown.startswith(("'", '"', "`")) else f'"{shown}"'


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else line[:37] + "..."


def _meant(token: AcceptingToken, accepted: Collection[str]) -> str | None:
    # lark's own terminals ($END, __ANON_0) and descriptions such as NAME are no words to suggest
    words = {word for word in accepted if word.isalpha() and word not in _SHOWN and not word.startswith("$")}
    # a query region has no terminals of its own: offer the words it may begin with
    if "QUERY" in accepted:
        words |= {"SELECT", "WITH", "VALUES"}
    if "ROW_CHANGE" in accepted:
        words |= set(ROW_CHANGES)
    meant = nearest(token.value, words) if token.type in ("NAME", "RESERVED") else None
    # the word itself is no correction: it is right, only not here
    return None if meant == token.value.upper() else meant


def ended(end: int, expected: Collection[str]) -> PenstockError:
    """Return the error of a text that ends, at ``end``, where a terminal was expected."""
    return PenstockError(
        "SQL-1001",
        f"the statement ends where {_wanted(sorted(expected))} was expected",
        span=Span(end, end + 1),
        sqlstate="42601",
    )


def _wanted(expected: list[str]) -> str:
    # a dot could follow nearly every name: not worth naming
    words = [_SHOWN.get(word, word) for word in expected if word not in ("$END", "DOT")]
    words += ["the end of the statement"] if "$END" in expected else []
    # a list of all keywords helps nobody: name what is no keyword
    if len(words) > 7:
        words = [word for word in words if not word.isupper()] or ["another word"]
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else "something else"
