"""The cursor over tokens at the end of a text, and the composition of the grammar's levels."""

from __future__ import annotations

import pytest
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.planner.parser.call_parser import CallParser
from penstock.planner.parser.clause_parser import EmitParser, GroupingParser
from penstock.planner.parser.dialect import tokenize
from penstock.planner.parser.expression_parser import ExpressionParser
from penstock.planner.parser.from_parser import TableParser
from penstock.planner.parser.literal_parser import LiteralParser
from penstock.planner.parser.match_recognize_parser import MatchParser
from penstock.planner.parser.over_clause_parser import OverParser
from penstock.planner.parser.predicate_parser import PredicateParser
from penstock.planner.parser.query_parser import QueryParser
from penstock.planner.parser.token_stream import TokenStream

LEVELS = (
    LiteralParser,
    OverParser,
    CallParser,
    PredicateParser,
    ExpressionParser,
    MatchParser,
    TableParser,
    GroupingParser,
    EmitParser,
    QueryParser,
)


def stream(text: str) -> TokenStream:
    return TokenStream(tokenize(text), text)


def test_a_level_of_the_grammar_inherits_from_no_other() -> None:
    assert {level.__bases__ for level in LEVELS} == {(object,)}
    assert TokenStream.__bases__ == (object,)


def test_words_are_compared_in_upper_case_and_consumed_together() -> None:
    tokens = stream("group by a")
    assert not tokens.take_words("GROUP", "ALL")
    assert tokens.index == 0
    assert tokens.take_words("GROUP", "BY")
    assert (tokens.previous.text, tokens.current.text) == ("by", "a")


def test_lookahead_past_the_end_is_no_token() -> None:
    tokens = stream("a")
    assert (tokens.word(1), tokens.token(1), tokens.at(TokenType.COMMA, 5)) == ("", None, False)
    assert not tokens.at_words("A", "B")


def test_a_quoted_word_is_no_keyword() -> None:
    tokens = stream("`select` from")
    assert not tokens.at_words("SELECT")
    assert tokens.identifier("column").name == "select"


def test_the_end_is_false_and_no_symbol() -> None:
    tokens = stream("a,")
    tokens.advance(2)
    assert not tokens.current
    assert not tokens.take(TokenType.COMMA)
    with pytest.raises(PenstockError, match="the statement ends where"):
        tokens.need(TokenType.R_PAREN, ")")
    assert tokens.current_span().start == 2
