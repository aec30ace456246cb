"""What a stream cannot do, said while names and places are still known."""

from __future__ import annotations

from penstock.catalog.errors import PenstockError, Span


def check_order(endless: bool, limited: bool, nested: bool, span: Span | None) -> None:
    """Refuse an order that no result can have: of an endless stream (SQL-1703), or of a subquery that keeps all its rows (SQL-1064)."""
    if limited:
        return
    if nested:
        hint = "order the outer query, or add LIMIT"
        raise PenstockError("SQL-1064", "ORDER BY in a subquery orders nothing without LIMIT", span=span, hint=hint, sqlstate="42601")
    if endless:
        hint = "order by a time attribute first, ascending, or add LIMIT n to keep the first n rows up to date"
        raise PenstockError("SQL-1703", "an endless stream has no last row, so it cannot be ordered", span=span, hint=hint, sqlstate="0A000")
