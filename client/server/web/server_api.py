"""The API of the server itself: who is signed in, and the tables of the process."""

from __future__ import annotations

from typing import Any

import penstock
from penstock.catalog.system_tables import SYSTEM, SYSTEM_TABLES
from penstock.client.server.principal import PrincipalRole
from penstock.client.server.web.api_call import ApiCall, ApiRoute
from penstock.client.server.web.json_rows import json_columns, json_schema


def show_status(call: ApiCall) -> dict[str, Any]:
    """Return the version, and what the client may do."""
    principal = call.session.principal
    return {
        "version": penstock.__version__,
        "principal": principal.name,
        "role": str(principal.role),
        "may_run": principal.may(PrincipalRole.RUN),
        "session": call.session.session_id,
    }


def list_sessions(call: ApiCall) -> dict[str, Any]:
    """Return the open sessions: the rows of system.sessions."""
    rows = call.engine.state.system_tables.arrow_table("sessions")
    return {"columns": json_schema(SYSTEM_TABLES[f"{SYSTEM}.sessions"].schema), "data": json_columns(rows)}


SERVER_ROUTES = (
    ApiRoute("GET", "/status", "showStatus", "The version, and what the client may do.", show_status),
    ApiRoute("GET", "/sessions", "listSessions", "The open sessions, column by column.", list_sessions),
)
