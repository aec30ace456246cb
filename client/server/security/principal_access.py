"""What the session of one client may do: its role, what the operator allows, and the audit of it."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.catalog.errors import PenstockError
from penstock.client.server.principal import Principal, PrincipalRole
from penstock.client.server.security.access_policy import AccessPolicy
from penstock.client.server.security.audit_log import AuditEvent, AuditLog
from penstock.client.server.security.statement_roles import check_role
from penstock.planner.statements.nodes import Statement


class PrincipalAccess:
    """The ``AccessControl`` of one session of a server. A client with the role ADMIN reaches every file and
    host. ``client`` is where it comes from.
    """

    def __init__(
        self, principal: Principal, policy: AccessPolicy, audit: AuditLog, client: str, session_id: str
    ) -> None:
        self._principal = principal
        self._policy = policy
        self._audit = audit
        self._client = client
        self._session_id = session_id

    def check_statement(self, node: Statement, text: str) -> None:
        """Raise CLI-6211 for a statement that the role does not include; write a line either way."""
        try:
            check_role(self._principal, node)
        except PenstockError as error:
            self._write(AuditEvent.STATEMENT_REFUSED, text, error.code)
            raise
        self._write(AuditEvent.STATEMENT, text)

    def check_options(self, connector: str, options: Mapping[str, str]) -> None:
        """Raise CLI-6216 for options that reach a file or host which the operator has not allowed."""
        if self._principal.may(PrincipalRole.ADMIN):
            return
        try:
            self._policy.check_table(connector, options)
        except PenstockError as error:
            self._write(AuditEvent.STATEMENT_REFUSED, f"connector {connector}", error.code)
            raise

    def check_path(self, key: str, path: str) -> None:
        """Raise CLI-6216 for a directory or URL that the operator has not allowed."""
        if self._principal.may(PrincipalRole.ADMIN):
            return
        try:
            self._policy.check_path(key, path)
        except PenstockError as error:
            self._write(AuditEvent.STATEMENT_REFUSED, f"{key} {path}", error.code)
            raise

    def _write(self, event: AuditEvent, text: str, code: str = "") -> None:
        self._audit.record(
            event, self._principal, self._client, session=self._session_id, text=text, code=code
        )
