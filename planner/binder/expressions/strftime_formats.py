"""STRFTIME and STRPTIME, which have the formats of C: the same times as DATE_FORMAT and TO_TIMESTAMP, whose
patterns have Java's letters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import STRING, Date, is_timestamp
from penstock.planner.expressions.nodes import Caller, Expression, Literal

# https://duckdb.org/docs/sql/functions/dateformat: %- leaves the zeros in front out
_LETTERS = {
    "%Y": "yyyy",
    "%y": "yy",
    "%m": "MM",
    "%-m": "M",
    "%d": "dd",
    "%-d": "d",
    "%H": "HH",
    "%-H": "H",
    "%I": "hh",
    "%-I": "h",
    "%M": "mm",
    "%-M": "m",
    "%S": "ss",
    "%-S": "s",
    "%f": "SSSSSS",
    "%g": "SSS",
    "%p": "a",
    "%A": "EEEE",
    "%a": "EEE",
    "%B": "MMMM",
    "%b": "MMM",
    "%j": "DDD",
    "%-j": "D",
    "%F": "yyyy-MM-dd",
    "%T": "HH:mm:ss",
    "%x": "yyyy-MM-dd",
    "%X": "HH:mm:ss",
    "%c": "yyyy-MM-dd HH:mm:ss",
    "%%": "%",
}
_PART = re.compile(r"%-?.?|[^%]+", re.DOTALL)


def _pattern(name: str, argument: Expression, span: Span | None) -> Literal:
    """Return the pattern in Java's letters. SQL-1103 for what is no constant or has no such letter."""
    text = argument.value if isinstance(argument, Literal) else None
    if not isinstance(text, str):
        hint = "write date_format(ts, pattern), whose pattern may be a column"
        raise _wrong(f"{name} takes a constant format", argument.span or span, hint)
    pieces = []
    for part in _PART.findall(text):
        if not part.startswith("%"):
            # letters of the text are no letters of the pattern
            pieces.append("'" + part.replace("'", "''") + "'")
        elif part in _LETTERS:
            pieces.append(_LETTERS[part])
        else:
            hint = f"it has {', '.join(letter for letter in _LETTERS if len(letter) == 2)}"
            raise _wrong(f"{name} has no {part}", argument.span or span, hint)
    return Literal(STRING, False, value="".join(pieces), span=argument.span)


def _is_time(value: Expression) -> bool:
    return isinstance(value.type, Date) or is_timestamp(value.type)


def _written(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    # SQLite has the format first, DuckDB takes both
    time, form = args if _is_time(args[0]) or not _is_time(args[1]) else (args[1], args[0])
    return call("date_format", [time, _pattern("strftime", form, span)], span)


def _read(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    return call("to_timestamp", [args[0], _pattern("strptime", args[1], span)], span)


def _wrong(message: str, span: Span | None, hint: str) -> PenstockError:
    return PenstockError("SQL-1103", message, span=span, hint=hint, sqlstate="42804")


STRFTIME_FORMATS = {"strftime": _written, "strptime": _read}
"""The builders of ``strftime(time, format)``, also with the format first, and ``strptime(text, format)``."""
