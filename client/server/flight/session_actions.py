"""Actions of Flight SQL: prepared statements, cancelling, and options of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import flight

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import to_arrow
from penstock.client.server.flight.client_sessions import ClientSession
from penstock.client.server.flight.messages import pack, parse, pb, schema_bytes, unpack, unreadable

CLOSE_SESSION = "CloseSession"
_NO_TRANSACTIONS = "every statement takes effect at once: connect with autocommit"


def create_prepared(session: ClientSession, body: bytes) -> bytes:
    """Prepare a statement; the answer has the types of its parameters and the columns of its rows."""
    request: Any = unpack(body)
    if request.HasField("transaction_id") and request.transaction_id:
        raise no_transactions()
    handle, statement = session.statements.prepare(request.query)
    parameters = pa.schema(
        [pa.field(str(number), to_arrow(kind)) for number, kind in enumerate(statement.parameters, 1)]
    )
    columns = pa.schema([]) if statement.schema is None else statement.schema.to_arrow()
    return pack(
        pb.ActionCreatePreparedStatementResult(
            prepared_statement_handle=handle,
            dataset_schema=schema_bytes(columns) if len(columns) else b"",
            parameter_schema=schema_bytes(parameters),
        )
    )


def close_prepared(session: ClientSession, body: bytes) -> None:
    """Forget a prepared statement."""
    request: Any = unpack(body)
    session.statements.close_prepared(request.prepared_statement_handle)


def cancel_query(session: ClientSession, body: bytes) -> bytes:
    """Stop a query by its FlightInfo, as drivers of before Flight 13 do."""
    request: Any = unpack(body)
    return pack(pb.ActionCancelQueryResult(result=_cancel(session, request.info)))


def cancel_flight_info(session: ClientSession, body: bytes) -> bytes:
    """Stop a query by its FlightInfo."""
    request = parse(pb.CancelFlightInfoRequest, body)
    # CancelFlightInfoResult has the same field, of the same values
    return pb.ActionCancelQueryResult(result=_cancel(session, request.info)).SerializeToString()


def _cancel(session: ClientSession, info: bytes) -> int:
    try:
        endpoints = flight.FlightInfo.deserialize(info).endpoints
    except (pa.ArrowException, ValueError) as error:
        raise unreadable("FlightInfo") from error
    tickets: list[Any] = [unpack(endpoint.ticket.ticket) for endpoint in endpoints]
    found = [session.statements.cancel_ticket(each.statement_handle) for each in tickets]
    kinds = pb.ActionCancelQueryResult
    return kinds.CANCEL_RESULT_CANCELLED if any(found) else kinds.CANCEL_RESULT_NOT_CANCELLABLE


def set_options(session: ClientSession, body: bytes) -> bytes:
    """Set settings; ``catalog`` and ``schema`` are the current catalog and database."""
    request = parse(pb.SetSessionOptionsRequest, body)
    errors = {}
    # the catalog first: a database is looked for in it
    for name in sorted(request.session_options, key=lambda name: name != "catalog"):
        try:
            _set_option(session, name, request.session_options[name])
        except PenstockError as error:
            kinds = pb.SetSessionOptionsResult
            unknown = error.code == "SQL-1401"
            errors[name] = kinds.Error(value=kinds.INVALID_NAME if unknown else kinds.INVALID_VALUE)
    return pb.SetSessionOptionsResult(errors=errors).SerializeToString()


def _set_option(session: ClientSession, name: str, option: Any) -> None:
    kind = option.WhichOneof("option_value")
    text = "" if kind is None else _option_text(getattr(option, kind))
    quoted = text.replace("'", "''")
    identifier = text.replace('"', '""')
    statements: dict[str, Callable[[], str]] = {
        "catalog": lambda: f'USE CATALOG "{identifier}"',
        "schema": lambda: f'USE "{identifier}"',
    }
    key = name.replace("'", "''")
    make = statements.get(name, lambda: f"RESET '{key}'" if kind is None else f"SET '{key}' = '{quoted}'")
    session.engine.execute(make())


def _option_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ",".join(value.values)


def get_options(session: ClientSession) -> bytes:
    """Return the settings that were set, and the current catalog and database."""
    engine = session.engine
    current = engine.catalog.current
    options = {"catalog": current.catalog, "schema": current.database}
    options |= {
        key: engine.settings.shown(key) for key, _ in engine.settings.items() if engine.settings.is_set(key)
    }
    values = {key: pb.SessionOptionValue(string_value=value) for key, value in options.items()}
    return pb.GetSessionOptionsResult(session_options=values).SerializeToString()


def closed_session() -> bytes:
    """Return the answer to CloseSession."""
    return pb.CloseSessionResult(status=pb.CloseSessionResult.CLOSED).SerializeToString()


def no_transactions() -> PenstockError:
    """Return CLI-6021 for a transaction."""
    return PenstockError("CLI-6021", "there are no transactions", hint=_NO_TRANSACTIONS, sqlstate="0A000")


ACTIONS: dict[str, Callable[[ClientSession, bytes], bytes | None]] = {
    "CreatePreparedStatement": create_prepared,
    "ClosePreparedStatement": close_prepared,
    "CancelQuery": cancel_query,
    "CancelFlightInfo": cancel_flight_info,
    "SetSessionOptions": set_options,
    "GetSessionOptions": lambda session, body: get_options(session),
}
"""By the name of the action; None: an answer without a message."""
REFUSED_ACTIONS = ("BeginTransaction", "EndTransaction", "BeginSavepoint", "EndSavepoint")
