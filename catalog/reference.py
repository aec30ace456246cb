"""The reference pages, made of the registries: functions, settings, connectors with formats, errors.

``python -m penstock.catalog.reference docs`` writes them. A test compares the pages with what it would write.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from penstock.catalog.connectors.common_options import SCAN_OPTIONS, SINK_OPTIONS
from penstock.catalog.connectors.connector import Connector
from penstock.catalog.connectors.option import Option, OptionKind, OptionValue
from penstock.catalog.connectors.registry import CONNECTORS
from penstock.catalog.declared_settings import SETTINGS, Setting
from penstock.catalog.error_codes.registry import ERROR_CODES, FAMILIES
from penstock.catalog.functions.aggregate import AGGREGATES
from penstock.catalog.functions.examples import (
    AGGREGATE_EXAMPLES,
    SAMPLE,
    SCALAR_EXAMPLES,
    TABLE_EXAMPLES,
    WINDOW_EXAMPLES,
)
from penstock.catalog.functions.registry import SCALAR_FAMILIES
from penstock.catalog.functions.relation import FILE_TABLE_FUNCTIONS, WINDOW_TABLE_FUNCTIONS
from penstock.catalog.functions.table import TABLE_FUNCTIONS
from penstock.catalog.functions.type_rules import Function
from penstock.catalog.functions.window import WINDOW_FUNCTIONS

_WRITTEN = "Written by `python -m penstock.catalog.reference docs`; do not edit."
# Aggregates that the optimizer alone calls.
_UNLISTED = ("sum0",)

_FUNCTIONS = f"""# Functions

{_WRITTEN} Values are those of Spark SQL in ANSI mode.
Overflow, division by zero and a value that cannot be read raise an error that shows the expression and
the row. `TRY_CAST` returns NULL instead. A function of a NULL is NULL unless it says otherwise.
Every example is run by a test.

"""

_SETTINGS = f"""# Settings

{_WRITTEN}
`SET 'key' = 'value'` changes one in a session or script, `--set key=value` on the command line, and
`[settings]` in the configuration file. `SET` alone lists all with their values, `RESET 'key'` returns to the
default. Any other key that begins with `spark.` is a setting of Spark itself.

"""

_CONNECTORS = f"""# Connectors and formats

{_WRITTEN}
`CREATE TABLE t (..) WITH ('connector' = 'filesystem', 'path' = 'orders.csv')` names a connector and its
options. A `*` in an option is the name of a column. What connectors promise after a failure is in
[CHECKPOINTS.md](CHECKPOINTS.md).

"""

_ERRORS = f"""# Error codes

{_WRITTEN}
`penstock explain-error SQL-1042` prints an entry of this page. The error itself says more: the place in the
text, and a hint that knows your names. A code never changes its meaning.

"""


def functions_page() -> str:
    """Return the page of functions as Markdown."""
    parts = [_family(title, functions, SCALAR_EXAMPLES) for title, functions in SCALAR_FAMILIES.items()]
    over = f"Examples are computed over `{SAMPLE}`."
    parts.append(_family("Aggregates", AGGREGATES, AGGREGATE_EXAMPLES, over))
    heading = f"With OVER, as every aggregate: see [OVER.md](OVER.md). {over}"
    rows = ((f.usage, f.help, _example(f.name, WINDOW_EXAMPLES)) for f in WINDOW_FUNCTIONS)
    parts.append(_section("Window functions", ("call", "meaning", "example"), rows, heading))
    rows = ((f.usage, f.help, _example(f.name.lower(), TABLE_EXAMPLES)) for f in TABLE_FUNCTIONS)
    heading = "In FROM, or alone in a SELECT list: see [NESTED.md](NESTED.md)."
    parts.append(_section("Table functions", ("call", "rows", "example"), rows, heading))
    pairs = ((f.usage, f.help) for f in WINDOW_TABLE_FUNCTIONS)
    heading = "In FROM; they add window_start, window_end and window_time: see [TIME.md](TIME.md)."
    parts.append(_section("Window table functions", ("call", "rows"), pairs, heading))
    pairs = ((f.usage, f.help) for f in FILE_TABLE_FUNCTIONS)
    heading = "In FROM; their options are in [FILES.md](FILES.md)."
    parts.append(_section("Functions of files", ("call", "rows"), pairs, heading))
    return _FUNCTIONS + "\n".join(parts)


def settings_page() -> str:
    """Return the page of settings as Markdown."""
    # The first word of a key is its family; the order of families is that of their first settings.
    families: dict[str, list[Setting]] = {}
    for setting in SETTINGS.values():
        families.setdefault(setting.key.split(".")[0], []).append(setting)
    columns = ("setting", "value", "default", "meaning")
    return _SETTINGS + "\n".join(
        _section(
            family,
            columns,
            (
                (s.key, ", ".join(s.choices) or str(s.kind), f"`{s.default}`" * bool(s.default), s.help)
                for s in rows
            ),
        )
        for family, rows in families.items()
    )


def connectors_page() -> str:
    """Return the page of connectors and their options as Markdown."""
    public = [connector for connector in CONNECTORS.values() if not connector.internal]
    every = [
        _option_section("Of every table that tasks of a job read", SCAN_OPTIONS),
        _option_section("Of every table that is written", SINK_OPTIONS),
    ]
    return _CONNECTORS + "\n".join([*map(_connector, public), *every])


def errors_page() -> str:
    """Return the page of error codes as Markdown."""
    return _ERRORS + "\n".join(
        _section(
            title,
            ("code", "cause", "cure"),
            ((code.code, code.cause, code.cure) for code in ERROR_CODES.values() if code.code[:3] == letters),
        )
        for letters, title in FAMILIES.items()
    )


PAGES: dict[str, Callable[[], str]] = {
    "FUNCTIONS.md": functions_page,
    "SETTINGS.md": settings_page,
    "CONNECTORS.md": connectors_page,
    "ERRORS.md": errors_page,
}


def _connector(connector: Connector) -> str:
    uses = [word for word, can in (("read", connector.source), ("written", connector.sink)) if can]
    heading = f"{connector.help[0].upper()}{connector.help[1:]}. Can be {' and '.join(uses)}."
    if not connector.options:
        return f"## {connector.name}\n\n{heading}\n"
    return _option_section(connector.name, connector.options, heading)


def _option_section(title: str, options: tuple[Option, ...], heading: str = "") -> str:
    rows = (
        (
            option.key,
            ", ".join(option.choices) or str(option.kind),
            "required" if option.required else _default(option),
            option.help,
        )
        for option in options
    )
    return _section(title, ("option", "value", "default", "meaning"), rows, heading)


def _default(option: Option) -> str:
    value: OptionValue = option.default
    if value is None or value == "":
        return ""
    # Typed values are written as a user writes them.
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if option.kind is OptionKind.DURATION:
        return f"`{value} ms`"
    if option.kind is OptionKind.MEMORY:
        return f"`{value} b`"
    return f"`{value}`"


def _family(
    title: str, functions: tuple[Function, ...], examples: dict[str, tuple[str, str]], heading: str = ""
) -> str:
    rows = (
        (f.usage, f.help, _example(f.name, examples), ", ".join(f"`{alias}`" for alias in f.aliases))
        for f in functions
        if f.name not in _UNLISTED
    )
    return _section(title, ("call", "meaning", "example", "also called"), rows, heading)


def _example(name: str, examples: dict[str, tuple[str, str]]) -> str:
    call, answer = examples[name]
    return f"`{call}` → `{answer}`" if answer.strip() else f"`{call}`"


def _section(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]], heading: str = "") -> str:
    """Return a table whose first column is code."""
    lines = [f"## {title}", "", *([heading, ""] if heading else [])]
    lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    lines += [f"| `{_cell(first)}` | {' | '.join(map(_cell, others))} |" for first, *others in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    # A bar ends the cell of a Markdown table, and so does a line end.
    return text.replace("|", "\\|").replace("\n", " ")


def write_pages(directory: Path) -> None:
    """Write all pages into a directory."""
    for name, page in PAGES.items():
        (directory / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
