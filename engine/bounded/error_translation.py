"""A backend's error about a value, as our own expressions would report it. It is matched by its message and
by the plan's expressions that can raise it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import (
    Date,
    DayTimeInterval,
    String,
    Timestamp,
    TimestampLtz,
    is_numeric,
)
from penstock.engine.api.operator import Services
from penstock.engine.bounded.connector_relations import own_batches
from penstock.engine.expressions.evaluation_errors import (
    Fault,
    bad_argument,
    bad_cast,
    conflicting_rows,
    division_by_zero,
    out_of_range,
    several_rows,
    too_many_iterations,
)
from penstock.planner.expressions.nodes import AggregateCall, Call, Cast, Expression, Literal, SortKey
from penstock.planner.expressions.python_calls import PythonAggregateCall, PythonCall
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.recursive_query import RecursiveQuery
from penstock.planner.sql_generator.dialect import CONFLICTING_ROWS, SEVERAL_ROWS, TOO_MANY_ITERATIONS
from penstock.planner.sql_generator.query import ScannedTable

Suspect = Callable[[Expression | AggregateCall], bool]

_DIVISIONS = ("divide", "div", "mod", "pmod")
_ARITHMETIC = ("add", "subtract", "multiply", "negate", "abs", "divide", "div", "sum", "avg")
_DUCKDB_TYPES = {"INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INT", "INT64": "BIGINT"}
# suspects in the detail of an error; a long list would hide the message
_SHOWN = 3
_NO_MOMENT = "no moment: "
"""A macro of ours prepends this to a text that DuckDB would read as a date or time and Spark would not."""


def record_fault(relations: Sequence[ScannedTable], services: Services) -> PenstockError | None:
    """Return our own readers' error for csv files that a backend failed to read, ``None`` when they can read
    them all.
    """
    for relation in relations:
        if relation.table.connector == "filesystem":
            try:
                for _ in own_batches(relation, services):
                    pass
            except PenstockError as error:
                return error
    return None


def value_fault(words: str, plan: LogicalPlan) -> PenstockError | None:
    """Return a backend's error about a value as RUN-2001 to 2004. Its position is the expression, or spans
    all candidates.
    """
    # the first pattern that matches wins: the order of the table matters
    for pattern, tell in _TELLERS:
        match = re.search(pattern, words)
        if match is not None:
            fault, suspect = tell(match)
            return _with_span(fault, [part for part in _parts(plan) if suspect(part)])
    return None


def _with_span(fault: Fault, suspects: list[Expression | AggregateCall]) -> PenstockError:
    # the same expression may occur in several nodes of the plan: each text once, in plan order
    texts = list(dict.fromkeys(str(part) for part in suspects))
    spans = [part.span for part in suspects if part.span is not None]
    # one expression written at several places is pointed at where it is first
    spans = spans[:1] if len(texts) == 1 else spans
    one_of = "in " if len(texts) == 1 else "in one of "
    detail = one_of + ", ".join(texts[:_SHOWN]) if texts else None
    # of several, what is from the first to the last
    span = Span(min(s.start for s in spans), max(s.end for s in spans)) if spans else None
    return PenstockError(
        fault.code, fault.message, detail=detail, hint=fault.hint, span=span, sqlstate=fault.sqlstate
    )


def _parts(plan: LogicalPlan) -> Iterator[Expression | AggregateCall]:
    # any field of a node may hold expressions, directly or in tuples (a Project's list, a Sort's keys)
    terms = (node.term for node in plan.walk() if isinstance(node, RecursiveQuery))
    for node in (*plan.walk(), *(below for term in terms for below in term.walk())):
        for field in fields(node):
            yield from _inside(getattr(node, field.name))


def _inside(value: object) -> Iterator[Expression | AggregateCall]:
    if isinstance(value, tuple):
        for item in value:
            yield from _inside(item)
    elif isinstance(value, SortKey):
        yield from value.expression.walk()
    # the call itself may overflow (SUM), as may its arguments and its FILTER
    elif isinstance(value, AggregateCall):
        yield value
        for arg in (*value.args, *(() if value.filter is None else (value.filter,))):
            yield from arg.walk()
    elif isinstance(value, Expression):
        yield from value.walk()


def _calls(*functions: str) -> Suspect:
    return lambda part: isinstance(part, Call | AggregateCall) and part.function in functions


def _casts_to(name: str) -> Suspect:
    """Casts to a type whose name begins so; the backends cast a sum and an average to its own type."""
    word = name.partition("(")[0].strip().upper().removesuffix("_NTZ")
    return lambda part: (
        (isinstance(part, Cast) or _calls("sum", "avg")(part))
        and str(part.type).split("(")[0].upper() == word
    )


def _texts_read_as(name: str, value: str | None = None) -> Suspect:
    """Casts of texts to such a type; of constants only the one with this value."""
    to_type = _casts_to(name)
    return lambda part: to_type(part) and _reads_text(part, value)


def _reads_text(part: Expression | AggregateCall, value: str | None) -> bool:
    if not isinstance(part, Cast):
        return False
    # CAST('x' AS INT): a constant is a suspect only if it is the value of the message
    if isinstance(part.arg, Literal):
        return value is None or str(part.arg.value) == value
    return isinstance(part.arg.type, String)


def _temporal_casts(part: Expression | AggregateCall) -> bool:
    return isinstance(part, Cast) and isinstance(part.type, Date | Timestamp | TimestampLtz)


def _arithmetic(part: Expression | AggregateCall) -> bool:
    return _calls(*_ARITHMETIC)(part) and (is_numeric(part.type) or isinstance(part.type, DayTimeInterval))


def _divided(_: re.Match[str]) -> tuple[Fault, Suspect]:
    return division_by_zero(), _calls(*_DIVISIONS)


def _overflowed(match: re.Match[str]) -> tuple[Fault, Suspect]:
    name = match.groupdict().get("kind")
    return out_of_range(_DUCKDB_TYPES.get(name or "", "its type")), _arithmetic


def _too_large(match: re.Match[str]) -> tuple[Fault, Suspect]:
    name = _DUCKDB_TYPES.get(match["kind"], match["kind"])
    return out_of_range(name, match["value"].rstrip("LSBD")), _casts_to(name)


def _too_wide(match: re.Match[str]) -> tuple[Fault, Suspect]:
    name, casts = match["kind"].replace(",", ", "), _casts_to("DECIMAL")
    return out_of_range(name, match["value"]), lambda part: casts(part) or _arithmetic(part)


def _misread(match: re.Match[str]) -> tuple[Fault, Suspect]:
    # Spark writes TIMESTAMP_NTZ, DuckDB TIMESTAMP or DATE; we write TIMESTAMP for both
    name = match["kind"].replace("_NTZ", "").replace("_", " ").upper()
    # a readable number that no DECIMAL of this width can hold is out of range, no bad text
    number = re.fullmatch(r"[+-]?[0-9.]+", match["value"]) is not None and name.startswith("DECIMAL")
    value = match["value"].removeprefix(_NO_MOMENT)
    return (
        (out_of_range(name, value), _casts_to(name))
        if number
        else (bad_cast(value, name), _texts_read_as(name, value))
    )


def _misread_time(match: re.Match[str]) -> tuple[Fault, Suspect]:
    value = match["value"].removeprefix(_NO_MOMENT)
    return bad_cast(
        value, match["kind"].upper()
    ), lambda part: _temporal_casts(part) and _reads_text(part, value)


def _unreadable(match: re.Match[str]) -> tuple[Fault, Suspect]:
    fault = bad_cast("", match["kind"])
    return Fault(fault.code, fault.sqlstate, match["message"], fault.hint), _texts_read_as(match["kind"])


def _no_date(match: re.Match[str]) -> tuple[Fault, Suspect]:
    return bad_argument(f"there is no date {match['value']}"), _calls(
        "make_date", "to_date", "to_timestamp", "make_timestamp"
    )


def _no_time(match: re.Match[str]) -> tuple[Fault, Suspect]:
    return bad_cast(match["value"], "a date or time"), _calls("to_timestamp", "to_date", "unix_timestamp")


def _too_long(_: re.Match[str]) -> tuple[Fault, Suspect]:
    return bad_argument("a text would be longer than 2 GB"), _calls(
        "repeat", "concat", "lpad", "rpad", "space"
    )


def _python_raised(match: re.Match[str]) -> tuple[Fault, Suspect]:
    name = match["name"]
    # Spark's text may have the message as a repr, with line ends as two characters
    where = match["place"].replace("\\n", "")
    fault = Fault("RUN-2010", "39000", f"Python function {name}: {match['what']}", f"raised at {where}")
    return fault, _python(name)


def _python_gave(match: re.Match[str]) -> tuple[Fault, Suspect]:
    message = f"Python function {match['name']} returned {match['what']}"
    return Fault("RUN-2011", "39004", message, f"it is declared to return {match['declared']}"), _python(
        match["name"]
    )


def _endless(match: re.Match[str]) -> tuple[Fault, Suspect]:
    return too_many_iterations(int(match["most"])), lambda part: False


def _several(match: re.Match[str]) -> tuple[Fault, Suspect]:
    return several_rows(), _calls("single_value")


def _conflicting(match: re.Match[str]) -> tuple[Fault, Suspect]:
    return conflicting_rows(), _calls("unique_row")


def _python(name: str) -> Suspect:
    return lambda part: isinstance(part, PythonCall | PythonAggregateCall) and part.body.name == name


_TELLERS: tuple[tuple[str, Callable[[re.Match[str]], tuple[Fault, Suspect]]], ...] = (
    # Python functions first: their messages may hold any of the words below
    (r"Python function (?P<name>\w+): (?P<what>[^\n]*?) \(raised at (?P<place>[^\n]*?)\)", _python_raised),
    (
        r"Python function (?P<name>\w+) returned (?P<what>[^\n]*?) \(declared to return "
        r"(?P<declared>[^\n]*?)\)(?=\n|\\n|$)",
        _python_gave,
    ),
    (rf"{TOO_MANY_ITERATIONS} (?P<most>\d+)", _endless),
    (SEVERAL_ROWS, _several),
    (CONFLICTING_ROWS, _conflicting),
    # Spark's conditions; our DuckDB macros raise under the same names
    (r"(DIVIDE|REMAINDER)_BY_ZERO", _divided),
    (r"CAST_INVALID_INPUT: (?P<message>text that is no .* cannot be cast to (?P<kind>[A-Z]+))", _unreadable),
    (
        r"CAST_INVALID_INPUT\] The value '(?P<value>.*)' of the type \"STRING\" cannot be cast to "
        r"\"(?P<kind>[^\"]+)\"",
        _misread,
    ),
    (
        r"CAST_OVERFLOW\] The value (?P<value>\S+) of the type \"[^\"]+\" cannot be cast to "
        r"\"(?P<kind>[^\"]+)\"",
        _too_large,
    ),
    (r"(?P<value>[0-9.+-]+) cannot be represented as (?P<kind>Decimal\([0-9, ]+\))", _misread),
    (r"Casting value \"(?P<value>[0-9.+-]+)\" to type (?P<kind>DECIMAL\([0-9, ]+\)) failed", _too_wide),
    (r"CANNOT_PARSE_TIMESTAMP\] Text '(?P<value>.*)' could not be parsed", _no_time),
    # arithmetic and SUM, as DuckDB and Spark say it
    (r"Overflow in \w+ of (?P<kind>U?INT[0-9]+|numeric value|DECIMAL\([0-9]+\))", _overflowed),
    (r"ARITHMETIC_OVERFLOW|\blong overflow", _overflowed),
    (r"Type UINT128 with value \S+ can't be cast .* destination type INT128", _overflowed),
    (r"Type \w+ with value (?P<value>\S+) can't be cast .* destination type (?P<kind>INT[0-9]+)", _too_large),
    # texts that DuckDB cannot read as a date or time
    (r"(?P<kind>timestamp|date) field value out of range: \"(?P<value>[^\"]*)\"", _misread_time),
    (r"invalid (?P<kind>timestamp|date) field format: \"(?P<value>[^\"]*)\"", _misread_time),
    (
        r"Could not convert string (?P<quote>[\"'])(?P<value>.*?)(?P=quote) to "
        r"(?P<kind>DECIMAL\([0-9, ]+\)|\w+)",
        _misread,
    ),
    (r"Date out of range: (?P<value>[0-9-]+)", _no_date),
    (r"Cannot create a string of size", _too_long),
)
