"""Causes and cures of errors: EXPLAIN WHY."""

from __future__ import annotations

PROVENANCE: dict[str, tuple[str, str]] = {
    "WHY-7101": (
        "The query has a function whose value differs from run to run.",
        "Write its value into a table first, and explain a query of that table.",
    ),
    "WHY-7102": (
        "EXPLAIN WHY does not know the input rows of an operator.",
        "Explain the query below that operator.",
    ),
    "WHY-7103": (
        "The query reads a table that never ends, or that cannot be read again.",
        "Read it up to a position, as the hint says, or record it in files.",
    ),
    "WHY-7104": ("No row of the result meets the conditions.", "Ask EXPLAIN WHY NOT ROW with the same ones."),
    "WHY-7106": (
        "A query is too large to be traced back.",
        "Write a part of the query into a table, and explain a query of that table.",
    ),
    "WHY-7105": ("Some rows of the result meet the conditions.", "Ask EXPLAIN WHY ROW with the same ones."),
}
