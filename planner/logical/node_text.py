"""Texts that EXPLAIN lines of plan nodes share: expressions, orders, windows, durations and edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.catalog.schema import Schema
from penstock.planner.expressions.nodes import AggregateCall, Column, Expression, SortKey
from penstock.planner.logical.distribution import Edge, Partition
from penstock.planner.logical.windows import AttachedWindow, Emission, Windowing

_UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000))


def expression_text(expression: Expression, schema: Schema) -> str:
    """Return an expression as text with its columns named by a schema; repeated names get their position."""
    names = schema.names
    return renamed_text(
        expression,
        # two columns named x are x#0 and x#3
        lambda index: names[index] if names.count(names[index]) == 1 else f"{names[index]}#{index}",
    )


def renamed_text(expression: Expression, name_of: Callable[[int], str]) -> str:
    """Return an expression as text, its columns named by position, without parentheses around the whole."""
    text = str(expression.transform(lambda node: _renamed(node, name_of)))
    return text[1:-1] if _is_wrapped(text) else text


def _renamed(node: Expression, name_of: Callable[[int], str]) -> Expression:
    if not isinstance(node, Column):
        return node
    return Column(node.type, node.nullable, index=node.index, name=name_of(node.index))


def _is_wrapped(text: str) -> bool:
    """Whether the first parenthesis closes with the last character."""
    depth, quoted = 0, False
    for position, character in enumerate(text):
        # a doubled quote inside a text toggles twice
        quoted ^= character == "'"
        depth += 0 if quoted else (character == "(") - (character == ")")
        # (a) AND (b): the first parenthesis closes before the end
        if depth == 0:
            return position == len(text) - 1 and text.startswith("(")
    return False


def order_text(keys: Sequence[SortKey], schema: Schema) -> str:
    """Return the keys of an order; NULLS FIRST or LAST appears only where it is not the default."""
    words = []
    for key in keys:
        nulls = ""
        # not the default, which is NULLS FIRST ascending and NULLS LAST descending
        if key.nulls_first == key.descending:
            nulls = " NULLS FIRST" if key.nulls_first else " NULLS LAST"
        words.append(f"{expression_text(key.expression, schema)}{' DESC' if key.descending else ''}{nulls}")
    return ", ".join(words)


def keys_text(word: str, keys: Sequence[int], schema: Schema) -> str:
    """Return a word and the names of columns; nothing without columns."""
    return f"{word} {', '.join(schema[key].name for key in keys)}" if keys else ""


def labelled(text: str, name: str) -> str:
    """Return what computes a column, with the column's name unless it is the same."""
    return text if text == name else f"{text} AS {name}"


def calls_text(calls: Sequence[AggregateCall], names: Sequence[str], schema: Schema) -> str:
    """Return aggregates with the names of their columns."""

    def renamed(node: Expression) -> Expression:
        return _renamed(node, lambda index: schema[index].name)

    texts = (str(call.map(lambda e: e.transform(renamed))) for call in calls)
    return ", ".join(labelled(text, name) for text, name in zip(texts, names, strict=True))


def join_condition_text(
    sides: tuple[Schema, Schema],
    left_keys: Sequence[int],
    right_keys: Sequence[int],
    residual: Expression | None,
) -> str:
    """Return the condition of a join: equal keys, and a condition over left ++ right."""
    left, right = sides
    parts = [f"{left[a].name} = {right[b].name}" for a, b in zip(left_keys, right_keys, strict=True)]
    if residual is not None:
        parts.append(expression_text(residual, left.concat(right)))
    return " AND ".join(parts)


def window_text(window: Windowing | AttachedWindow, schema: Schema) -> str:
    """Return a window in words: its kind, time column and sizes."""
    if isinstance(window, AttachedWindow):
        return f"attached({schema[window.start_column].name}, {schema[window.end_column].name})"
    sizes = [*map(duration_text, window.lengths_us())]
    if window.offset_us:
        sizes.append(f"offset {duration_text(window.offset_us)}")
    if window.partition_keys:
        sizes.append(f"per {', '.join(schema[key].name for key in window.partition_keys)}")
    return f"{window.name}({schema[window.time_column].name}, {', '.join(sizes)})"


def emission_text(emission: Emission) -> str:
    """Return when windows emit, in words; nothing for on window close."""
    early = f" early{trigger_text(emission)}" if emission.early else ""
    return early + (f" lateness {duration_text(emission.lateness_us)}" if emission.lateness_us else "")


def trigger_text(emission: Emission) -> str:
    """Return how far apart changes are emitted, in words; nothing for at once."""
    parts = [duration_text(emission.every_us)] if emission.every_us else []
    parts += [f"{emission.every_rows} changes"] if emission.every_rows else []
    return f" every {' or '.join(parts)}" if parts else ""


def duration_text(us: int) -> str:
    """Return microseconds in the largest unit that divides them: ``90 s`` is ``90 s``, an hour is ``1 h``."""
    for unit, size in _UNITS:
        if us % size == 0 and us:
            return f"{us // size} {unit}"
    return f"{us} us"


def edge_text(edge: Edge, schema: Schema) -> str:
    """Return an edge's sign with its keys named."""
    if isinstance(edge, Partition) and edge.keys:
        return f"⤨ partition({', '.join(schema[key].name for key in edge.keys)})"
    return edge.sign
