"""The parts of a script: SQL statements, and the meta commands between them.

A meta command begins with a backslash and a letter outside quotes and comments, and ends with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError, SourceText, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.parser.scanner import next_lexeme

if TYPE_CHECKING:
    from penstock.client.statements.dispatch import LocatedStatement

# They run the statement before them, which then needs no semicolon.
_RUNS_STATEMENT = (r"\g", r"\gx", r"\watch")
_COMMAND = re.compile(r"\\[A-Za-z?][^\n]*")


@dataclass(frozen=True)
class MetaCommand:
    """One meta command of a text: ``offset`` is where it starts in ``source``. ``statement`` is the one
    before it that no semicolon ends, for a command that runs it.
    """

    text: str
    source: SourceText
    offset: int = 0
    statement: LocatedStatement | None = None

    @property
    def name(self) -> str:
        """The command with its backslash."""
        return self.text.split(maxsplit=1)[0]

    @property
    def argument(self) -> str:
        """What stands behind the name."""
        return self.text[len(self.name) :].strip()

    def locate(self, error: PenstockError) -> PenstockError:
        """Return an error of this command with its position; an error that has a text of its own keeps
        that.
        """
        if error.source is None:
            error.with_span(Span(0, len(self.text)))
        return error.with_source(self.source, self.offset)


def script_parts(
    parse: Callable[[str, str | None], Sequence[LocatedStatement]], text: str, file: str | None = None
) -> list[LocatedStatement | MetaCommand]:
    """Return the parts of a text in the order in which they run: a command within an unfinished statement
    runs before it. Raises the first syntax error.
    """
    spans = command_spans(text)
    if not spans:
        return list(parse(text, file))
    sql = _blanked(text, spans)
    # Only commands: the shell need not have loaded the engine, which parses.
    waiting = _statements(parse, sql, text, file) if sql.strip("; \r\n\t") else []
    parts: list[LocatedStatement | MetaCommand] = []
    for start, end in spans:
        command = _command(text, file, start, end)
        while waiting and (stop := waiting[0].offset + len(waiting[0].text)) <= start:
            statement = waiting.pop(0)
            if command.name in _RUNS_STATEMENT and ";" not in sql[stop:start]:
                command = replace(command, statement=statement)
            else:
                parts.append(statement)
        parts.append(command)
    return [*parts, *waiting]


def meta_commands(text: str, file: str | None = None) -> list[MetaCommand]:
    """Return the meta commands of a text."""
    return [_command(text, file, start, end) for start, end in command_spans(text)]


def without_commands(text: str) -> str:
    """Return the SQL of a script: every meta command is blank, and all positions stay what they are."""
    return _blanked(text, command_spans(text))


def is_finished(text: str) -> bool:
    """Return whether Enter runs a text: nothing, commands, a bare quit or help, or statements whose last one
    has its semicolon.
    """
    sql = without_commands(text).strip()
    # A line of a wrong command too: its error says what is wrong.
    if not sql or (text.lstrip().startswith("\\") and "\n" not in text.strip()):
        return True
    if sql.lower() in ("quit", "exit", "help"):
        return True
    # It loads the grammar, which the first prompt does not wait for.
    from penstock.planner.statements.script import is_complete

    return is_complete(sql)


def _command(text: str, file: str | None, start: int, end: int) -> MetaCommand:
    # Users end a command as they end a statement: \dt; is \dt.
    return MetaCommand(text[start:end].rstrip("; \r\t"), SourceText(text, file), start)


def _statements(
    parse: Callable[[str, str | None], Sequence[LocatedStatement]], sql: str, text: str, file: str | None
) -> list[LocatedStatement]:
    """Parse the SQL of a text; statements and errors show the lines as they were written."""
    try:
        return [replace(one, source=SourceText(text, file, one.source.statement)) for one in parse(sql, file)]
    except PenstockError as error:
        if error.source is not None:
            error.source = SourceText(text, file, error.source.statement).without_secrets()
        raise


def command_spans(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of every meta command of a text."""
    spans: list[tuple[int, int]] = []
    # Most scripts have none: their text is not scanned once more.
    position = 0 if "\\" in text else len(text)
    while position < len(text):
        command = _COMMAND.match(text, position)
        if command is not None:
            spans.append(command.span())
            position = command.end()
            continue
        kind, end = next_lexeme(text, position)
        # A quote or comment that never ends reaches to the end of the text.
        position = len(text) if kind == "open" else end
    return spans


def _blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a text with commands blank; a semicolon stands where one runs the statement before it."""
    pieces, before = [], 0
    for start, end in spans:
        runs = text[start:end].rstrip("; \r\t").split(maxsplit=1)[0] in _RUNS_STATEMENT
        pieces += [text[before:start], (";" if runs else " ") + " " * (end - start - 1)]
        before = end
    return "".join([*pieces, text[before:]])
