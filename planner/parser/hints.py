"""The grammar of hints, ``/*+ NAME(..) */``: OPTIONS follows a table name, all others follow SELECT. A hint
that cannot be obeyed is an error or, where it changes no row, a note; it is never ignored in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.planner.parser.scanner import scan
from penstock.planner.parser.syntax_nodes import OptionEntry

_HINT = re.compile(r"/\*\+(.*?)\*/", re.DOTALL)
# NAME(..) or NAME, where further parentheses are allowed only inside strings
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(((?:[^()']|'(?:[^']|'')*')*)\))?\s*(,|$)")
# 'key' = 'value' or key = 'value', where a doubled quote is a quote
_OPTION = re.compile(r"\s*('(?:[^']|'')*'|[A-Za-z_][\w.-]*|`[^`]+`)\s*=\s*('(?:[^']|'')*')\s*(,|$)")
_NUMBER = re.compile(r"\s*'?(\d+)'?\s*")
_VALUE = re.compile(r"\s*('(?:[^']|'')*')\s*")
# a table's name: a plain word, or any text in backticks
_NAME = re.compile(r"\s*(`(?:[^`]|``)+`|[A-Za-z_]\w*)\s*(,|$)")
# each hint of SELECT with its usage, which also tells the kind of its arguments
_OF_SELECT = {
    "STATE_TTL": "STATE_TTL('t' = '1 h')",
    "BROADCAST": "BROADCAST(t)",
    "LOOKUP": "LOOKUP('table' = 't', 'async' = 'true', ..)",
    "BACKFILL": "BACKFILL('spark')",
    "PARALLELISM": "PARALLELISM('t' = '4', 'JOIN' = '2')",
}
_JOINS = "joins choose by what their inputs are"
_PARTITIONS = "rows are distributed by the keys that the operators need"
# hints of Flink and Spark that change no row and have nothing to steer here: why
WITHOUT_EFFECT = {
    **dict.fromkeys(("SHUFFLE_HASH", "SHUFFLE_MERGE", "SHUFFLEMERGE", "MERGE", "MERGEJOIN"), _JOINS),
    **dict.fromkeys(("NEST_LOOP", "MULTI_JOIN", "SHUFFLE_REPLICATE_NL"), _JOINS),
    **dict.fromkeys(("COALESCE", "REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE"), _PARTITIONS),
    "SKEW": _PARTITIONS,
}
# Spark's other names of a hint
_ALIASES = {"BROADCASTJOIN": "BROADCAST", "MAPJOIN": "BROADCAST"}


@dataclass(frozen=True)
class Hint:
    """One hint: its name in upper case, the name's span, and the start and end offsets of its arguments."""

    name: str
    span: Span
    start: int
    end: int


@dataclass(frozen=True)
class SelectHint:
    """A hint behind SELECT. It holds ``options`` (keys as written), bare table ``names``, or ``values``,
    whichever its kind takes.
    """

    name: str
    span: Span
    options: tuple[OptionEntry, ...] = ()
    names: tuple[tuple[str, Span], ...] = ()
    values: tuple[tuple[str, Span], ...] = ()


def read_hints(text: str, start: int, end: int) -> Iterator[Hint]:
    """Yield the hints of one ``/*+ .. */`` comment. Raise SQL-1009 for malformed text."""
    # between /*+ and */; an empty hint is malformed, hence the second condition
    position, last = start + 3, end - 2
    while text[position:last].strip() or position == start + 3:
        call = _CALL.match(text, position, last)
        # no call, or a comma with nothing behind it
        if call is None or (call[3] == "," and not text[call.end() : last].strip()):
            hint = "write /*+ OPTIONS('key' = 'value') */"
            raise PenstockError(
                "SQL-1009", "this hint cannot be read", span=Span(start, end), hint=hint, sqlstate="42601"
            )
        name = _ALIASES.get(call[1].upper(), call[1].upper())
        # NAME without parentheses has no arguments
        bounds = call.span(2) if call[2] is not None else (call.end(1), call.end(1))
        yield Hint(name, Span(*call.span(1)), *bounds)
        position = call.end()


def table_options(text: str, start: int, end: int) -> tuple[OptionEntry, ...]:
    """Return the options of the OPTIONS hint between two offsets behind a table name, keys in lower case.
    Without a hint there are none. Raise SQL-1602 for another hint.
    """
    comment = _HINT.search(text, start, end)
    if comment is None:
        return ()
    options: list[OptionEntry] = []
    for hint in read_hints(text, *comment.span()):
        # a hint of SELECT at a table
        if hint.name != "OPTIONS":
            raise _no_effect(hint)
        options += _options(text, hint, "OPTIONS('key' = 'value', ..)")
    # as in WITH (..): keys are case-insensitive
    return tuple(OptionEntry(o.key.lower(), o.value, o.key_span, o.value_span) for o in options)


def select_hints(text: str, start: int, end: int) -> tuple[SelectHint, ...]:
    """Return the hints between two offsets behind SELECT. Raise SQL-1602 for one without effect there."""
    comment = _HINT.search(text, start, end)
    return (
        ()
        if comment is None
        else tuple(_select_hint(text, hint) for hint in read_hints(text, *comment.span()))
    )


def _select_hint(text: str, hint: Hint) -> SelectHint:
    # its arguments are of no use; the binder notes it
    if hint.name in WITHOUT_EFFECT:
        return SelectHint(hint.name, hint.span)
    usage = _OF_SELECT.get(hint.name)
    if usage is None:
        raise _no_effect(hint)
    # PARALLELISM(4): an option without a key
    if hint.name == "PARALLELISM" and (number := _NUMBER.fullmatch(text, hint.start, hint.end)):
        span = Span(*number.span(1))
        return SelectHint(hint.name, hint.span, (OptionEntry("", number[1], span, span),))
    # the usage text tells the kind of arguments: 'key' = 'value', a 'value', or names
    if "=" in usage:
        return SelectHint(hint.name, hint.span, tuple(_options(text, hint, usage)))
    if "'" in usage:
        return SelectHint(hint.name, hint.span, values=(_value(text, hint, usage),))
    return SelectHint(hint.name, hint.span, names=tuple(_names(text, hint, usage)))


def _value(text: str, hint: Hint, usage: str) -> tuple[str, Span]:
    value = _VALUE.fullmatch(text, hint.start, hint.end)
    if value is None:
        raise PenstockError(
            "SQL-1009",
            "this value cannot be read",
            span=hint.span,
            hint=f"write /*+ {usage} */",
            sqlstate="42601",
        )
    return _unquoted(value[1]), Span(*value.span(1))


def _options(text: str, hint: Hint, usage: str) -> Iterator[OptionEntry]:
    position = hint.start
    while position < hint.end or position == hint.start:
        option = _OPTION.match(text, position, hint.end)
        # no 'key' = 'value', or a comma with nothing behind it
        if option is None or (option[3] == "," and option.end() == hint.end):
            raise PenstockError(
                "SQL-1009",
                "these options cannot be read",
                span=hint.span,
                hint=f"write /*+ {usage} */",
                sqlstate="42601",
            )
        yield OptionEntry(
            _unquoted(option[1]), _unquoted(option[2]), Span(*option.span(1)), Span(*option.span(2))
        )
        position = option.end()


def _names(text: str, hint: Hint, usage: str) -> Iterator[tuple[str, Span]]:
    position = hint.start
    while position < hint.end or position == hint.start:
        name = _NAME.match(text, position, hint.end)
        if name is None or (name[2] == "," and name.end() == hint.end):
            raise PenstockError(
                "SQL-1009",
                "these names cannot be read",
                span=hint.span,
                hint=f"write /*+ {usage} */",
                sqlstate="42601",
            )
        quoted = name[1].startswith("`")
        yield name[1][1:-1].replace("``", "`") if quoted else name[1], Span(*name.span(1))
        position = name.end()


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'") if text[0] in "'`" else text


def refuse_other_hints(
    text: str, queries: Iterable[exp.Expr], of_targets: Sequence[OptionEntry] = ()
) -> None:
    """Raise SQL-1602 for the first hint of a statement that neither a table nor a SELECT has consumed."""
    # a hint is consumed when one of the options or hints on the nodes begins inside it
    spans = {option.key_span.start for option in of_targets}
    for node in queries:
        spans |= {option.key_span.start for option in node.meta.get("options", ())}
        spans |= {hint.span.start for hint in node.meta.get("hints", ())}
    for kind, start, end in scan(text):
        if kind == "hint" and not any(start < position < end for position in spans):
            raise _no_effect(next(read_hints(text, start, end)))


def _no_effect(hint: Hint) -> PenstockError:
    if hint.name == "OPTIONS":
        instead = "write it behind the name of a table that is read: FROM t /*+ OPTIONS('key' = 'value') */"
        return PenstockError(
            "SQL-1602", "OPTIONS has no effect here", span=hint.span, hint=instead, sqlstate="0A000"
        )
    # a hint of SELECT that is written elsewhere
    if hint.name in _OF_SELECT:
        instead = f"write it behind SELECT: SELECT /*+ {_OF_SELECT[hint.name]} */ .."
        return PenstockError(
            "SQL-1602", f"{hint.name} has no effect here", span=hint.span, hint=instead, sqlstate="0A000"
        )
    # a hint that changes nothing, where no SELECT is, or a misspelt one
    if hint.name in WITHOUT_EFFECT:
        return PenstockError(
            "SQL-1602",
            f"{hint.name} has no effect here",
            span=hint.span,
            hint=f"leave it out: {WITHOUT_EFFECT[hint.name]}",
            sqlstate="0A000",
        )
    near = did_you_mean(hint.name, ("OPTIONS", *_OF_SELECT, *WITHOUT_EFFECT), others=True)
    return PenstockError(
        "SQL-1602", f"there is no hint {hint.name}", span=hint.span, hint=near, sqlstate="42601"
    )
