"""One call of the API, and the declaration of what can be called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import PenstockError
from penstock.client.server.principal import PrincipalRole
from penstock.client.server.web.error_response import BAD_REQUEST, refuse_role

if TYPE_CHECKING:
    from penstock.client.server.server_sessions import ServerSession
    from penstock.client.server.web.limits import WebLimits
    from penstock.client.session import Session


@dataclass(frozen=True)
class ApiCall:
    """A call as a handler sees it: the session it runs in, the parts of its path, and its JSON body."""

    session: ServerSession
    path: Mapping[str, str]
    body: Mapping[str, Any]
    limits: WebLimits

    @property
    def engine(self) -> Session:
        """The session of the engine."""
        return self.session.connection.session

    def require(self, role: PrincipalRole, what: str) -> None:
        """Raise CLI-6211 when the client's role does not include ``role``."""
        if not self.session.principal.may(role):
            raise refuse_role(what, role)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text of the body; CLI-6250 for a missing one without a default, and for another type."""
        value = self.body.get(name, default)
        if not isinstance(value, str):
            raise bad_request(f"the body has no text '{name}'")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """Return a positive number of the body, as ``text`` does."""
        value = self.body.get(name, default)
        # True is an int of Python
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise bad_request(f"the body has no positive number '{name}'")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean of the body, False where it has none."""
        value = self.body.get(name, False)
        if not isinstance(value, bool):
            raise bad_request(f"'{name}' is true or false")
        return value


def bad_request(message: str) -> PenstockError:
    """Return the error for a request that does not have what its route needs."""
    hint = "GET /api/v1/openapi.json describes what each route takes"
    return PenstockError(BAD_REQUEST, message, hint=hint, sqlstate="22023")


@dataclass(frozen=True)
class BodyField:
    """A field of a request's body: its type in JSON, and what it is."""

    name: str
    kind: str
    help: str
    required: bool = True


@dataclass(frozen=True)
class ApiRoute:
    """One route under ``/api/v1``. ``handler`` runs in a thread and returns JSON, or with ``streams`` an
    iterator of events.
    """

    method: str
    path: str
    name: str
    help: str
    handler: Callable[[ApiCall], Any]
    fields: tuple[BodyField, ...] = ()
    streams: bool = False
