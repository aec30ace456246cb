"""SQL types from text: DDL, CAST and the Table API read types here."""

from __future__ import annotations

from typing import Any

from lark import Tree

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIME,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    Decimal,
    Map,
    Row,
    Timestamp,
    TimestampLtz,
)
from penstock.planner.parser.scanner import MAX_DEPTH, too_deep_a_type

_SIMPLE: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN,
    "BOOL": BOOLEAN,
    "TINYINT": TINYINT,
    "SMALLINT": SMALLINT,
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": BIGINT,
    "LONG": BIGINT,
    "FLOAT": FLOAT,
    "REAL": FLOAT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "BYTES": BINARY,
    "DATE": DATE,
}
_SIZED: dict[str, DataType] = {
    "VARCHAR": STRING,
    "CHAR": STRING,
    "CHARACTER": STRING,
    "BINARY": BINARY,
    "VARBINARY": BINARY,
    "TIME": TIME,
}
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
TYPE_NAMES = (*_SIMPLE, *_SIZED, *_DECIMALS, *_TIMESTAMPS, "INTERVAL", "ARRAY", "MAP", "ROW", "STRUCT")


def parse_type(text: str, offset: int = 0) -> DataType:
    """Return the type a text names; raise SQL-1204 for an unknown one, with spans moved right by
    ``offset``.
    """
    # the statement grammar reads CAST through us: a cycle of rooms, broken here
    from penstock.planner.statements.grammar import parse_tree

    try:
        return type_of(parse_tree(text, "type"))
    except PenstockError as error:
        if error.span is not None:
            error.span = error.span.shifted(offset)
        raise


def type_of(tree: Tree, depth: int = 0) -> DataType:
    """Return the type of a tree of the ``type`` rule; SQL-1017 for one that nests deeper than a statement
    may.
    """
    if depth > MAX_DEPTH:
        raise too_deep_a_type(_first_word(tree))
    match tree.data:
        case "simple_type":
            return _simple(tree)
        case "interval_type":
            return YEAR_MONTH_INTERVAL if _children(tree)[0].data == "year_month" else DAY_TIME_INTERVAL
        case "array_type":
            return Array(type_of(_children(tree)[0], depth + 1))
        case "map_type":
            key, value = _children(tree)
            return Map(type_of(key, depth + 1), type_of(value, depth + 1))
    fields: dict[str, DataType] = {}
    for field in _children(tree):
        token, kind = field.children
        if token.source.text.lower() in {known.lower() for known in fields}:
            raise PenstockError(
                "SQL-1205",
                f'field "{token.source.text}" is declared twice',
                span=Span(token.start_pos, token.end_pos),
            )
        fields[token.source.text] = type_of(kind, depth + 1)
    return Row(tuple(fields.items()))


def _first_word(tree: Tree) -> Span | None:
    node: Any = tree
    while isinstance(node, Tree) and node.children:
        node = node.children[0]
    return None if isinstance(node, Tree) else Span(node.start_pos, node.end_pos)


def _children(tree: Tree) -> list[Any]:
    return [child for child in tree.children if isinstance(child, Tree)]


def _simple(tree: Tree) -> DataType:
    token: Any = tree.children[0]
    word = token.value.upper()
    span = Span(token.start_pos, token.end_pos)
    parts = {child.data: child for child in _children(tree)}
    numbers = (
        [int(n) if n.isdigit() else -1 for n in parts["parameters"].children] if "parameters" in parts else []
    )
    if word in _TIMESTAMPS:
        return _timestamp(word, numbers, parts, span)
    if set(parts) - {"parameters"}:
        raise PenstockError("SQL-1206", f"{word} takes no time zone", span=span)
    if word in _DECIMALS:
        return _placed(lambda: Decimal(*numbers) if numbers else Decimal(10, 0), span)
    if word in _SIZED and len(numbers) <= 1:
        return _SIZED[word]
    if word in _SIMPLE and not numbers:
        return _SIMPLE[word]
    if word in _SIMPLE or word in _SIZED:
        raise PenstockError(
            "SQL-1206",
            f"{word} takes {'one number' if word in _SIZED else 'no number'} in parentheses",
            span=span,
        )
    hint = (
        did_you_mean(word, TYPE_NAMES)
        or "types are BOOLEAN, INT, BIGINT, DOUBLE, DECIMAL(p, s), STRING, DATE, TIMESTAMP(3), "
        "ARRAY<..> and others"
    )
    raise PenstockError(
        "SQL-1204", f'type "{token.value}" does not exist', span=span, hint=hint, sqlstate="42704"
    )


def _timestamp(word: str, numbers: list[int], parts: dict[str, Tree], span: Span) -> DataType:
    precision = numbers[0] if numbers else 6
    if len(numbers) > 1 or not 0 <= precision <= 9:
        raise PenstockError("SQL-1206", f"the precision of {word} is one number from 0 to 9", span=span)
    if "with_zone" in parts:
        hint = "write TIMESTAMP_LTZ(3): an instant, shown in the session's zone"
        raise PenstockError("SQL-1206", "TIMESTAMP WITH TIME ZONE is not a type here", span=span, hint=hint)
    if precision > 6:
        hint = f"write {word}(6): times are kept in microseconds"
        raise PenstockError(
            "SQL-1206", f"{word}({precision}) is finer than microseconds", span=span, hint=hint
        )
    local = word == "TIMESTAMP_LTZ" or "with_local_zone" in parts
    return TimestampLtz(precision) if local else Timestamp(precision)


def _placed(build: Any, span: Span) -> DataType:
    try:
        return build()
    except PenstockError as error:
        raise error.with_span(span) from None
