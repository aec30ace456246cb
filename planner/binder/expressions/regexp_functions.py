"""Matches of regular expressions by other engines' names, written with other functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import INT, STRING
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.expressions.nodes import Caller, Expression, Literal

_MATCH_OPTIONS = {"c": "", "i": "(?i)", "s": "(?s)"}
"""Options of DuckDB's regexp_matches as flags of a pattern."""


def _matched(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    pattern = args[1].value if isinstance(args[1], Literal) else None
    try:
        groups = re.compile(str(pattern)).groups if isinstance(pattern, str) else -1
    except re.error:
        groups = -1
    if groups < 0:
        raise _wrong("regexp_match takes a constant pattern", span, "write regexp_extract_all(s, pattern, 0)")
    each = [
        call("regexp_extract", [args[0], args[1], _whole(group)], span)
        for group in (range(1, groups + 1) if groups else (0,))
    ]
    found = call("array", each, span)
    return case_of([(call("rlike", args, span), found)], Literal(found.type, True, value=None), span)


def _has_match(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    """Return ``regexp_matches(s, pattern[, options])``."""
    if len(args) == 2:
        return call("rlike", args, span)
    options = args[2].value if isinstance(args[2], Literal) else None
    if not isinstance(options, str) or not set(options) <= set(_MATCH_OPTIONS):
        raise _wrong(
            "regexp_matches takes the constant options c, i and s", span, "write 'i' for a match without case"
        )
    flags = "".join(_MATCH_OPTIONS[letter] for letter in dict.fromkeys(options))
    pattern = call("concat", [_text(flags), args[1]], span) if flags else args[1]
    if flags and isinstance(args[1], Literal) and isinstance(args[1].value, str):
        pattern = _text(flags + args[1].value)
    return call("rlike", [args[0], pattern], span)


def _wrong(message: str, span: Span | None, hint: str) -> PenstockError:
    return PenstockError("SQL-1103", message, span=span, hint=hint, sqlstate="42804")


def _text(value: str) -> Expression:
    return Literal(STRING, False, value=value)


def _whole(value: int) -> Expression:
    return Literal(INT, False, value=value)


REGEXP_FUNCTIONS: dict[str, Callable[[Sequence[Expression], Caller, Span | None], Expression]] = {
    "regexp_match": _matched,
    "regexp_matches": _has_match,
}
