"""Texts to statements: those of PostgreSQL's clients, queries of its catalog, and ours."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Schema
from penstock.catalog.types import DataType
from penstock.client.server.postgres.control_statements import control_statement
from penstock.client.server.postgres.copy_input import CopyInput
from penstock.client.server.postgres.copy_options import CopyOptions, CopyStatement, parse_copy
from penstock.client.server.postgres.cursor_statements import close, declare, fetch
from penstock.client.server.postgres.executions import (
    DirectStatement,
    Execution,
    QueryStatement,
    TableStatement,
    WireStatement,
)
from penstock.client.server.postgres.pg_catalog.catalog_queries import CatalogQueries
from penstock.client.server.postgres.sql_words import SqlToken, tokens_of
from penstock.client.server.postgres.wire_types import UNDECIDED, sql_type
from penstock.planner.parser.token_stream import QUERY_WORDS, TABLE_STATEMENTS

if TYPE_CHECKING:
    from penstock.client.server.postgres.wire_session import WireSession

_READS = frozenset({"SELECT", "SUBSCRIBE", "SHOW", "EXPLAIN", "DESCRIBE", "FETCH", "MOVE", "SET", "BEGIN"})

_MOST_KEPT, _LONGEST_KEPT = 64, 10_000
"""Point queries that a session keeps prepared, and the length of the longest."""


@dataclass
class CopyOutStatement:
    """COPY .. TO STDOUT: the rows of another statement."""

    inner: WireStatement
    options: CopyOptions
    parameters: Sequence[DataType] = ()
    schema: Schema | None = None

    def start(self, values: Sequence[object]) -> Execution:
        execution = self.inner.start(values)
        execution.tag, execution.copies = "COPY", self.options
        return execution


@dataclass
class CopyInStatement:
    """COPY .. FROM STDIN: its start gives what takes the rows."""

    copy: CopyStatement
    session: WireSession
    parameters: Sequence[DataType] = ()
    schema: Schema | None = None

    def start(self, values: Sequence[object]) -> Execution:
        return CopyInput(self.copy, self.session)


class StatementCompiler:
    """Compiles the statements of one session."""

    def __init__(self, session: WireSession, startup: dict[str, str]) -> None:
        self._session = session
        self._catalog = CatalogQueries(session, startup)
        self._kept: OrderedDict[tuple[str, tuple[int, ...]], QueryStatement] = OrderedDict()

    def compile(self, sql: str, oids: Sequence[int] | None) -> WireStatement:
        """Return a statement. ``oids`` are the types of its parameters; None runs it by the simple protocol,
        where nothing is described before. Errors have their position in ``sql``.
        """
        tokens = tokens_of(sql)
        word = tokens[0].upper if tokens else ""
        statement = control_statement(sql, tokens, self._session)
        if statement is not None:
            return statement
        match word:
            case "COPY":
                return self._copy(sql, tokens)
            case "DECLARE":
                return declare(sql, tokens, self._session.cursors, self._query_at)
            case "FETCH" | "MOVE":
                return fetch(sql, tokens, self._session.cursors)
            case "CLOSE":
                return close(sql, tokens, self._session.cursors)
        return self._query(sql, tokens, oids)

    def known(self, text: str, oids: tuple[int, ...]) -> QueryStatement | None:
        """Return the point query of a text that was compiled before and would be the same now."""
        kept = self._kept.get((text, oids))
        if kept is None or not kept.is_current:
            return None
        self._kept.move_to_end((text, oids))
        return kept

    def keep(self, text: str, oids: tuple[int, ...], statement: WireStatement) -> None:
        """Keep a statement if it is a point query: drivers prepare one text again and again."""
        if isinstance(statement, QueryStatement) and statement.is_point_query and len(text) <= _LONGEST_KEPT:
            self._kept[text, oids] = statement
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)

    def ends_transaction(self, sql: str) -> bool:
        """Return whether a statement may run in a transaction that has failed."""
        tokens = tokens_of(sql)
        return bool(tokens) and tokens[0].upper in ("ROLLBACK", "ABORT", "COMMIT", "END")

    def writes(self, tag: str) -> bool:
        """Return whether a statement of this tag changes something."""
        return tag.split(" ", maxsplit=1)[0] not in _READS

    def use(self, database: str) -> bool:
        """Make a database the current one; return whether it exists."""
        try:
            self._session.new_cursor().execute(f'USE "{database.replace(chr(34), chr(34) * 2)}"')
        except PenstockError:
            return False
        return True

    def _query(self, sql: str, tokens: list[SqlToken], oids: Sequence[int] | None) -> WireStatement:
        session = self._session
        if self._catalog.asks_for(tokens):
            return self._catalog.statement(sql, tokens, oids or ())
        if oids is None:
            kind = _kind(tokens)
            return DirectStatement(sql, kind, session.new_cursor, session)
        declared = [sql_type(oid) for oid in oids]
        types = [None if oid in UNDECIDED else kind for oid, kind in zip(oids, declared, strict=True)]
        prepared = session.server_session.connection.session.prepare(sql, types, declared)
        return QueryStatement(prepared, session.new_cursor, session)

    def _query_at(self, sql: str, offset: int) -> WireStatement:
        """Compile a query inside another statement, whose text it begins in at ``offset``."""
        try:
            statement = self._query(sql, tokens_of(sql), ())
        except PenstockError as error:
            if error.span is not None:
                error.span = error.span.shifted(offset)
            raise
        if statement.schema is None and not isinstance(statement, TableStatement):
            raise PenstockError(
                "CLI-6263",
                "only a statement that returns rows can be read piece by piece",
                hint="write SELECT or SUBSCRIBE here",
                sqlstate="42601",
            )
        return statement

    def _copy(self, sql: str, tokens: list[SqlToken]) -> WireStatement:
        copy = parse_copy(sql, tokens)
        if not copy.to_client:
            return CopyInStatement(copy, self._session)
        # errors about the SELECT that stands for a table are about the table
        return CopyOutStatement(self._query_at(copy.query, copy.offset), copy.options)


def _kind(tokens: list[SqlToken]) -> str:
    """Return the command tag of a statement by its first words, as a prepared one has it."""
    words = [token.upper for token in tokens[:3]]
    first = words[0] if words else ""
    if first in (*QUERY_WORDS, *TABLE_STATEMENTS, "TABLE", "("):
        return "SELECT"
    if first not in ("CREATE", "DROP", "ALTER"):
        return first
    # CREATE OR REPLACE VIEW, CREATE TEMPORARY TABLE
    named = [token.upper for token in tokens[1:5] if token.upper not in ("OR", "REPLACE", "TEMPORARY", "IF")]
    size = 2 if named[:1] == ["MATERIALIZED"] else 1
    return " ".join([first, *named[:size]])
