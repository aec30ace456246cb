"""Statements that PostgreSQL's clients send around queries: transactions, SET, SHOW, DISCARD, DEALLOCATE."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from penstock.catalog.declared_settings import SETTINGS
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import STRING
from penstock.client.server.postgres.cursor_statements import DeclaredCursors
from penstock.client.server.postgres.executions import (
    CommandStatement,
    Execution,
    TableStatement,
    WireStatement,
    command,
)
from penstock.client.server.postgres.row_reader import Watch
from penstock.client.server.postgres.session_parameters import SessionParameters
from penstock.client.server.postgres.sql_words import SqlToken, unquoted

NO_ROLLBACK = "nothing is rolled back: each statement of the block has taken effect when it ran"
_NOTHING: dict[str, str] = {
    "LISTEN": "LISTEN",
    "UNLISTEN": "UNLISTEN",
    "SAVEPOINT": "SAVEPOINT",
    "RELEASE": "RELEASE",
    "LOCK": "LOCK TABLE",
    "CHECKPOINT": "CHECKPOINT",
}
"""Statements that are accepted and do nothing, with their tags."""
_OF_SEVERAL_WORDS = {"TRANSACTION ISOLATION LEVEL": "transaction_isolation", "TIME ZONE": "timezone"}


class ControlledSession(Protocol):
    """What control statements change in a session."""

    parameters: SessionParameters
    cursors: DeclaredCursors
    in_transaction: bool
    has_written: bool
    watch: Watch

    def forget_statements(self, name: str | None) -> None:
        """Forget a prepared statement, or all."""

    def report(self, name: str) -> None:
        """Tell the client the new value of a parameter that it follows."""

    def use(self, database: str) -> bool:
        """Make a database the current one; return whether it exists."""


def control_statement(sql: str, tokens: list[SqlToken], session: ControlledSession) -> WireStatement | None:
    """Return the statement if it is one of those, else None."""
    words = tuple(token.upper for token in tokens[:6])
    match words:
        # BEGIN STATEMENT SET is ours
        case ("BEGIN", "STATEMENT", *_):
            return None
        case ("BEGIN", *_) | ("START", "TRANSACTION", *_):
            tag = "BEGIN" if words[0] == "BEGIN" else "START TRANSACTION"
            return CommandStatement(lambda: _begin(session, tag))
        case ("COMMIT", *_) | ("END", *_):
            return CommandStatement(lambda: _end(session, "COMMIT"))
        # ROLLBACK TO SAVEPOINT keeps the block open
        case ("ROLLBACK", "TO", *_):
            return CommandStatement(lambda: Execution("ROLLBACK", notes=_rollback_notes(session)))
        case ("ROLLBACK", *_) | ("ABORT", *_):
            return CommandStatement(lambda: _end(session, "ROLLBACK"))
        case ("DISCARD", *_):
            return CommandStatement(lambda: _discard(session, words))
        case ("DEALLOCATE", *_):
            name = tokens[-1]
            every = name.upper == "ALL"
            return command(
                "DEALLOCATE ALL" if every else "DEALLOCATE",
                lambda: session.forget_statements(None if every else unquoted(name.text)),
            )
        case ("SET", *_):
            return _set(sql, tokens, session)
        case ("RESET", *_):
            return _reset(tokens, session)
        case ("SHOW", *_):
            return _show(tokens, session)
    nothing = _NOTHING.get(words[0]) if words else None
    return None if nothing is None else command(nothing)


def _begin(session: ControlledSession, tag: str) -> Execution:
    session.in_transaction, session.has_written = True, False
    return Execution(tag)


def _rollback_notes(session: ControlledSession) -> list[str]:
    return [NO_ROLLBACK] if session.has_written else []


def _end(session: ControlledSession, tag: str) -> Execution:
    notes = _rollback_notes(session) if tag == "ROLLBACK" else []
    session.cursors.end_transaction()
    session.in_transaction = session.has_written = False
    return Execution(tag, notes=notes)


def _discard(session: ControlledSession, words: tuple[str, ...]) -> Execution:
    what = words[1] if len(words) > 1 else "ALL"
    if what == "ALL":
        session.cursors.close(None)
        session.forget_statements(None)
        session.parameters.reset(None)
    return Execution(f"DISCARD {what}")


def _set(sql: str, tokens: list[SqlToken], session: ControlledSession) -> WireStatement | None:
    """Return SET name = value, with SESSION or LOCAL before it; None for a setting of ours."""
    rest = tokens[1:]
    if rest and rest[0].upper in ("SESSION", "LOCAL") and len(rest) > 1:
        rest = rest[1:]
    words = [token.upper for token in rest]
    # SET 'key' = 'value' and SET parallelism.default = 2 are ours
    name_end = next((i for i, word in enumerate(words) if word in ("=", "TO")), len(words))
    name = "".join(token.text for token in rest[:name_end])
    if not rest or rest[0].kind == "string" or name.lower() in SETTINGS or "." in name:
        return None
    if words[:1] in (["TRANSACTION"], ["CHARACTERISTICS"]):
        return command("SET")
    if words[:2] == ["TIME", "ZONE"]:
        name, values = "timezone", rest[2:]
    # SET NAMES 'utf8', SET ROLE none
    elif words[0] in ("NAMES", "ROLE") and name_end == len(words):
        name, values = {"NAMES": "client_encoding"}.get(words[0], "role"), rest[1:]
    else:
        values = rest[name_end + 1 :]
    if not values:
        raise PenstockError(
            "CLI-6227",
            "SET names a parameter and no value",
            span=Span(0, len(sql)),
            hint="write SET name = value, or SET 'key' = 'value' for a setting of penstock",
            sqlstate="42601",
        )
    shown = ", ".join(_value(token) for token in values if token.text != ",")
    if [token.upper for token in values] == ["DEFAULT"]:
        return command("SET", lambda: session.parameters.reset(name), lambda: session.report(name))
    return command("SET", lambda: _change(session, name, shown, values), lambda: session.report(name))


def _value(token: SqlToken) -> str:
    return unquoted(token.text) if token.kind in ("string", "quoted") else token.text


def _change(session: ControlledSession, name: str, shown: str, values: list[SqlToken]) -> None:
    session.parameters.set(name, shown)
    if name.lower() == "search_path":
        # the first database that exists is the current one, as the first schema is
        for token in values:
            if token.text != "," and session.use(unquoted(token.text)):
                break


def _reset(tokens: list[SqlToken], session: ControlledSession) -> WireStatement | None:
    name = "".join(token.text for token in tokens[1:])
    if len(tokens) < 2 or tokens[1].kind == "string" or "." in name or name.lower() in SETTINGS:
        return None
    chosen = None if name.upper() == "ALL" else name
    return command("RESET", lambda: session.parameters.reset(chosen))


def _show(tokens: list[SqlToken], session: ControlledSession) -> WireStatement | None:
    """Return SHOW of a parameter; None for SHOW TABLES and the like, which are ours."""
    words = [token.upper for token in tokens[1:]]
    if words == ["ALL"]:
        schema = Schema(tuple(Field(name, STRING) for name in ("name", "setting")))
        columns = zip(*session.parameters.all(), strict=True)
        table = pa.table([pa.array(column, pa.string()) for column in columns], names=["name", "setting"])
        return TableStatement(schema, lambda values: table, session.watch, "SHOW")
    name = _OF_SEVERAL_WORDS.get(" ".join(words))
    if name is None and len(words) != 1:
        return None
    name = name or unquoted(tokens[1].text)
    try:
        value = session.parameters.get(name)
    except PenstockError:
        # SHOW TABLES, SHOW JOBS
        return None
    schema = Schema((Field(name, STRING),))
    shown = pa.table([pa.array([value], pa.string())], names=[name])
    return TableStatement(schema, lambda values: shown, session.watch, "SHOW")
