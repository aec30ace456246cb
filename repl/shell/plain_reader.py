"""Reading statements from a pipe as if somebody typed them: for ``--interactive`` without a terminal."""

from __future__ import annotations

from typing import TextIO


class PlainReader:
    """Reads lines until they make a whole statement or command; the prompt goes to the error stream, since
    stdout is data.
    """

    def __init__(self, source: TextIO, prompt_to: TextIO) -> None:
        self._source = source
        self._prompt_to = prompt_to

    def read(self, default: str = "") -> str:
        """Return the next statement or command; EOFError at the end of the input."""
        from penstock.planner.statements.script import is_complete

        lines: list[str] = []
        self._prompt_to.write("penstock> ")
        self._prompt_to.flush()
        for line in self._source:
            lines.append(line)
            text = "".join(lines)
            stripped = text.strip()
            if (
                not stripped
                or stripped.startswith("\\")
                or stripped.lower() in ("quit", "exit", "help")
                or is_complete(text)
            ):
                return text
        if "".join(lines).strip():
            return "".join(lines)
        raise EOFError
