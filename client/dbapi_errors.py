"""The ten exceptions of PEP 249, each carrying what the engine's error says, and which of them an error
becomes.
"""

from __future__ import annotations

from penstock.catalog.errors import Kind, PenstockError, SourceText, Span


class Warning(Exception):  # the name PEP 249 asks for
    """An important warning."""


# base of all errors a client sees, with code, span, line, column, hint, kind and sqlstate; the Table API
# raises it plain
Error = PenstockError


class InterfaceError(Error):
    """The client was used wrongly: a closed cursor, a fetch before execute."""


class NoResultError(InterfaceError, AttributeError):
    """A property of a result is read where there is no result. An AttributeError too, for ``hasattr``."""


class DatabaseError(Error):
    """Base of errors that come from the engine."""


class DataError(DatabaseError):
    """A value could not be computed or read."""


class OperationalError(DatabaseError):
    """The outside world failed: a file, a connection, a timeout."""


class IntegrityError(DatabaseError):
    """A promise about the data was broken."""


class InternalError(DatabaseError):
    """A bug of ours."""


class ProgrammingError(DatabaseError):
    """The statement is wrong."""


class NotSupportedError(DatabaseError):
    """The statement asks for what is not there."""


_CONNECTION = ("08001", "08003", "08006", "08P01")


def class_of(error: PenstockError) -> type[Error]:
    """Return the PEP 249 class an engine's error belongs to."""
    # first: a bug of ours is InternalError whatever SQLSTATE it has
    if error.kind is Kind.INTERNAL:
        return InternalError
    # class 0A: feature not supported
    if error.sqlstate.startswith("0A"):
        return NotSupportedError
    # class 23: integrity constraint violation
    if error.sqlstate.startswith("23"):
        return IntegrityError
    # memory was short; somebody stopped it; a server was lost, or does not know this client
    if error.sqlstate.startswith(("53", "57", "28")) or error.sqlstate in _CONNECTION:
        return OperationalError
    # not permitted
    if error.sqlstate == "42501":
        return ProgrammingError
    # class 22: data exception
    if error.code.startswith(("RUN-2", "DAT-")) or error.sqlstate.startswith("22"):
        return DataError
    if error.code.startswith("CLI-"):
        return InterfaceError
    # a file, a connection, another system
    if error.kind is Kind.EXTERNAL:
        return OperationalError
    return ProgrammingError


def client_error(error: PenstockError) -> Error:
    """Return an engine's error as the exception a client raises, no secret in its causes; one that is
    already is returned as it is.
    """
    error.without_secret_causes()
    if isinstance(error, DatabaseError | InterfaceError):
        return error
    # copied field by field: the engine raises none of the classes of PEP 249 itself
    made = class_of(error)(
        error.code,
        error.message,
        detail=error.detail,
        hint=error.hint,
        span=error.span,
        source=error.source,
        kind=error.kind,
        retriable=error.retriable,
        sqlstate=error.sqlstate,
        operator=error.operator,
    )
    made.__cause__ = error
    return made


__all__ = [
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "PenstockError",
    "ProgrammingError",
    "SourceText",
    "Span",
    "Warning",
]


for _error in (Warning, Error, *Error.__subclasses__(), *DatabaseError.__subclasses__()):
    _error.__module__ = "penstock"  # what a traceback says, and what a program imports
