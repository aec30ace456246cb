"""Cursors of SQL: DECLARE, FETCH, MOVE and CLOSE, as psql's FETCH_COUNT and drivers use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.schema import Schema
from penstock.catalog.settings import parse_duration_ms
from penstock.catalog.types import DataType
from penstock.client.server.postgres.executions import CommandStatement, Execution, WireStatement, command
from penstock.client.server.postgres.row_reader import RowReader
from penstock.client.server.postgres.sql_words import SqlToken, unquoted

_IGNORED = frozenset({"INSENSITIVE", "ASENSITIVE", "NO", "SCROLL", "BINARY"})


@dataclass
class DeclaredCursor:
    """A cursor that is open: the statement behind it, and its rows from the first FETCH on."""

    statement: WireStatement
    is_binary: bool
    holds: bool
    reader: RowReader | None = None

    def open(self) -> RowReader:
        """Return its rows; the first call starts the statement."""
        if self.reader is None:
            self.reader = self.statement.start(()).reader
        assert self.reader is not None
        return self.reader

    def close(self) -> None:
        """Stop what computes its rows."""
        if self.reader is not None:
            self.reader.cancel()


class DeclaredCursors:
    """The open cursors of a session, by name."""

    def __init__(self) -> None:
        self._open: dict[str, DeclaredCursor] = {}

    def declare(self, name: str, cursor: DeclaredCursor) -> None:
        """Open a cursor. CLI-6229 when the name is taken."""
        if name in self._open:
            hint = f"CLOSE {name} first, or choose another name"
            raise PenstockError("CLI-6229", f'cursor "{name}" already exists', hint=hint, sqlstate="42P03")
        self._open[name] = cursor

    def find(self, name: str, span: Span | None) -> DeclaredCursor:
        """Return an open cursor. CLI-6229 when there is none."""
        cursor = self._open.get(name)
        if cursor is None:
            raise PenstockError(
                "CLI-6229",
                f'cursor "{name}" does not exist',
                span=span,
                hint="DECLARE name CURSOR FOR query opens one, which COMMIT and ROLLBACK close",
                sqlstate="34000",
            )
        return cursor

    def close(self, name: str | None, span: Span | None = None) -> None:
        """Close one cursor, or all."""
        if name is not None:
            self.find(name, span).close()
            del self._open[name]
            return
        for cursor in self._open.values():
            cursor.close()
        self._open.clear()

    def end_transaction(self) -> None:
        """Close the cursors that do not outlive a transaction."""
        for name in [name for name, cursor in self._open.items() if not cursor.holds]:
            self.close(name)


def declare(
    sql: str,
    tokens: list[SqlToken],
    cursors: DeclaredCursors,
    compile_query: Callable[[str, int], WireStatement],
) -> CommandStatement:
    """Return DECLARE name CURSOR FOR query. ``compile_query`` takes the query and its offset."""
    words = [token.upper for token in tokens]
    if "CURSOR" not in words or "FOR" not in words[words.index("CURSOR") :] or len(words) < 5:
        raise _malformed("DECLARE name CURSOR FOR query", sql)
    at = words.index("FOR", words.index("CURSOR"))
    before = words[2 : words.index("CURSOR")]
    behind = words[words.index("CURSOR") + 1 : at]
    if not set(before) <= _IGNORED or behind not in ([], ["WITH", "HOLD"], ["WITHOUT", "HOLD"]):
        raise _malformed("DECLARE name [BINARY] [NO SCROLL] CURSOR [WITH HOLD] FOR query", sql)
    if "SCROLL" in before and "NO" not in before:
        raise PenstockError(
            "CLI-6229",
            "a cursor is read forward only, because a stream has no way back",
            hint="leave SCROLL out",
            span=Span(tokens[2].start, tokens[2].end),
            sqlstate="0A000",
        )
    if at + 1 >= len(tokens):
        raise _malformed("DECLARE name CURSOR FOR query", sql)
    start = tokens[at + 1].start
    statement = compile_query(sql[start:], start)
    name = unquoted(tokens[1].text)
    cursor = DeclaredCursor(statement, "BINARY" in before, behind[:1] == ["WITH"])
    return command("DECLARE CURSOR", lambda: cursors.declare(name, cursor))


@dataclass
class FetchStatement:
    """FETCH or MOVE: the next ``most`` rows of a cursor (None: all), waiting for them up to a timeout."""

    cursor: DeclaredCursor
    most: int | None
    timeout_s: float | None
    moves: bool
    parameters: Sequence[DataType] = ()

    @property
    def schema(self) -> Schema | None:
        return None if self.moves else self.cursor.statement.schema

    def start(self, values: Sequence[object]) -> Execution:
        tag = "MOVE" if self.moves else "FETCH"
        return Execution(
            tag,
            self.cursor.open(),
            most=self.most,
            timeout_s=self.timeout_s,
            binary=self.cursor.is_binary,
            discards=self.moves,
        )


def fetch(sql: str, tokens: list[SqlToken], cursors: DeclaredCursors) -> FetchStatement:
    """Return FETCH or MOVE: ``[NEXT | FORWARD] [n | ALL] [FROM | IN] cursor [WITH (TIMEOUT = '1 s')]``."""
    words = [token.upper for token in tokens]
    timeout_s, end = None, len(words)
    if "WITH" in words[2:]:
        end = words.index("WITH", 2)
        option = [token.text for token in tokens[end + 1 :] if token.text not in "()="]
        milliseconds = parse_duration_ms(unquoted(option[-1])) if len(option) == 2 else None
        if milliseconds is None or option[0].upper() != "TIMEOUT":
            raise _malformed("FETCH n FROM cursor WITH (TIMEOUT = '1 s')", sql)
        timeout_s = milliseconds / 1000
    middle = [word for word in words[1 : end - 1] if word not in ("FROM", "IN", "FORWARD", "NEXT")]
    count = middle[0] if middle else "1"
    if len(middle) > 1 or not (count == "ALL" or count.isdigit()):
        raise PenstockError(
            "CLI-6229",
            "a cursor is read forward only, by a number of rows or ALL",
            span=Span(0, len(sql)),
            hint="write FETCH FORWARD 100 FROM cursor",
            sqlstate="0A000",
        )
    name = tokens[end - 1]
    cursor = cursors.find(unquoted(name.text), Span(name.start, name.end))
    most = None if count == "ALL" else int(count)
    return FetchStatement(cursor, most, timeout_s, words[0] == "MOVE")


def close(sql: str, tokens: list[SqlToken], cursors: DeclaredCursors) -> CommandStatement:
    """Return CLOSE of one cursor or ALL."""
    if len(tokens) != 2:
        raise _malformed("CLOSE cursor, or CLOSE ALL", sql)
    name = None if tokens[1].upper == "ALL" else unquoted(tokens[1].text)
    span = Span(tokens[1].start, tokens[1].end)
    return command("CLOSE CURSOR", lambda: cursors.close(name, span))


def _malformed(form: str, sql: str) -> PenstockError:
    return PenstockError(
        "CLI-6229",
        "this statement about a cursor cannot be read",
        span=Span(0, len(sql)),
        hint=f"write {form}",
        sqlstate="42601",
    )
