"""Why a shown row is in the result of the last query."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.catalog.persistence.show_create import quoted_name
from penstock.planner.statements import nodes
from penstock.repl.launch.script_parts import MetaCommand
from penstock.repl.meta_commands.context import MetaContext


def explain_shown_row(context: MetaContext, command: MetaCommand) -> None:
    r"""Explain a row of the last result by its number from 1, the last row without a number. The result stays
    the last one, so that ``\why`` can ask for another row of it.
    """
    last, text = context.printer.last, context.last_statement
    statements = context.session.parse(text) if text else []
    query = statements[-1].node if statements else None
    if last is None or not isinstance(query, nodes.Query):
        hint = "run a query first"
        raise PenstockError("CLI-6145", "there is no query whose row could be explained", hint=hint)
    rows = last.rows()
    number = command.argument.strip() or str(rows.num_rows)
    if not number.isdecimal() or not 1 <= int(number) <= rows.num_rows:
        hint = (
            f"the last result has {rows.num_rows:,} rows" if rows.num_rows else "the last result has no rows"
        )
        raise PenstockError("CLI-6145", f"there is no row {number}", hint=hint)
    (row,) = rows.slice(int(number) - 1, 1).to_pylist()
    conditions = ", ".join(_conditions(rows.schema.names, list(row.values())))
    if not conditions:
        hint = "EXPLAIN WHY ROW (condition, ..) FOR query takes any conditions"
        raise PenstockError("CLI-6145", "no column of the row has a value that can be compared", hint=hint)
    (explained,) = context.session.parse(f"EXPLAIN WHY ROW ({conditions}) FOR {query.text}")
    context.note(explained.text)
    try:
        context.run_statement(explained)
    finally:
        context.printer.last, context.last_statement = last, text


def _conditions(names: list[str], values: list[Any]) -> list[str]:
    """Return the conditions that tell a row. Columns of one name, and values whose text is not exact, such as
    DOUBLE, are left out.
    """
    times = Counter(name.lower() for name in names)
    conditions = []
    for name, value in zip(names, values, strict=True):
        literal = _literal(value)
        if literal is None or times[name.lower()] > 1:
            continue
        conditions.append(f"{quoted_name(name)} {'IS NULL' if value is None else f'= {literal}'}")
    return conditions


def _literal(value: Any) -> str | None:
    """Return a value as SQL; None where it has no exact text."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | Decimal():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            # an instant has a zone, and is written in that of the session
            return None if value.tzinfo is not None else f"TIMESTAMP '{value}'"
        case date():
            return f"DATE '{value}'"
    return None
