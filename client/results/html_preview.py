"""What a notebook shows of a result: its columns, its first rows, and a sentence of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

PREVIEW_ROWS = 20
_CELL = 200  # characters of a value


def html_table(headers: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]], note: str) -> str:
    """Return rows as a table of HTML. ``headers``: each column's name and, below it, its type."""
    head = "".join(f"<th>{escape(name)}<br><small>{escape(kind)}</small></th>" for name, kind in headers)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p><small>{escape(note)}</small></p>"
    )


def _cell(value: Any) -> str:
    if value is None:
        return "<td><i>NULL</i></td>"
    text = value.hex() if isinstance(value, bytes) else str(value)
    return f"<td>{escape(text if len(text) <= _CELL else text[: _CELL - 1] + '…')}</td>"
