"""The grammar of states in FROM: ``STATE OF JOB 'id' CHECKPOINT n OPERATOR 'name' STATE 'name'``."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.state_reference import StateReference
from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.syntax_nodes import StateTable

_KINDS = ("JOB", "SAVEPOINT")


class StateParser:
    """Parses a state in FROM."""

    def __init__(self, context: ParserContext) -> None:
        self._tokens = context.tokens

    def begins(self) -> bool:
        """Return whether a state comes next. A table named state has no word OF behind it."""
        return self._tokens.at_words("STATE", "OF")

    def table(self, begin: int) -> StateTable:
        """Return the state at the current token."""
        self._tokens.advance(2)
        kind = next((word for word in _KINDS if self._tokens.take_words(word)), None)
        if kind is None:
            raise self._tokens.unexpected(*_KINDS)
        place = self._text("the id of a job" if kind == "JOB" else "the path of a savepoint")
        checkpoint = None
        if kind == "JOB" and self._tokens.take_words("CHECKPOINT"):
            if not self._tokens.at(TokenType.NUMBER) or not self._tokens.current.text.isdecimal():
                raise self._tokens.unexpected("the number of a checkpoint")
            checkpoint = int(self._tokens.current.text)
            self._tokens.advance()
        operator = self._text("an operator") if self._tokens.take_words("OPERATOR") else None
        # without an operator: an alias may be called state
        state = None
        if operator is not None and self._tokens.take_words("STATE"):
            state = self._text("a state")
        reference = StateReference(
            place if kind == "JOB" else None,
            place if kind == "SAVEPOINT" else None,
            checkpoint,
            operator,
            state,
        )
        name = exp.Identifier(this=state or "state", quoted=True)
        return self._tokens.spanned(begin, StateTable(this=name, reference=reference))

    def _text(self, what: str) -> str:
        if not self._tokens.take(TokenType.STRING):
            raise self._tokens.unexpected(f"{what} in quotes")
        return self._tokens.previous.text
