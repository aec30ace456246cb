"""The page of functions, written from the registry: ``python -m penstock.catalog.functions.reference_page
> docs/FUNCTIONS.md``.
"""

from __future__ import annotations

import sys

from penstock.catalog.functions.aggregate import AGGREGATES
from penstock.catalog.functions.registry import SCALAR_FAMILIES
from penstock.catalog.functions.table import TABLE_FUNCTIONS
from penstock.catalog.functions.type_rules import Function
from penstock.catalog.functions.window import WINDOW_FUNCTIONS

_UNSPOKEN = ("sum0",)

_HEAD = """# Functions

Written by `python -m penstock.catalog.functions.reference_page`; do not edit. Values are those of Spark SQL in ANSI mode.
Overflow, division by zero and a value that cannot be read raise an error that shows the expression and the row. `TRY_CAST` returns NULL instead. A function of a NULL is NULL unless it
says otherwise.

"""


def page() -> str:
    """Return the page as Markdown."""
    families = {**SCALAR_FAMILIES, "Aggregates": AGGREGATES}
    return _HEAD + "\n".join(
        [*(_family(title, functions) for title, functions in families.items()), _windows(), _tables()]
    )


def _windows() -> str:
    lines = [
        "## Window functions",
        "",
        "With OVER, as every aggregate: see [OVER.md](OVER.md).",
        "",
        "| call | meaning |",
        "|---|---|",
    ]
    lines += [f"| `{_cell(f.usage)}` | {_cell(f.help)} |" for f in WINDOW_FUNCTIONS]
    return "\n".join(lines) + "\n"


def _tables() -> str:
    lines = [
        "## Table functions",
        "",
        "In FROM: see [NESTED.md](NESTED.md).",
        "",
        "| call | rows |",
        "|---|---|",
    ]
    lines += [f"| `{_cell(f.usage)}` | {_cell(f.help)} |" for f in TABLE_FUNCTIONS]
    return "\n".join(lines) + "\n"


def _family(title: str, functions: tuple[Function, ...]) -> str:
    shown = [f for f in functions if f.name not in _UNSPOKEN]
    lines = [f"## {title}", "", "| call | meaning | also called |", "|---|---|---|"]
    lines += [
        f"| `{_cell(f.usage)}` | {_cell(f.help)} | {', '.join(f'`{alias}`' for alias in f.aliases)} |"
        for f in shown
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
