"""The calls of Flight, each answered for the session of its client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import flight

from penstock.catalog.errors import PenstockError
from penstock.client.remote.protocol import STATEMENT, StatementAnswer, decode_request
from penstock.client.remote.uploads import UPLOAD, decode_upload
from penstock.client.results.row_buffer import tuples
from penstock.client.server.flight import catalog_rows, remote_actions, session_actions, sql_info
from penstock.client.server.flight.call_identity import NAME, CallIdentity
from penstock.client.server.flight.client_sessions import ClientSession, ClientSessions
from penstock.client.server.flight.flight_errors import flight_error
from penstock.client.server.flight.limits import FlightLimits
from penstock.client.server.flight.messages import pack, pb, unknown_command, unpack, unreadable
from penstock.client.server.flight.result_batches import DroppedStream
from penstock.client.server.flight.statements import BoundPrepared
from penstock.client.server.flight.uploads import Upload, ingest, limited


class FlightServer(flight.FlightServerBase):
    """Answers stock drivers and our own client. Each call runs in a thread of gRPC."""

    def __init__(self, location: str, sessions: ClientSessions, limits: FlightLimits, **options: Any) -> None:
        super().__init__(location, **options)
        self._clients = sessions
        self._limits = limits
        # of a relay: it knows whom the server sees as its peer
        self.client_of: Callable[[str], str] = lambda peer: peer

    # -- calls

    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        """Run a statement, or get a SELECT ready; return where its rows are."""
        return _answered(partial(self._flight_info, context, descriptor))

    def get_schema(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.SchemaResult:
        """Return the columns of a statement without running it."""
        return _answered(partial(self._schema, context, descriptor))

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """Return the rows of a ticket."""
        return _answered(partial(self._rows, context, ticket.ticket))

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Bind values, run an update, or take an upload."""
        answer = _answered(partial(self._put, context, descriptor, reader))
        writer.write(pa.py_buffer(answer))

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterator[flight.Result]:
        """Answer an action."""
        answer = _answered(partial(self._act, context, action))
        return iter([] if answer is None else [flight.Result(pa.py_buffer(answer))])

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        """Return the names of the actions."""
        return [(name, "Flight SQL") for name in (*session_actions.ACTIONS, session_actions.CLOSE_SESSION)]

    # -- what answers them

    def _flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        command = descriptor.command or b""
        if command.startswith(STATEMENT):
            return self._run_for_own_client(context, descriptor, command)
        message: Any = unpack(command)
        name = message.DESCRIPTOR.name
        session = self._session(context)
        if name in _METADATA:
            # the command itself is the ticket: the rows are computed when they are fetched
            return _info(_METADATA[name](session, message).schema, descriptor, command)
        prepared = _prepared(session, message)
        handle, schema = session.statements.start(prepared, context.is_cancelled)
        return _info(schema, descriptor, pack(pb.TicketStatementQuery(statement_handle=handle)))

    def _run_for_own_client(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor, command: bytes
    ) -> flight.FlightInfo:
        try:
            request = decode_request(command)
        except (ValueError, KeyError) as error:
            raise unreadable("statement") from error
        handle, result = self._session(context).statements.run(request, context.is_cancelled)
        job = None if result.job is None else (result.job.job_id, result.job.name)
        answer = StatementAnswer(result.shape, result.note, result.rowcount, job, result.ended)
        ticket = pack(pb.TicketStatementQuery(statement_handle=handle))
        return _info(result.stream_schema, descriptor, ticket, answer.encoded())

    def _schema(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.SchemaResult:
        message: Any = unpack(descriptor.command or b"")
        session = self._session(context)
        if message.DESCRIPTOR.name in _METADATA:
            return flight.SchemaResult(_METADATA[message.DESCRIPTOR.name](session, message).schema)
        schema = _prepared(session, message).statement.schema
        return flight.SchemaResult(pa.schema([]) if schema is None else schema.to_arrow())

    def _rows(self, context: flight.ServerCallContext, ticket: bytes) -> flight.FlightDataStream:
        message: Any = unpack(ticket)
        session = self._session(context)
        metadata = _METADATA.get(message.DESCRIPTOR.name)
        if metadata is not None:
            return flight.RecordBatchStream(metadata(session, message))
        if message.DESCRIPTOR.name != "TicketStatementQuery":
            raise unknown_command(message.DESCRIPTOR.name)
        schema, batches = session.statements.read(message.statement_handle, context.is_cancelled)
        return flight.GeneratorStream(schema, DroppedStream(batches))

    def _put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
    ) -> bytes:
        command = descriptor.command or b""
        if command.startswith(UPLOAD):
            return self._register(self._session(context), command, reader)
        message: Any = unpack(command)
        session = self._session(context)
        match message.DESCRIPTOR.name:
            case "CommandPreparedStatementQuery":
                prepared = session.statements.prepared(message.prepared_statement_handle)
                prepared.rows = self._values(reader)
                handle = message.prepared_statement_handle
                return pb.DoPutPreparedStatementResult(prepared_statement_handle=handle).SerializeToString()
            case "CommandPreparedStatementUpdate":
                prepared = session.statements.prepared(message.prepared_statement_handle)
                # values that were bound before count where the update brings none
                bound = BoundPrepared(prepared.statement, self._values(reader) or prepared.rows)
                count = session.statements.update(bound, context.is_cancelled)
            case "CommandStatementUpdate":
                count = session.statements.update(_prepared(session, message), context.is_cancelled)
            case "CommandStatementIngest":
                batches = (chunk.data for chunk in reader if chunk.data is not None)
                upload = Upload(message, reader.schema, batches, context.is_cancelled)
                count = ingest(session, upload, self._limits)
            case name:
                raise unknown_command(name)
        return pb.DoPutUpdateResult(record_count=count).SerializeToString()

    def _register(
        self, session: ClientSession, command: bytes, reader: flight.MetadataRecordBatchReader
    ) -> bytes:
        try:
            words = dict(decode_upload(command))
        except (ValueError, KeyError) as error:
            raise unreadable("upload") from error
        batches = limited((chunk.data for chunk in reader), self._limits.upload_bytes)
        session.engine.register(words.pop("name"), pa.Table.from_batches(batches, reader.schema), **words)
        return b""

    def _values(self, reader: flight.MetadataRecordBatchReader) -> list[tuple[Any, ...]]:
        """Return rows of values; CLI-6235 for too many bytes."""
        rows: list[tuple[Any, ...]] = []
        size = 0
        for chunk in reader:
            size += chunk.data.nbytes
            if size > self._limits.upload_bytes:
                message = f"values of a statement have at most {self._limits.upload_bytes:,} bytes"
                raise PenstockError("CLI-6235", message, hint="upload the rows as a table", sqlstate="53200")
            # columns without rows are no values
            rows += tuples(chunk.data)
        return rows

    def _act(self, context: flight.ServerCallContext, action: flight.Action) -> bytes | None:
        body = action.body.to_pybytes()
        # our own client opens its session by an action
        if action.type == remote_actions.OPEN_SESSION:
            return remote_actions.open_session(self._clients, _identity(context), self._peer(context), body)
        session = self._session(context)
        if action.type == session_actions.CLOSE_SESSION:
            self._clients.close(session)
            return session_actions.closed_session()
        if action.type in session_actions.REFUSED_ACTIONS:
            raise session_actions.no_transactions()
        answer = session_actions.ACTIONS.get(action.type)
        if answer is not None:
            return answer(session, body)
        own = remote_actions.ACTIONS.get(action.type)
        if own is None:
            raise unknown_command(f"action {action.type}")
        return own(session, body, context.is_cancelled)

    def _session(self, context: flight.ServerCallContext) -> ClientSession:
        return self._clients.of_call(_identity(context), self._peer(context))

    def _peer(self, context: flight.ServerCallContext) -> str:
        """Return the address of a client whose call was authenticated."""
        return self.client_of(context.peer())


def _answered(call: Callable[[], Any]) -> Any:
    """Return what a call returns; its errors travel."""
    try:
        return call()
    except Exception as error:
        raise flight_error(error) from error


def _identity(context: flight.ServerCallContext) -> CallIdentity:
    return context.get_middleware(NAME).identity


def _prepared(session: ClientSession, message: Any) -> BoundPrepared:
    """Return the statement of a command that has its text or the handle of a prepared one."""
    match message.DESCRIPTOR.name:
        case "CommandStatementQuery" | "CommandStatementUpdate":
            if message.HasField("transaction_id") and message.transaction_id:
                raise session_actions.no_transactions()
            return BoundPrepared(session.engine.prepare(message.query))
        case "CommandPreparedStatementQuery":
            return session.statements.prepared(message.prepared_statement_handle)
        case name:
            raise unknown_command(name)


def _info(
    schema: pa.Schema, descriptor: flight.FlightDescriptor, ticket: bytes, metadata: bytes = b""
) -> flight.FlightInfo:
    # no location: the rows are where this answer came from, through whatever proxy
    endpoint = flight.FlightEndpoint(ticket, [])
    return flight.FlightInfo(schema, descriptor, [endpoint], -1, -1, app_metadata=metadata)


def _empty(schema: pa.Schema) -> Callable[[ClientSession, Any], pa.Table]:
    return lambda session, message: pa.Table.from_batches([], schema)


_METADATA: dict[str, Callable[[ClientSession, Any], pa.Table]] = {
    "CommandGetCatalogs": lambda session, message: catalog_rows.catalogs(session.engine),
    "CommandGetDbSchemas": lambda session, message: catalog_rows.schemas(session.engine, message),
    "CommandGetTables": lambda session, message: catalog_rows.tables(session.engine, message),
    "CommandGetTableTypes": lambda session, message: catalog_rows.table_types(),
    "CommandGetPrimaryKeys": lambda session, message: catalog_rows.primary_keys(session.engine, message),
    "CommandGetExportedKeys": _empty(catalog_rows.FOREIGN_KEYS),
    "CommandGetImportedKeys": _empty(catalog_rows.FOREIGN_KEYS),
    "CommandGetCrossReference": _empty(catalog_rows.FOREIGN_KEYS),
    "CommandGetSqlInfo": lambda session, message: sql_info.sql_info(message.info),
    "CommandGetXdbcTypeInfo": lambda session, message: sql_info.xdbc_types(
        message.data_type if message.HasField("data_type") else None
    ),
}
