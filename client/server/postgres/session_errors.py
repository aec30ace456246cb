"""Errors of the messages of one session."""

from __future__ import annotations

from penstock.catalog.errors import Kind, PenstockError, SourceText

MOST_OBJECTS = 10_000
"""Prepared statements and portals that one session may have."""


def cancelled() -> PenstockError:
    """Return the error of a statement that another connection has cancelled."""
    return PenstockError(
        "CLI-6261", "the statement was cancelled by its user", kind=Kind.EXTERNAL, sqlstate="57014"
    )


def timed_out(timeout_s: float) -> PenstockError:
    """Return the error of a statement that ran for longer than statement_timeout."""
    hint = "SET statement_timeout = 0 removes the limit"
    message = f"the statement took longer than statement_timeout allows, {timeout_s:g} s"
    return PenstockError("CLI-6261", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="57014")


def failed_transaction() -> PenstockError:
    """Return the error of a statement behind one that has failed, in one transaction block."""
    return PenstockError(
        "CLI-6262",
        "a statement of this transaction block has failed: the rest of it is not run",
        hint="send ROLLBACK; what ran before the error has taken effect",
        sqlstate="25P02",
    )


def already_exists(what: str, name: str) -> PenstockError:
    """Return the error of a name of a statement or portal that is taken."""
    hint = "close it first, or use the unnamed one"
    return PenstockError("CLI-6260", f'{what} "{name}" already exists', hint=hint, sqlstate="42P05")


def no_portal(name: str) -> PenstockError:
    """Return the error of a portal that is not there."""
    hint = "send Bind first; the end of a transaction closes portals"
    return PenstockError("CLI-6260", f'portal "{name}" does not exist', hint=hint, sqlstate="34000")


def too_many(what: str) -> PenstockError:
    """Return the error of a session that has as many statements or portals as it may."""
    hint = "close those that are not used: DEALLOCATE ALL closes every prepared statement"
    message = f"the session has {MOST_OBJECTS:,} {what}, which is the limit"
    return PenstockError("CLI-6260", message, hint=hint, sqlstate="53400")


def no_values() -> PenstockError:
    """Return the error of a statement with parameters in the simple protocol."""
    return PenstockError(
        "CLI-6260",
        "the statement has parameters, and the simple protocol sends no values",
        hint="write the values into the statement, or send it by the extended protocol",
        sqlstate="42P02",
    )


def moved(error: PenstockError, sql: str, offset: int) -> PenstockError:
    """Return an error of a statement with its position in the whole text."""
    if error.span is not None:
        error.span = error.span.shifted(offset)
        error.source = SourceText(sql).without_secrets()
    return error
