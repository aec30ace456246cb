"""The lexer of statements.lark. It classifies sqlglot's tokens by the terminals that the grammar accepts
next, and reads whole regions of SQL as one token.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from lark.lexer import Lexer
from lark.lexer import Token as LarkToken
from lark.parsers.lalr_analysis import Shift
from sqlglot.tokens import Token, TokenType

from penstock.planner.parser.dialect import tokenize
from penstock.planner.parser.keywords import RESERVED
from penstock.planner.parser.token_stream import (
    QUERY_WORDS,
    ROW_CHANGES,
    SYMBOLS,
    TABLE_STATEMENTS,
    TYPE_BEGINS,
    AcceptingToken,
)
from penstock.planner.parser.type_parser import TypeReader, TypeSyntax

_DEPTH = {
    **dict.fromkeys((TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE), 1),
    **dict.fromkeys((TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE), -1),
}
_REGIONS = frozenset(
    {"EXPRESSION", "QUERY", "ROW_CHANGE", "SETTING", "VALUE", "REST", "TYPE", "NAME", "STRING", "NUMBER"}
)
"""Terminals that are no words: DESCRIBE QUERY SELECT .. has a name before its query."""
_BEGINS_TABLE = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.L_PAREN)
# words that are column names unless this word follows (None: a string)
_NEEDS_NEXT = {"WATERMARK": "FOR", "PRIMARY": "KEY", "JOB": None}


class StatementLexer(Lexer):
    """A contextual lark lexer: lark pulls one token at a time, and the lexer looks up which terminals the
    parser accepts.
    """

    # lark then calls `lex` with the parser's state, which tells what the grammar accepts
    __future_interface__ = True

    def __init__(self, lexer_conf: Any) -> None:
        """Accept lark's configuration; nothing of it is needed."""

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[LarkToken]:
        """Yield lark tokens; ``accepted`` on each are the terminals that the grammar accepted at its
        position.
        """
        # a string, or lark's slice of one
        text = str(getattr(lexer_state.text, "text", lexer_state.text))
        tokens = tokenize(text)
        index, offered = 0, frozenset[str]()
        previous: AcceptingToken | None = None
        while index < len(tokens):
            accepted = accepted_terminals(parser_state)
            first, syntax = tokens[index], None
            # a SQL type has a grammar of its own
            if "TYPE" in accepted and not _is_word(first, accepted):
                reader = TypeReader(text, tokens, index, len(text.rstrip()), previous, accepted - {"TYPE"})
                syntax = reader.read()
                kind, end = "TYPE", reader.index
            else:
                kind, end = _classify(tokens, index, accepted)
            last = tokens[end - 1]
            token = StatementToken(
                kind, text[first.start : last.end + 1], start_pos=first.start, end_pos=last.end + 1
            )
            # behind a type, what would have gone on with it was accepted too
            token.accepted = with_types_begun(accepted | offered)
            token.source = first
            token.syntax = syntax
            token.previous = previous
            previous, offered = token, frozenset()
            if syntax is not None:
                previous, offered = reader.previous, frozenset(reader.looked_for)
            # lark borrows its position for the end of the text
            lexer_state.last_token = token
            yield token
            index = end


def accepted_terminals(parser_state: Any) -> frozenset[str]:
    """Return the terminals that the parser can really shift now. Lark's table alone is too wide: it merges
    the look-aheads of positions that share a state.
    """
    table, end = parser_state.parse_conf.parse_table.states, parser_state.parse_conf.end_state
    stack = list(parser_state.state_stack)
    return frozenset(
        name for name in table[stack[-1]] if name.isupper() and _can_shift(table, list(stack), name, end)
    )


def _can_shift(table: Any, stack: list[Any], terminal: str, end: Any) -> bool:
    # simulate the LALR automaton: reductions until the terminal is shifted or refused
    while True:
        if terminal == "$END" and stack[-1] == end:
            return True
        step = table[stack[-1]].get(terminal)
        if step is None:
            return False
        action, argument = step
        if action is Shift:
            return True
        # a reduction: the right side of the rule leaves the stack, its left side enters
        if argument.expansion:
            del stack[-len(argument.expansion) :]
        stack.append(table[stack[-1]][argument.origin.name][1])


class StatementToken(LarkToken):
    """A lark token with its first sqlglot token, the syntax of a type, the terminals accepted at its
    position, and the token before it.
    """

    accepted: frozenset[str]
    source: Token
    syntax: TypeSyntax | None
    previous: AcceptingToken | None


def with_types_begun(accepted: Collection[str]) -> frozenset[str]:
    """Return terminals with TYPE replaced by the terminals that may begin a type."""
    return frozenset(accepted) - {"TYPE"} | TYPE_BEGINS if "TYPE" in accepted else frozenset(accepted)


def _is_word(token: Token, accepted: Collection[str]) -> bool:
    return token.token_type is TokenType.VAR and token.text.upper() in accepted


def _classify(tokens: list[Token], index: int, accepted: Collection[str]) -> tuple[str, int]:
    """Return the terminal of the token at ``index``, and the index behind it."""
    token = tokens[index]
    # a scalar expression: up to a comma or parenthesis at this level
    if "EXPRESSION" in accepted:
        return "EXPRESSION", _region(tokens, index, (TokenType.COMMA, TokenType.R_PAREN))
    # a query: up to the semicolon
    if "QUERY" in accepted and _begins_query(tokens, index, accepted):
        return "QUERY", _query_end(tokens, index)
    # UPDATE, DELETE or MERGE: up to the semicolon
    if "ROW_CHANGE" in accepted and token.text.upper() in ROW_CHANGES:
        return "ROW_CHANGE", _region(tokens, index, (TokenType.SEMICOLON,))
    # the value of SET: the rest of the text
    if "VALUE" in accepted:
        return "VALUE", len(tokens)
    # symbols, strings, numbers and quoted names
    if token.token_type is not TokenType.VAR:
        if token.token_type is TokenType.IDENTIFIER:
            return "NAME", index + 1
        if "REST" in accepted and SYMBOLS.get(token.token_type) not in accepted:
            return "REST", len(tokens)
        return SYMBOLS.get(token.token_type, "SYMBOL"), index + 1
    return _classify_word(tokens, index, accepted)


def _classify_word(tokens: list[Token], index: int, accepted: Collection[str]) -> tuple[str, int]:
    word = tokens[index].text.upper()
    # a keyword where the grammar expects it, unless it may also be a column's name
    if (
        word in accepted
        and word not in _REGIONS
        and ("NAME" not in accepted or _is_keyword_here(word, tokens, index))
    ):
        return word, index + 1
    if "REST" in accepted:
        return "REST", len(tokens)
    # execution.runtime-mode: words, dots and dashes without blanks
    if "SETTING" in accepted:
        return "SETTING", _touching(tokens, index)
    return ("RESERVED" if word in RESERVED else "NAME"), index + 1


def _is_keyword_here(word: str, tokens: list[Token], index: int) -> bool:
    if word not in _NEEDS_NEXT:
        return True
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    if _NEEDS_NEXT[word] is None:
        return following is not None and following.token_type is TokenType.STRING
    return following is not None and following.text.upper() == _NEEDS_NEXT[word]


def _begins_query(tokens: list[Token], index: int, accepted: Collection[str]) -> bool:
    """Whether a query begins at a token. ``TABLE t`` is a query unless the statement itself accepts the word
    TABLE.
    """
    # ((SELECT ..) UNION ..)
    while index < len(tokens) and tokens[index].token_type is TokenType.L_PAREN:
        index += 1
    if index >= len(tokens) or tokens[index].token_type is not TokenType.VAR:
        return False
    word = tokens[index].text.upper()
    # PIVOT t ..: behind a name is no other statement's table of that name
    if word in TABLE_STATEMENTS:
        return index + 1 < len(tokens) and tokens[index + 1].token_type in _BEGINS_TABLE
    return word in (*QUERY_WORDS, *(() if "TABLE" in accepted else ("TABLE",)))


def _query_end(tokens: list[Token], index: int) -> int:
    """Return the index behind a query. ON CONFLICT DO of an INSERT ends it, and in VERIFY the last AGAINST
    BATCH.
    """
    end = _region(tokens, index, (TokenType.SEMICOLON,))
    # ON CONFLICT DO NOTHING: the last words alone are read, for VALUES may have a million
    last = [token.text.upper() for token in tokens[max(index, end - 4) : end - 1]]
    if last == ["ON", "CONFLICT", "DO"]:
        return end - 4
    if index == 0 or tokens[index - 1].text.upper() != "VERIFY":
        return end
    words = [token.text.upper() for token in tokens[:end]]
    return next((at for at in range(end - 2, index, -1) if words[at : at + 2] == ["AGAINST", "BATCH"]), end)


def _region(tokens: list[Token], index: int, stops: tuple[TokenType, ...]) -> int:
    """Return the index of the first stop outside parentheses, at least one token on."""
    depth, end = 0, index
    while end < len(tokens):
        kind = tokens[end].token_type
        if depth == 0 and kind in stops:
            break
        depth += _DEPTH.get(kind, 0)
        end += 1
    return max(end, index + 1)


def _touching(tokens: list[Token], index: int) -> int:
    """Return the index behind tokens that follow each other without a blank, such as
    ``execution.runtime-mode``.
    """
    end = index + 1
    while (
        end < len(tokens)
        and tokens[end].start == tokens[end - 1].end + 1
        and tokens[end].token_type is not TokenType.EQ
    ):
        end += 1
    return end
