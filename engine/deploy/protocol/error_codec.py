"""Errors as sent between processes: every field a user sees, and nothing but text and numbers."""

from __future__ import annotations

from penstock.catalog.errors import Kind, PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.task.operator_chain import failure_in


@dataclass(frozen=True)
class SentError:
    """The fields of a ``PenstockError``, or, with ``errno``, of an ``OSError`` that storage raised."""

    code: str
    message: str
    detail: str | None
    hint: str | None
    span: Span | None
    kind: Kind
    retriable: bool
    sqlstate: str
    operator: str | None
    errno: int | None = None

    @classmethod
    def of(cls, cause: BaseException, where: str) -> SentError:
        """Return any exception in its encoded form. ``where`` names its origin when the exception itself does
        not.
        """
        # any exception becomes a PenstockError first, with a code and a kind
        error = failure_in(where, cause)
        # an OSError of storage is raised as an OSError again, with its errno
        errno = cause.errno if isinstance(cause, OSError) else None
        return cls(
            error.code,
            error.message,
            error.detail,
            error.hint,
            error.span,
            error.kind,
            error.retriable,
            error.sqlstate,
            error.operator,
            errno,
        )

    def raised(self) -> Exception:
        """Return the exception to raise in this process."""
        # an error of storage, as storage raised it
        if self.errno is not None:
            return OSError(self.errno, self.message)
        return PenstockError(
            self.code,
            self.message,
            detail=self.detail,
            hint=self.hint,
            span=self.span,
            kind=self.kind,
            retriable=self.retriable,
            sqlstate=self.sqlstate,
            operator=self.operator,
        )
