"""Errors as answers of the API: a status of HTTP, and a JSON object with code, message and hint."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from penstock.catalog.errors import Kind, PenstockError

UNAUTHENTICATED, FORBIDDEN, NOT_FOUND = "CLI-6210", "CLI-6211", "CLI-6030"
BAD_REQUEST, FOREIGN_ORIGIN, TOO_LARGE, TOO_MANY = "CLI-6250", "CLI-6251", "CLI-6252", "CLI-6253"

_STATUS = {
    UNAUTHENTICATED: 401,
    FORBIDDEN: 403,
    FOREIGN_ORIGIN: 403,
    NOT_FOUND: 404,
    TOO_LARGE: 413,
    TOO_MANY: 429,
}


def json_error(error: PenstockError) -> dict[str, Any]:
    """Return an error as JSON: what its text says, without a traceback."""
    return {**error.as_dict(), "text": error.render()}


def error_response(error: PenstockError) -> JSONResponse:
    """Return the answer for an error."""
    default = 500 if error.kind is Kind.INTERNAL else 400
    headers = {"WWW-Authenticate": "Bearer"} if error.code == UNAUTHENTICATED else None
    return JSONResponse({"error": json_error(error)}, _STATUS.get(error.code, default), headers=headers)


def internal_error() -> PenstockError:
    """Return the error for a fault of penstock: the answer says no more, the log has the rest."""
    message = "the request failed because of a fault of penstock"
    return PenstockError(
        "INT-9062", message, hint="the server's log has the cause", kind=Kind.INTERNAL, sqlstate="XX000"
    )


def refuse_role(what: str, role: str) -> PenstockError:
    """Return the error for a principal whose role does not allow something."""
    return PenstockError(
        FORBIDDEN,
        f"your role does not allow {what}",
        hint=f"ask an administrator for the role {role}",
        sqlstate="42501",
    )
