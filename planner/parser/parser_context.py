"""What the levels of the query grammar share: the tokens, and the rules that lower levels call upward."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from penstock.planner.parser.token_stream import TokenStream


class ParserContext:
    """The tokens of one text and the recursive rules of its grammar.

    SQL is recursive: an OVER clause contains expressions, an expression contains queries. A lower level calls
    such a rule here, so that no file imports the level above it. The level that defines a rule sets it when
    the parser is composed; before that the attribute is missing.
    """

    scalar: Callable[[], exp.Expr]
    """The rule of whole expressions; ``ExpressionParser`` sets it."""

    key: Callable[[], exp.Expr]
    """The rule of an expression before a colon; ``ExpressionParser`` sets it."""

    operand: Callable[[], exp.Expr]
    """The rule of operators that bind tighter than a comparison; ``ExpressionParser`` sets it."""

    star: Callable[[], exp.Expr | None]
    """The rule of ``*`` and ``t.*`` with EXCEPT and REPLACE, or ``None`` without one; ``ExpressionParser``
    sets it.
    """

    query: Callable[[], exp.Expr]
    """The rule of whole queries; ``QueryParser`` sets it."""

    def __init__(self, tokens: TokenStream) -> None:
        self.tokens = tokens
