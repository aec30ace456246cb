"""Errors as values: a code, a sentence, a position in the text, a hint. Only this module draws the caret."""

from __future__ import annotations

import re
from enum import StrEnum

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.secrets import KNOWN, MASK, masked

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
    """The text a user submitted: its characters, the file it came from and the statement's ordinal
    (1-based). An error has it without secrets.
    """

    text: str
    file: str | None = None
    statement: int | None = None

    def without_secrets(self) -> SourceText:
        """Return it with every letter of a secret masked, so that places stay what they are."""
        text = masked(self.text)
        return self if text == self.text else SourceText(text, self.file, self.statement)

    def position(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column of a character offset."""
        # A span may be behind the text, such as that of a missing token.
        offset = max(0, min(offset, len(self.text)))
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        return line, column

    def line(self, number: int) -> str:
        """Return the text of a 1-based line, without its line end."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


# Columns of an excerpt, the line number included.
_LINE_WIDTH = 120


class PenstockError(Exception):
    """Every error a user can see.

    ``code`` is stable (``SQL-1042``), ``sqlstate`` its five-letter class, ``message`` one line in the user's
    terms, ``detail`` facts, ``hint`` what to do. ``span`` is relative to ``source.text`` once a source is
    attached. Nothing in it says a secret of a statement or setting.
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
        # Redacted before it is shortened: a secret that is cut would no longer be recognized.
        message = _LONG_WORD.sub(lambda found: f"{found[0][:40]}..", KNOWN.redacted(message))
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail
        self.hint = hint
        self.span = span
        # The error never has the text as it was written, so that no other way of printing it shows a secret.
        self.source = None if source is None else source.without_secrets()
        self.kind = kind
        self.retriable = retriable
        self.sqlstate = sqlstate
        self.operator = operator

    @property
    def detail(self) -> str | None:
        """Facts, a line each."""
        return self._detail

    @detail.setter
    def detail(self, text: str | None) -> None:
        # A setter, so that facts that are added later are redacted too.
        self._detail = None if text is None else KNOWN.redacted(text)

    @property
    def hint(self) -> str | None:
        """What to do."""
        return self._hint

    @hint.setter
    def hint(self, text: str | None) -> None:
        self._hint = None if text is None else KNOWN.redacted(text)

    def with_source(self, source: SourceText, offset: int = 0) -> PenstockError:
        """Attach the submitted text once, moving the span by ``offset`` (where the statement starts in the
        text).
        """
        # A second call changes nothing: the span is relative to the first text already.
        if self.source is None:
            self.source = source.without_secrets()
            if self.span is not None:
                self.span = self.span.shifted(offset)
                self._forget(
                    # The marked piece before and after masking: they differ where the span is on a secret.
                    source.text[self.span.start : self.span.end],
                    self.source.text[self.span.start : self.span.end],
                )
        return self

    def _forget(self, piece: str, hidden: str) -> None:
        """Mask in message, detail and hint a piece of the text that is part of a secret."""
        if piece == hidden:
            return
        # A short piece, such as one letter, is replaced in quotes only: it is in half of all words.
        words = (piece,) if len(piece) > 3 else (f"'{piece}'", f'"{piece}"')
        for word in words:
            self.message = self.message.replace(word, MASK)
            self.detail = self.detail and self.detail.replace(word, MASK)
            self.hint = self.hint and self.hint.replace(word, MASK)
        # Exception.args has the message too, and repr() prints it.
        self.args = (self.message,)

    def without_secret_causes(self) -> PenstockError:
        """Replace every cause, of any class, whose text has a secret: Python prints causes with the error."""
        one: BaseException | None = self
        seen: set[int] = set()
        # Causes may form a circle.
        while one is not None and id(one) not in seen:
            seen.add(id(one))
            for name in ("__cause__", "__context__"):
                cause = getattr(one, name)
                text = (
                    ""
                    if cause is None or isinstance(cause, PenstockError)
                    else f"{type(cause).__name__}: {cause} {cause.args!r}"
                )
                # The text has args, too: str() of some exceptions leaves parts out.
                if KNOWN.redacted(text) != text:
                    # Replaced by one with the redacted text and the same traceback.
                    shown = RuntimeError(KNOWN.redacted(f"{type(cause).__name__}: {cause}")).with_traceback(
                        cause.__traceback__
                    )
                    # The chain stays whole: its next links are searched in the next turns.
                    shown.__cause__, shown.__context__ = cause.__cause__, cause.__context__
                    setattr(one, name, shown)
            # Python prints the cause where there is one, else the context: that chain is followed.
            one = one.__cause__ or one.__context__
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
        """Return the error as fields of JSON, the same for each interface."""
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
            # Offsets of characters into the submitted text, not bytes.
            "span": [self.span.start, self.span.end] if self.span else None,
            "sqlstate": self.sqlstate,
            "operator": self.operator,
            "retriable": self.retriable,
        }

    def render(self, *, color: bool = False) -> str:
        """Return the error as text: headline, source line with caret, operator, detail and hint."""
        out = [self._headline()]
        # Fixed order: headline, excerpt, operator, facts, hint.
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
        # report.sql:3:14: error[..]: as editors read it.
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
        text = self.source.line(line)
        # A span over several lines is marked to the end of its first line.
        width = max(1, min(self.span.end - self.span.start, len(text) - column + 1))
        prefix = f"{line:>3} | "
        text, column = _clip(text, column, _LINE_WIDTH - len(prefix))
        # One character a column, so that the caret is below its token. Only of what is shown: a line may have
        # a million characters.
        text = "".join(letter if letter.isprintable() else "\ufffd" for letter in text.replace("\t", " "))
        # Again, as the clipped line is shorter; a span at the end of the line is one caret wide.
        width = max(1, min(width, len(text) - column + 1))
        caret = "^" * width
        if color:
            caret = f"\x1b[31m{caret}\x1b[0m"
        return [prefix + text, " " * (len(prefix) - 2) + "| " + " " * (column - 1) + caret]

    def __str__(self) -> str:
        return self.render()


_ASKED_FOR = re.compile(r"allocate (?:data of size )?([\d.]+ [KMGTPE]?i?B)|alloc of size (\d+)")
"""How numpy, DuckDB and Arrow say how much they could not have."""


def out_of_memory(cause: MemoryError, doing: str, operator: str | None = None) -> PenstockError:
    """Return RUN-2024: there is no memory to do something (an infinitive), and how much was asked for where
    that is known.

    It is the machine's fault and not worth a restart: the same rows would want the same memory again.
    """
    # Group 1 has a unit already (1.5 GiB), group 2 is a number of bytes.
    found = _ASKED_FOR.search(str(cause))
    size = "" if found is None else f": {found[1] or f'{int(found[2]):,} bytes'} were asked for at once"
    error = PenstockError(
        "RUN-2024",
        f"{'' if operator is None else f'{operator}: '}there is not enough memory to {doing}{size}",
        hint="SET 'state.memory.budget-per-slot' so that state goes to disk, or "
        "'execution.batch.max-rows' to fewer rows; let "
        "fewer rows be together in one group; or give the process more memory",
        kind=Kind.EXTERNAL,
        sqlstate="53200",
        operator=operator,
    )
    error.__cause__ = cause
    return error


def _clip(text: str, column: int, width: int) -> tuple[str, int]:
    """Cut a long line to a window around the 1-based column; return the cut text and the column in it."""
    if len(text) <= width:
        return text, column
    # A third of the window is in front of the column.
    start = max(0, min(column - 1 - width // 3, len(text) - width))
    return text[start : start + width], column - start


def over_session_memory(limit_bytes: int) -> PenstockError:
    """Return the error of a query that is ended because its session takes more memory than it may."""
    return PenstockError(
        "CLI-6205",
        f"the query is ended: results of this session take more than {limit_bytes / 1e6:,.0f} MB of memory",
        hint="read fewer rows (LIMIT), in batches or fewer results at once, or INSERT INTO a table; "
        "penstock serve --session-memory is the limit",
        sqlstate="53200",
    )
