"""Errors as values: a code, a sentence, a place in the text, a hint; the caret is drawn here and nowhere else."""

from __future__ import annotations

import re
from enum import StrEnum

from catalog.frozen import dataclass

DETAILS_MOST = 24  # VERIFY's twenty rows, what becomes of the state of most queries
_LONG_WORD = re.compile(r"[\w$]{65,}")  # a name nobody reads to its end


@dataclass(frozen=True)
class Span:
    """Half-open range of character offsets into the submitted text."""

    start: int
    end: int

    def shifted(self, offset: int) -> Span:
        """Return this span moved right by ``offset`` characters."""
        return Span(self.start + offset, self.end + offset)


class Kind(StrEnum):
    """Whose fault an error is: the statement's, the outside world's, or ours."""

    USER = "user"
    EXTERNAL = "external"
    INTERNAL = "internal"


@dataclass(frozen=True)
class SourceText:
    """The text a user submitted: its characters, the file it came from and the statement's ordinal (1-based)."""

    text: str
    file: str | None = None
    statement: int | None = None

    def position(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column of a character offset."""
        offset = max(0, min(offset, len(self.text)))
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        return line, column

    def line(self, number: int) -> str:
        """Return the text of a 1-based line, without its line end."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


_LINE_WIDTH = 120


class PenstockError(Exception):
    """Every error a user can see.

    ``code`` is stable (``SQL-1042``), ``sqlstate`` its five-letter class, ``message`` one line in the user's terms, ``detail`` facts,
    ``hint`` what to do. ``span`` is relative to ``source.text`` once a source is attached.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        span: Span | None = None,
        source: SourceText | None = None,
        kind: Kind = Kind.USER,
        retriable: bool = False,
        sqlstate: str = "42000",
        operator: str | None = None,
    ) -> None:
        message = _LONG_WORD.sub(lambda found: f"{found[0][:40]}..", message)
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail
        self.hint = hint
        self.span = span
        self.source = source
        self.kind = kind
        self.retriable = retriable
        self.sqlstate = sqlstate
        self.operator = operator

    def with_source(self, source: SourceText, offset: int = 0) -> PenstockError:
        """Attach the submitted text once, moving the span by ``offset`` (where the statement starts in the text)."""
        if self.source is None:
            self.source = source
            if self.span is not None:
                self.span = self.span.shifted(offset)
        return self

    def with_span(self, span: Span | None) -> PenstockError:
        """Attach a span if the error has none yet."""
        if self.span is None:
            self.span = span
        return self

    def with_operator(self, operator: str) -> PenstockError:
        """Name the operator the error passed through; the innermost one stays."""
        if self.operator is None:
            self.operator = operator
        return self

    @property
    def line(self) -> int | None:
        """1-based line of the span in the submitted text."""
        return None if self.source is None or self.span is None else self.source.position(self.span.start)[0]

    @property
    def column(self) -> int | None:
        """1-based column of the span in the submitted text."""
        return None if self.source is None or self.span is None else self.source.position(self.span.start)[1]

    def as_dict(self) -> dict[str, object]:
        """Return the error as JSON-ready fields, the same on every way out."""
        return {
            "code": self.code,
            "kind": str(self.kind),
            "message": self.message,
            "detail": self.detail,
            "hint": self.hint,
            "file": self.source.file if self.source else None,
            "statement": self.source.statement if self.source else None,
            "line": self.line,
            "column": self.column,
            "span": [self.span.start, self.span.end] if self.span else None,
            "sqlstate": self.sqlstate,
            "operator": self.operator,
            "retriable": self.retriable,
        }

    def render(self, *, color: bool = False) -> str:
        """Return the error as text: headline, place, source line with caret, detail and hint."""
        out = [self._headline()]
        out += self._excerpt(color)
        if self.operator:
            out.append(f"operator: {self.operator}")
        if self.detail:
            rows = self.detail.split("\n")
            out += [f"detail: {row}" for row in rows[:DETAILS_MOST]]
            out += [f"detail: and {len(rows) - DETAILS_MOST:,} more"] if len(rows) > DETAILS_MOST else []
        if self.hint:
            out.append(f"hint: {self.hint}")
        return "\n".join(out)

    def _headline(self) -> str:
        place = ""
        if self.source is not None and self.source.file is not None:
            place = f"{self.source.file}:"
            if self.line is not None:
                place += f"{self.line}:{self.column}:"
            place += " "
        return f"{place}error[{self.code}]: {self.message}"

    def _excerpt(self, color: bool) -> list[str]:
        if self.source is None or self.span is None:
            return []
        line, column = self.source.position(self.span.start)
        text = "".join(letter if letter.isprintable() else "\ufffd" for letter in self.source.line(line).replace("\t", " "))
        width = max(1, min(self.span.end - self.span.start, len(text) - column + 1))
        prefix = f"{line:>3} | "
        text, column = _clip(text, column, _LINE_WIDTH - len(prefix))
        width = max(1, min(width, len(text) - column + 1))
        caret = "^" * width
        if color:
            caret = f"\x1b[31m{caret}\x1b[0m"
        return [prefix + text, " " * (len(prefix) - 2) + "| " + " " * (column - 1) + caret]

    def __str__(self) -> str:
        return self.render()


def _clip(text: str, column: int, width: int) -> tuple[str, int]:
    """Cut a long line to a window around the 1-based column; return the cut text and the column in it."""
    if len(text) <= width:
        return text, column
    start = max(0, min(column - 1 - width // 3, len(text) - width))
    return text[start : start + width], column - start
