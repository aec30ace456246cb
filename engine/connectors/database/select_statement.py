"""SELECTs as text: names quoted, values as placeholders."""

from __future__ import annotations

from collections.abc import Callable

from penstock.catalog.schema import Field
from penstock.engine.connectors.database.database import Condition, Select

ITEM = Callable[[Field], str]


def quoted(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: str) -> str:
    """Return a table's name, perhaps behind its schema's, each part in double quotes."""
    return ".".join(map(quoted, name.split(".")))


def select_text(select: Select, placeholder: str, item: ITEM) -> tuple[str, list[object]]:
    """Return a SELECT with a placeholder per value, and the values. A SELECT of no columns gives one
    constant a row.
    """
    items = ", ".join(map(item, select.fields)) or "1"
    values: list[object] = []
    tests = []
    for condition in select.conditions:
        tests.append(_test(condition, placeholder))
        values += condition.values
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    return f"SELECT {items} FROM {quoted_table(select.table)}{where}", values


def _test(condition: Condition, placeholder: str) -> str:
    column = quoted(condition.column.name)
    if condition.operator == "IN":
        return f"{column} IN ({', '.join([placeholder] * len(condition.values))})"
    return f"{column} {condition.operator}{f' {placeholder}' * len(condition.values)}"


def shown(text: str, values: list[object], placeholder: str) -> str:
    """Return a text with its values in their places, for people."""
    pieces = text.split(placeholder)
    words = [_shown(value) for value in values]
    return "".join(piece + word for piece, word in zip(pieces, [*words, ""], strict=True))


def _shown(value: object) -> str:
    if isinstance(value, bool | int | float):
        return str(value).upper()
    return "'" + str(value).replace("'", "''") + "'"
