"""What a test file declares: the script under test, and tests of given tables and expected rows."""

from __future__ import annotations

from pathlib import Path

from penstock.catalog.errors import PenstockError, SourceText, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.client.statements.dispatch import LocatedStatement, parse_statements
from penstock.planner.parser.query_parser import parse_query
from penstock.planner.parser.scanner import check_text, scan
from penstock.planner.statements.nodes import Name, Query
from penstock.planner.statements.script import split_script
from penstock.repl.launch.script_runner import read_script

SUFFIXES = (".test.sql", "_test.sql")
_SYNTAX = "CLI-6180"
# a clause of TEST ends where one of these begins, outside of parentheses
_CLAUSES = ("GIVEN", "EXPECT")


@dataclass(frozen=True)
class TableInput:
    """Rows of one table. ``pieces``: VALUES queries, each with the watermark that follows its rows, as a
    query of one row, or None.
    """

    table: Name
    columns: tuple[Name, ...]
    pieces: tuple[tuple[Query, Query | None], ...]


@dataclass(frozen=True)
class Expect:
    """What a test expects. ``target``: a table that the script fills, a view, a query, or None for the
    script's only query; ``rows`` None: no rows.
    """

    target: Name | Query | None
    columns: tuple[Name, ...]
    rows: Query | None
    span: Span
    changes: bool = False
    ordered: bool = False


@dataclass(frozen=True)
class SqlTest:
    """One TEST statement: ``offset`` is where it starts in ``source``; spans are relative to it."""

    name: str
    given: tuple[TableInput, ...]
    expected: tuple[Expect, ...]
    source: SourceText
    offset: int

    @property
    def line(self) -> int:
        """The line of the file it begins on."""
        return self.source.position(self.offset)[0]


@dataclass(frozen=True)
class SqlTestFile:
    """A test file: ``statements`` are those of the script under test, then those of the file itself."""

    name: str
    statements: tuple[LocatedStatement, ...]
    tests: tuple[SqlTest, ...]


def read_test_file(name: str) -> SqlTestFile:
    """Return the tests of a file and the statements of its script. The script is the one that SCRIPT names,
    relative to the file, or else the .sql file of the same name beside it. Raises what is wrong, with its
    position.
    """
    text = read_script(name)
    script, own, tests = _script_beside(name), [], []
    for ordinal, (start, end) in enumerate(split_script(text), 1):
        source, piece = SourceText(text, name, ordinal), text[start:end]
        word = next((piece[first:last].upper() for _, first, last in scan(piece)), "")
        try:
            if word == "TEST":
                tests.append(_Reader(piece).test(source, start))
            elif word == "SCRIPT":
                script = _Reader(piece).script(name)
            else:
                own += [
                    LocatedStatement(one.node, one.text, source, start) for one in parse_statements(piece)
                ]
        except PenstockError as error:
            # a statement of its own was parsed as a text of its own: its error belongs into the file
            error.source = None if word not in ("TEST", "SCRIPT") else error.source
            raise error.with_source(source, start) from None
    if not tests:
        hint = "write TEST 'name' GIVEN table VALUES (..) EXPECT VALUES (..);"
        raise PenstockError("CLI-6183", f"{name} has no TEST", hint=hint)
    under_test = [] if script is None else parse_statements(read_script(script), script)
    return SqlTestFile(name, (*under_test, *own), tuple(tests))


def _script_beside(name: str) -> str | None:
    for suffix in SUFFIXES:
        beside = Path(name.removesuffix(suffix) + ".sql")
        if name.endswith(suffix) and beside.is_file():
            return str(beside)
    return None


class _Reader:
    """Reads one TEST or SCRIPT statement, token by token."""

    def __init__(self, text: str) -> None:
        check_text(text)
        self._text = text
        self._tokens = list(scan(text))
        self._at = 0

    def script(self, file: str) -> str:
        """Return the path that SCRIPT names."""
        self._at = 1
        span = self._span()
        path = Path(file).parent / self._string("SCRIPT takes a path in quotes, such as SCRIPT 'job.sql'")
        self._end()
        if not path.is_file():
            hint = "the path is relative to the test file"
            raise PenstockError("CLI-6131", f"cannot read {path}: no such file", span=span, hint=hint)
        return str(path)

    def test(self, source: SourceText, offset: int) -> SqlTest:
        """Return what TEST declares."""
        self._at = 1
        name = self._string("a test has a name in quotes: TEST 'late rows are dropped' GIVEN ..")
        given, expected = [], []
        while self._accept("GIVEN"):
            given.append(self._input())
        while self._accept("EXPECT"):
            expected.append(self._expect())
        if not expected:
            raise self._error("GIVEN or EXPECT is missing", "a test ends with EXPECT VALUES (..) or NO ROWS")
        self._end()
        return SqlTest(name, tuple(given), tuple(expected), source, offset)

    def _input(self) -> TableInput:
        table, columns = self._name(), self._columns()
        pieces: list[tuple[Query, Query | None]] = []
        if self._accept("NO", "ROWS"):
            return TableInput(table, columns, ())
        while self._word() == "VALUES":
            rows = self._values()
            pieces.append((rows, self._watermark() if self._accept("WATERMARK") else None))
        if not pieces:
            raise self._error("the rows are missing", "write VALUES (..), (..) or NO ROWS")
        return TableInput(table, columns, tuple(pieces))

    def _expect(self) -> Expect:
        first = self._span()
        target: Name | Query | None = None
        if self._word() == "(" and self._word(1) in ("SELECT", "WITH"):
            target = self._query_in_parentheses()
        elif self._word() not in ("VALUES", "NO", "CHANGES", "IN", "("):
            target = self._name()
        changes, ordered = self._accept("CHANGES"), self._accept("IN", "ORDER")
        # changes come in an order; several inputs may be read in any
        ordered = ordered or (changes and not self._accept("IN", "ANY", "ORDER"))
        columns = self._columns()
        if self._accept("NO", "ROWS"):
            return Expect(target, columns, None, first, changes, ordered)
        if self._word() != "VALUES":
            raise self._error("the expected rows are missing", "write VALUES (..), (..) or NO ROWS")
        return Expect(target, columns, self._values(), first, changes, ordered)

    def _values(self) -> Query:
        start = self._tokens[self._at][1]
        self._at += 1
        # a row in parentheses, and further ones behind commas
        while True:
            if self._word() != "(":
                raise self._error("a row in parentheses is missing", "write VALUES (1, 'a'), (2, 'b')")
            self._skip_parentheses()
            if not self._accept(","):
                break
        return self._query(start, self._tokens[self._at - 1][2])

    def _watermark(self) -> Query:
        if self._word() == "TIMESTAMP":
            self._at += 1
        span = self._span()
        self._string("write WATERMARK '2026-01-01 12:00:00'")
        # read as VALUES ('..'), with the literal where it is, so that a caret stands under it
        start = span.start - len("VALUES (")
        filled = " " * start + "VALUES (" + self._text[span.start : span.end] + ")"
        return Query(filled[start:], parse_query(filled, start), span=span)

    def _query_in_parentheses(self) -> Query:
        start = self._tokens[self._at + 1][1]
        self._skip_parentheses()
        return self._query(start, self._tokens[self._at - 2][2])

    def _query(self, start: int, end: int) -> Query:
        return Query(self._text[start:end], parse_query(self._text[:end], start), span=Span(start, end))

    def _skip_parentheses(self) -> None:
        depth = 0
        while self._at < len(self._tokens):
            depth += {"(": 1, ")": -1}.get(self._word(), 0)
            self._at += 1
            if depth == 0:
                return
        raise self._error("a closing parenthesis is missing", "write ) behind the row")

    def _columns(self) -> tuple[Name, ...]:
        if not self._accept("("):
            return ()
        columns = [self._name()]
        while self._accept(","):
            columns.append(self._name())
        if not self._accept(")"):
            raise self._error("a column list ends with )", "write (a, b) VALUES (1, 2)")
        return tuple(columns)

    def _name(self) -> Name:
        parts, first = [], self._span()
        while True:
            kind, start, end = self._token()
            if kind not in ("word", "quoted") or self._word() in _CLAUSES:
                raise self._error("a name is missing", "write the name of a table or column")
            parts.append(self._text[start:end].strip('`"'))
            self._at += 1
            if not self._accept("."):
                return Name(".".join(parts), Span(first.start, end))

    def _string(self, hint: str) -> str:
        kind, start, end = self._token()
        if kind != "string":
            raise self._error("a text in single quotes is missing", hint)
        self._at += 1
        return self._text[start + 1 : end - 1].replace("''", "'")

    def _end(self) -> None:
        if self._at < len(self._tokens):
            hint = "the order is: TEST 'name' GIVEN .. EXPECT ..; a semicolon ends a test"
            raise self._error(f"{self._word()} is not expected here", hint)

    def _accept(self, *words: str) -> bool:
        if all(self._word(place) == word for place, word in enumerate(words)):
            self._at += len(words)
            return True
        return False

    def _token(self) -> tuple[str, int, int]:
        end = len(self._text)
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", end, end + 1)

    def _word(self, ahead: int = 0) -> str:
        if self._at + ahead >= len(self._tokens):
            return ""
        _, start, end = self._tokens[self._at + ahead]
        return self._text[start:end].upper()

    def _span(self) -> Span:
        _, start, end = self._token()
        return Span(start, end)

    def _error(self, message: str, hint: str) -> PenstockError:
        return PenstockError(_SYNTAX, message, span=self._span(), hint=hint, sqlstate="42601")
