"""Errors and notes on stderr: as text with a caret, or one JSON object a line."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from typing import TextIO

from penstock.catalog.errors import PenstockError


class Messages:
    """What is said beside the data. ``quiet`` drops notes, never errors."""

    def __init__(
        self, out: TextIO, *, as_json: bool = False, color: bool = False, quiet: bool = False
    ) -> None:
        self._out = out
        self._as_json = as_json
        self._color = color
        self.quiet = quiet
        self._has_status = False

    def error(self, error: PenstockError) -> None:
        """Print an error; one that holds several prints each."""
        self._clear_status()
        for one in each_error(error):
            text = json.dumps(one.as_dict()) if self._as_json else one.render(color=self._color)
            self._out.write(text + "\n")
        self._out.flush()

    def note(self, text: str) -> None:
        """Print a sentence that is no data."""
        if not self.quiet:
            self._clear_status()
            self._out.write(text + "\n")
            self._out.flush()

    def note_above_prompt(self, print_above: Callable[[str, Callable[[str], None]], None]) -> None:
        """Print what the engine logs from now on by a function that knows where the prompt is."""
        for handler in logging.getLogger("penstock").handlers:
            if isinstance(handler, EngineLogHandler):
                handler.note = lambda text: print_above(text, self.note)

    def status(self, text: str) -> None:
        """Redraw the one status line of a terminal."""
        # The text is drawn over the old one, and what is left of a longer one is erased.
        self._out.write(f"\r{text}\x1b[K" if text else "\r\x1b[K")
        self._out.flush()
        self._has_status = bool(text)

    def _clear_status(self) -> None:
        # what is written next begins in the first column of an empty line
        if self._has_status:
            self.status("")


class EngineLogHandler(logging.Handler):
    """Prints what the engine logs as notes, such as that Spark is being started."""

    def __init__(self, messages: Messages, *, verbose: bool = False) -> None:
        super().__init__(logging.DEBUG if verbose else logging.INFO)
        self.note: Callable[[str], None] = messages.note

    def emit(self, record: logging.LogRecord) -> None:
        """Note one line."""
        # nobody reads stderr any more: no reason for the engine to fail
        with contextlib.suppress(ValueError, OSError):
            self.note(record.getMessage())

    def attach(self) -> None:
        """Handle what is logged from now on, instead of an earlier handler."""
        logger = logging.getLogger("penstock")
        # One handler: with two, each line would be printed twice.
        logger.handlers[:] = [
            *(handler for handler in logger.handlers if not isinstance(handler, EngineLogHandler)),
            self,
        ]
        logger.setLevel(self.level)
        # The root logger may have a handler that would print the line again.
        logger.propagate = False


def each_error(error: PenstockError) -> Iterator[PenstockError]:
    """Yield the errors inside an error: its ``errors`` when it is a list of them, else itself."""
    yield from getattr(error, "errors", None) or (error,)
