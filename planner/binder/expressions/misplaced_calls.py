"""Errors of aggregates and of calls with OVER in a clause that has no groups or partitions."""

from __future__ import annotations

from penstock.catalog.errors import PenstockError, Span


def misplaced_window(name: str, clause: str, span: Span | None) -> PenstockError:
    """Return the error of a call with OVER in a clause that has no partitions yet."""
    hint = "compute it in the select list of a subquery, give it a name, and use that name here"
    if clause in ("WHERE", "HAVING"):
        hint = "write QUALIFY, behind HAVING, for conditions on calls with OVER"
    return PenstockError(
        "SQL-1065",
        f"{name.lower()} OVER cannot be used in {clause}",
        span=span,
        hint=hint,
        sqlstate="42P20",
    )


def misplaced_aggregate(name: str, clause: str, span: Span | None) -> PenstockError:
    """Return the error of an aggregate in a clause that has no groups."""
    hints = {
        "WHERE": "filter groups with HAVING",
        "GROUP BY": "group by a column or an expression of columns",
        "an aggregate": "aggregate first in a subquery",
        "ON": "aggregate first in a subquery",
    }
    hint = hints.get(clause, "aggregate in a query over the table")
    # WHERE x = ANY(array): ANY(..) is the aggregate
    if name.lower() in ("any", "some"):
        hint = (
            "to compare with one of several values write x IN (a, b), with an array's "
            "ARRAY_CONTAINS(array, x)"
        )
    return PenstockError(
        "SQL-1062",
        f"the aggregate {name.lower()} cannot be used in {clause}",
        span=span,
        hint=hint,
        sqlstate="42803",
    )
