"""Hints: ``/*+ NAME(..) */``, read strictly. OPTIONS behind a table's name changes its options for one query; what has no effect is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import PenstockError, Span
from catalog.names import did_you_mean
from planner.lexical import scan
from planner.statement_nodes import OptionEntry

_HINT = re.compile(r"/\*\+(.*?)\*/", re.DOTALL)
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(((?:[^()']|'(?:[^']|'')*')*)\)\s*(,|$)")
_OPTION = re.compile(r"\s*('(?:[^']|'')*')\s*=\s*('(?:[^']|'')*')\s*(,|$)")
_WITHOUT_EFFECT = {
    "BROADCAST": "a join with a bounded table loads it first without being told",
    "SHUFFLE_HASH": "joins choose by what their inputs are",
    "SHUFFLE_MERGE": "joins choose by what their inputs are",
    "NEST_LOOP": "joins choose by what their inputs are",
    "LOOKUP": "how a table is looked up is said by its options",
    "STATE_TTL": "state is freed by watermarks: group by a window, or join within an interval; EXPLAIN says what bounds it",
}


@dataclass(frozen=True)
class Hint:
    """One hint: its name in upper case, its place, and where its arguments stand."""

    name: str
    span: Span
    start: int
    end: int


def read_hints(text: str, start: int, end: int) -> Iterator[Hint]:
    """Yield the hints of one ``/*+ .. */``; SQL-1009 where it cannot be read."""
    position, last = start + 3, end - 2
    while text[position:last].strip() or position == start + 3:
        call = _CALL.match(text, position, last)
        if call is None or (call[3] == "," and not text[call.end() : last].strip()):
            hint = "write /*+ OPTIONS('key' = 'value') */"
            raise PenstockError("SQL-1009", "this hint cannot be read", span=Span(start, end), hint=hint, sqlstate="42601")
        yield Hint(call[1].upper(), Span(*call.span(1)), *call.span(2))
        position = call.end()


def table_options(text: str, start: int, end: int) -> tuple[OptionEntry, ...]:
    """Return the options that the hint between two places gives the table named before it; none when there is no hint."""
    found = _HINT.search(text, start, end)
    if found is None:
        return ()
    options: list[OptionEntry] = []
    for hint in read_hints(text, *found.span()):
        if hint.name != "OPTIONS":
            raise _no_effect(hint)
        options += _options(text, hint.start, hint.end, hint.span)
    return tuple(options)


def _options(text: str, start: int, end: int, span: Span) -> Iterator[OptionEntry]:
    position = start
    while position < end or position == start:
        option = _OPTION.match(text, position, end)
        if option is None or (option[3] == "," and option.end() == end):
            hint = "write /*+ OPTIONS('key' = 'value', ..) */"
            raise PenstockError("SQL-1009", "these options cannot be read", span=span, hint=hint, sqlstate="42601")
        yield OptionEntry(_unquoted(option[1]).lower(), _unquoted(option[2]), Span(*option.span(1)), Span(*option.span(2)))
        position = option.end()


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def refuse_other_hints(text: str, tables: Iterable[exp.Expr]) -> None:
    """Refuse every hint of a statement but those its tables have taken: none is passed over in silence."""
    taken = {option.key_span.start for table in tables for option in table.meta.get("options", ())}
    for kind, start, end in scan(text):
        if kind == "hint" and not any(start < place < end for place in taken):
            raise _no_effect(next(read_hints(text, start, end)))


def _no_effect(hint: Hint) -> PenstockError:
    if hint.name == "OPTIONS":
        instead = "write it behind the name of a table that is read: FROM t /*+ OPTIONS('key' = 'value') */"
        return PenstockError("SQL-1602", "OPTIONS has no effect here", span=hint.span, hint=instead, sqlstate="0A000")
    reason = _WITHOUT_EFFECT.get(hint.name)
    if reason is None:
        near = did_you_mean(hint.name, ("OPTIONS", *_WITHOUT_EFFECT), others=True)
        return PenstockError("SQL-1602", f"there is no hint {hint.name}", span=hint.span, hint=near, sqlstate="42601")
    message = f"the hint {hint.name} would have no effect"
    return PenstockError("SQL-1602", message, span=hint.span, hint=f"leave it out: {reason}", sqlstate="0A000")
