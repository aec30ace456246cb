"""The page of the shell, made of the registry of meta commands and of the parsers of the command line.

``python -m penstock.repl.meta_commands.reference docs`` writes it. A test compares the page with what it
would write.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from penstock.repl.launch.arguments import PARSERS, shell_parser
from penstock.repl.launch.parser import Parser
from penstock.repl.meta_commands.registry import SECTIONS

_HEAD = """# The shell and the command line

Written by `python -m penstock.repl.meta_commands.reference docs`; do not edit.
`penstock` opens a shell, and `penstock -c "SELECT 1 AS one"` runs a statement and leaves.
`penstock run job.sql` runs a script and waits for its jobs.

## Statements and commands

A statement ends with a semicolon. A meta command begins with a backslash and ends with its line. It needs no
semicolon. Both may follow each other in the shell, in `-c`, in the files of `-f` and `run`, and in a pipe:

```
penstock -c '\\d'
penstock -c '\\timing on' -c 'SELECT 1 AS one'
echo "SELECT 1 AS one \\g one.csv" | penstock --csv
```

- A command within an unfinished statement runs at once, and the statement continues behind it.
- `\\g`, `\\gx` and `\\watch` run the unfinished statement before them. Without one they run the last
  statement again.
- In quotes and comments a backslash is a letter.
- An error of a command in a script has its place and the exit code of an SQL error. A name that does
  not exist is found before anything runs.
- `\\q` ends the script that has it, and not the one that includes it.

"""

_ROWS = """\
`\\o` and `\\g` take a file, or a command behind a bar: `\\g | sort | head`. Rows in files have no colors
and are not cut. `\\tail flights 20` prints the newest 20 rows of a table, and then each row that comes,
until Ctrl-C. With a job it reads the table that the job writes. Of a table of files it shows what the job
has committed.

Of the last result the newest 64 MB are kept. `\\last` prints them without the limit of `\\pset max_rows`.

"""

_STATEMENTS = """\
Named queries are in `~/.config/penstock/named_queries.toml`, for all sessions.
`\\ns cheap SELECT * FROM orders WHERE price < ?` saves one, and `\\n cheap 2.5` runs it with its value. Texts
with blanks are in single quotes.

"""

_PAGES = """## Pages

A bounded result that does not fit the screen is shown by `$PAGER`, or by `less -SRFX` where that is
installed. There are no pages in scripts and pipes, nor of results that never end. `\\pset pager off`, or an
empty `PAGER`, prints everything at once.

## Keys

| key | what it does |
|---|---|
| Enter | runs a complete statement or a command, else begins a new line |
| Alt-Enter | begins a new line, always |
| Ctrl-J | runs what is there |
| Tab | completes names, keywords, options and commands |
| → at the end | takes the grey suggestion from the history |
| Ctrl-R, ↑, ↓ | search the history |
| Ctrl-C | while typing: drops the text; while rows come: stops the result |
| Ctrl-T | while a query runs: reports what it does and why no row has come ([OPERATIONS](OPERATIONS.md)) |
| Ctrl-D on an empty line | leaves; warns once when jobs would stop |
| F2, F3, F4, F5 | completion while typing, several lines, vi or emacs, EXPLAIN of every query |
| Ctrl-X Ctrl-E | edits the text in `$EDITOR` |

## Configuration

`~/.config/penstock/config.toml` has the user's preferences, `./penstock.toml` those of a project. Variables
overrule both, and flags overrule variables. `\\set` prints every value and where it came from.

| key | variable | what it is |
|---|---|---|
| `format` | `PENSTOCK_FORMAT` | the format of results |
| `timing`, `null`, `max_rows`, `vertical`, `pager` | | as `\\timing`, `\\pset` and `\\x` set them |
| `keys`, `multi_line` | | `emacs` or `vi`; whether Enter waits for the semicolon |
| `history` | `PENSTOCK_HISTORY` | the file of what was typed |
| `named_queries` | `PENSTOCK_NAMED_QUERIES` | the file of `\\n` |
| `[settings]` | | settings as `SET` has them, see [SETTINGS.md](SETTINGS.md) |

`PENSTOCK_CONFIG` names another file than the user's. `NO_COLOR` turns colors off.

## Command line

Options may be before or after the command: `penstock --set k=v run job.sql` is
`penstock run job.sql --set k=v`.

"""

_BEHIND = {"Statements": _STATEMENTS, "Rows": _ROWS}


def shell_page() -> str:
    """Return the page of the shell as Markdown."""
    parts = [_HEAD]
    for title, commands in SECTIONS.items():
        rows = ((f"{one.name} {one.arguments}".strip(), one.help) for one in commands)
        parts.append(f"## {title}\n\n" + _table(("command", "what it does"), rows) + "\n")
        parts.append(_BEHIND.get(title, ""))
    parts.append(_PAGES)
    parts.append("\n".join([_options(shell_parser()), *(_options(make()) for make in PARSERS.values())]))
    return "".join(parts)


def _options(parser: Parser) -> str:
    """Return the section of one command: its sentence and its options."""
    rows = [
        (_usage(action), (action.help or "").strip())
        for action in parser._actions
        if action.help is not argparse.SUPPRESS and not isinstance(action, argparse._HelpAction)
    ]
    return f"### `{parser.prog}`\n\n{parser.description}\n\n" + _table(("option", "meaning"), rows)


def _usage(action: argparse.Action) -> str:
    metavar = str(action.metavar or "") if action.nargs != 0 else ""
    return f"{', '.join(action.option_strings)} {metavar}".strip()


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    lines += [f"| `{_cell(first)}` | {' | '.join(map(_cell, others))} |" for first, *others in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    # A bar ends the cell of a Markdown table.
    return text.replace("|", "\\|")


def write_page(directory: Path) -> None:
    """Write the page into a directory."""
    (directory / "SHELL.md").write_text(shell_page(), encoding="utf-8")


if __name__ == "__main__":
    write_page(Path(sys.argv[1]))
