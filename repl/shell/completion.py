"""Completion: tables after FROM, columns and functions elsewhere, settings in SET, options in WITH,
commands after a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from penstock.planner.parser.keywords import KEYWORDS
from penstock.planner.parser.scanner import scan
from penstock.repl.shell.argument_completion import ArgumentCompletion

if TYPE_CHECKING:
    from penstock.client.session import Session

# words behind which only the name of a table can stand
_TABLE_WORDS = {"FROM", "JOIN", "INTO", "TABLE", "VIEW", "DESCRIBE", "DESC", "EXISTS"}
_WORD = re.compile(r"[\w$]*$")
_IN_QUOTE = re.compile(r"'([^']*)$")


class SqlCompleter(Completer):
    """Completes from the session's catalog; before the session is loaded only from keywords. ``commands``
    are (name, help) of the shell.
    """

    def __init__(
        self,
        session: Callable[[], Session | None],
        commands: Iterable[tuple[str, str]],
        named_queries: Callable[[], list[str]] = list,
    ) -> None:
        self._session = session
        self._commands = list(commands)
        self._arguments = ArgumentCompletion(session, named_queries)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        # \d or: commands, on the first line or on one behind a statement
        line = before.rpartition("\n")[2].lstrip()
        if line.startswith("\\"):
            yield from self._of_commands(line)
            return
        quote = _IN_QUOTE.search(before)
        # an odd number of quotes: the cursor is inside a text
        if quote is not None and before.count("'") % 2 == 1:
            yield from _matching(self._quoted(before), quote[1])
            return
        word = _WORD.search(before)
        typed = word[0] if word else ""
        # nothing is suggested right behind a comma or a parenthesis, before a letter is typed
        if typed or before[-1:] in (" ", "."):
            yield from _matching(self._names(document.text, before[: len(before) - len(typed)]), typed)

    def _of_commands(self, before: str) -> Iterator[Completion]:
        # \d ta..: an argument
        if " " in before:
            typed = before.rpartition(" ")[2]
            yield from _matching(self._arguments.arguments(before.partition(" ")[0], typed), typed)
            return
        for name, help in self._commands:
            if name.startswith(before):
                yield Completion(name, -len(before), display_meta=help)

    def _quoted(self, before: str) -> list[tuple[str, str]]:
        """Completions inside single quotes: a setting's key after SET, an option's key in WITH."""
        from penstock.catalog.connectors.registry import CONNECTORS
        from penstock.catalog.declared_settings import SETTINGS

        words = [before[start:stop].upper() for kind, start, stop in scan(before) if kind == "word"]
        # SET 'key' and RESET 'key'
        if words[:1] in (["SET"], ["RESET"]):
            return [(key, setting.help) for key, setting in SETTINGS.items()]
        if "WITH" in words:
            named = re.search(r"'connector'\s*=\s*'(\w+)'", before)
            # WITH ('connector' = '..: the names of connectors
            if re.search(r"'connector'\s*=\s*'[^']*$", before):
                return [
                    (connector.name, connector.help)
                    for connector in CONNECTORS.values()
                    if not connector.internal
                ]
            # WITH (.., '..: the options of that connector
            if named and named[1] in CONNECTORS:
                return [(option.key, option.help) for option in CONNECTORS[named[1]].all_options]
            return [("connector", "the connector of the table")]
        return []

    def _names(self, text: str, before: str) -> list[tuple[str, str]]:
        words = [before[start:stop].upper() for kind, start, stop in scan(before) if kind == "word"]
        # FROM, JOIN, DESCRIBE ..: only tables
        if words and words[-1] in _TABLE_WORDS:
            return [(name, "table") for name in self._tables()]
        names = self._columns(text)
        if not before.endswith("."):
            names += [(word, "") for word in sorted(KEYWORDS)] + [
                (name, "function") for name in self._functions()
            ]
            names += [(name, "table") for name in self._tables()]
        return names

    def _tables(self) -> list[str]:
        session = self._session()
        return [] if session is None else session.catalog.names()

    def _columns(self, text: str) -> list[tuple[str, str]]:
        """The columns of the tables the text names."""
        session = self._session()
        if session is None:
            return []
        words = {text[start:stop].lower() for kind, start, stop in scan(text) if kind == "word"}
        columns: dict[str, str] = {}
        for name in session.catalog.names():
            relation = session.catalog.find(name)
            if relation is not None and name.lower() in words:
                columns |= {field.name: f"{field.type} of {name}" for field in relation.schema}
        return sorted(columns.items())

    def _functions(self) -> list[str]:
        session = self._session()
        if session is None:
            return []
        from penstock.catalog.functions.registry import function_kinds
        from penstock.catalog.functions.relation import FILE_TABLE_FUNCTIONS

        return [
            *(name for name, _ in function_kinds()),
            *(function.name for function in FILE_TABLE_FUNCTIONS),
            *session.catalog.functions.names(),
        ]


def _matching(names: Iterable[tuple[str, str]], typed: str) -> Iterator[Completion]:
    """Yield the names that begin with what was typed, first those in its own case; words follow the case
    of typing.
    """
    folded = typed.lower()
    seen = set()
    for name, help in names:
        if name.lower().startswith(folded) and name.lower() not in seen:
            seen.add(name.lower())
            text = name.lower() if name.isupper() and typed[:1].islower() else name
            yield Completion(text, -len(typed), display_meta=help)
