"""The line editor: many lines, Enter that knows when a statement is complete, history, completion,
colours, the bottom bar.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.filters import Condition, completion_is_selected, has_completions, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from penstock.catalog.secrets import masked
from penstock.engine.api.print_stream import to_stdout
from penstock.planner.parser.keywords import KEYWORDS
from penstock.planner.parser.scanner import scan
from penstock.repl.launch.config import Config
from penstock.repl.launch.script_parts import command_spans, is_finished
from penstock.repl.shell.completion import SqlCompleter

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output


PROMPT = "penstock> "
CONTINUATION = "       -> "


class _HistoryFile(FileHistory):
    """What was typed, from session to session; secrets of statements are in the memory of this one only."""

    def store_string(self, string: str) -> None:
        # CREATE TABLE .. 'password' = '..' goes to the file with the password replaced
        super().store_string(masked(string))


class Editor:
    """Reads one statement or command at a time. ``explain_mode`` (F5): the shell prefixes queries with
    EXPLAIN.
    """

    def __init__(
        self,
        config: Config,
        completer: SqlCompleter,
        status: Callable[[], str],
        on_first_prompt: Callable[[], None],
        *,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self.explain_mode = False
        self.multi_line = config.multi_line
        self.complete_as_typed = True
        self._status = status
        self._on_first_prompt: Callable[[], None] | None = on_first_prompt
        self.history_note: str | None = None
        # https://no-color.org
        color = not os.environ.get("NO_COLOR")
        self.session: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            # a line that only wraps is no new line of SQL
            prompt_continuation=lambda width, line, wrapped: "" if wrapped else CONTINUATION,
            lexer=SqlLexer() if color else None,
            # in a thread: typing never waits for the catalog
            completer=ThreadedCompleter(completer),
            complete_while_typing=Condition(lambda: self.complete_as_typed),
            auto_suggest=AutoSuggestFromHistory(),
            history=self._history(config.history),
            key_bindings=self._bindings(),
            editing_mode=EditingMode.VI if config.keys == "vi" else EditingMode.EMACS,
            enable_open_in_editor=True,
            bottom_toolbar=self._bar,
            style=Style.from_dict(STYLES if color else {"bottom-toolbar": "noreverse"}),
            input=input,
            output=output,
        )
        # the engine is loaded behind the first prompt
        self.session.app.after_render += self._rendered

    def read(self, default: str = "") -> str:
        """Return what was typed. EOFError: Ctrl-D on an empty line; KeyboardInterrupt: Ctrl-C on one."""
        try:
            return self.session.prompt(default=default)
        except KeyboardInterrupt:
            # Ctrl-C on text drops it, as in psql; only on an empty line the user may want to leave
            if self.session.default_buffer.text.strip():
                return ""
            raise

    def print_above(self, text: str, write: Callable[[str], None] = to_stdout) -> None:
        """Print what a job says, from any thread: above the prompt while there is one."""
        # a job's thread must not write into the line that is being edited
        app = self.session.app
        if app.is_running and app.loop is not None:
            app.loop.call_soon_threadsafe(lambda: run_in_terminal(lambda: write(text)))
        else:
            write(text)

    def _rendered(self, app: Any) -> None:
        if self._on_first_prompt is not None:
            # once: later renders find None
            call, self._on_first_prompt = self._on_first_prompt, None
            call()

    def _history(self, path: Path) -> History:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # made with its mode, so that nobody else can ever read it
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError as error:
            self.history_note = f"history is not saved: {path}: {error.strerror}"
            return InMemoryHistory()
        return _HistoryFile(str(path))

    def _bar(self) -> str:
        mode = "vi" if self.session.editing_mode is EditingMode.VI else "emacs"
        switches = (
            f"F2 complete: {'on' if self.complete_as_typed else 'off'}",
            f"F3 multi-line: {'on' if self.multi_line else 'off'}",
            f"F4 {mode}",
            f"F5 explain: {'on' if self.explain_mode else 'off'}",
        )
        return "  ".join([*switches, self._status()])

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter", filter=has_focus(DEFAULT_BUFFER) & ~completion_is_selected)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            # Enter runs a complete statement, else it makes a new line
            if not self.multi_line or is_finished(buffer.text):
                buffer.validate_and_handle()
            else:
                buffer.insert_text("\n")

        # Alt-Enter: a new line even behind a complete statement
        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        # Ctrl-J: runs what is there, complete or not
        @keys.add("c-j")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.validate_and_handle()

        # eager: Escape closes the menu at once and does not wait for a second key
        @keys.add("escape", filter=has_completions, eager=True)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.cancel_completion()

        @keys.add("f2")
        def _(event: KeyPressEvent) -> None:
            self.complete_as_typed = not self.complete_as_typed

        @keys.add("f3")
        def _(event: KeyPressEvent) -> None:
            self.multi_line = not self.multi_line

        @keys.add("f4")
        def _(event: KeyPressEvent) -> None:
            vi = self.session.editing_mode is EditingMode.VI
            self.session.editing_mode = EditingMode.EMACS if vi else EditingMode.VI

        @keys.add("f5")
        def _(event: KeyPressEvent) -> None:
            self.explain_mode = not self.explain_mode

        return keys


STYLES = {
    "keyword": "ansiblue bold",
    "function": "ansicyan",
    "string": "ansigreen",
    "number": "ansimagenta",
    "comment": "ansibrightblack italic",
    # a quote or a comment that is not closed yet
    "open": "ansired",
    "command": "ansiyellow",
    "bottom-toolbar": "noreverse ansibrightblack",
    "prompt": "bold",
}
# a pasted text beyond it would be scanned anew at each key
MAX_HIGHLIGHTED = 100_000


class SqlLexer(Lexer):
    """Gives prompt-toolkit the styled pieces of each line."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = styled_lines(document.text)
        return lambda number: lines[number] if number < len(lines) else []


def styled_lines(text: str) -> list[StyleAndTextTuples]:
    """Return a text's lines as (style, piece) pairs."""
    lines: list[StyleAndTextTuples] = [[]]
    for style, piece in styled_pieces(text):
        for number, part in enumerate(piece.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append((style, part))
    return lines


def styled_pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield a text piece by piece with its style; what lies between tokens and is not blank is a comment."""
    if len(text) > MAX_HIGHLIGHTED:
        yield "", text
        return
    before = 0
    # \g or \timing between statements
    for start, end in command_spans(text):
        yield from _sql_pieces(text[before:start])
        yield "class:command", text[start:end]
        before = end
    yield from _sql_pieces(text[before:])


def _sql_pieces(text: str) -> Iterator[tuple[str, str]]:
    end = 0
    for kind, start, stop in scan(text):
        if start > end:
            yield _gap(text[end:start])
        piece = text[start:stop]
        yield _style(kind, piece, text[stop : stop + 1]), piece
        end = stop
    if end < len(text):
        yield _gap(text[end:])


def _gap(piece: str) -> tuple[str, str]:
    return ("class:comment" if piece.strip() else "", piece)


def _style(kind: str, piece: str, following: str) -> str:
    if kind == "word":
        if piece.upper() in KEYWORDS:
            return "class:keyword"
        # a name directly before a parenthesis is called
        return "class:function" if following == "(" else ""
    return f"class:{kind}" if kind in ("string", "number", "open") else ""
