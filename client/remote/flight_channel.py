"""The connection to a server: calls of Flight, and their failures as our errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import flight

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.remote.protocol import (
    SESSION_HEADER,
    VERSION,
    VERSION_HEADER,
    decode_words,
    encode_words,
)
from penstock.client.remote.server_url import ServerUrl
from penstock.client.remote.wire_errors import WireError, decode_error

Locate = Callable[[WireError], PenstockError]
"""Makes the error to raise of one that was sent, with its position in the text that the client has."""


def plain_error(error: WireError) -> PenstockError:
    """Return an error without a text."""
    return error.raised()


class FlightChannel:
    """Calls one server. Every method may be called from any thread. Nothing is sent twice: a call whose
    answer was lost may have run.
    """

    def __init__(self, url: ServerUrl) -> None:
        self.url = url
        self._client = flight.FlightClient(
            url.location, tls_root_certs=url.certificate, generic_options=_RECONNECT
        )
        self._headers: list[tuple[bytes, bytes]] = [(VERSION_HEADER.encode(), VERSION.encode())]
        self._is_open = False

    def open(self, settings: Mapping[str, str]) -> None:
        """Authenticate and open a session. CLI-6241 when nothing answers, CLI-6210 for a client that is not
        known.
        """
        with self.failures(plain_error):
            if self.url.token is not None:
                self._headers.append((b"authorization", f"Bearer {self.url.token}".encode()))
            elif self.url.user is not None:
                name, password = self.url.user, self.url.password or ""
                self._headers.append(self._client.authenticate_basic_token(name, password))
        answer = self.action("penstock.open-session", {"settings": dict(settings)})
        self._headers.append((SESSION_HEADER.encode(), str(answer["session"]).encode()))
        self._is_open = True

    def action(self, name: str, words: Mapping[str, Any]) -> dict[str, Any]:
        """Run an action whose answer is JSON."""
        return decode_words(self.action_bytes(name, encode_words(words)))

    def action_bytes(self, name: str, body: bytes) -> bytes:
        """Run an action and return its answer."""
        with self.failures(plain_error):
            results = list(self._client.do_action(flight.Action(name, body), self._options()))
        return results[0].body.to_pybytes() if results else b""

    def flight_info(self, command: bytes, locate: Locate) -> flight.FlightInfo:
        """Run the statement of a command."""
        with self.failures(locate):
            descriptor = flight.FlightDescriptor.for_command(command)
            return self._client.get_flight_info(descriptor, self._options())

    def read(self, ticket: flight.Ticket, locate: Locate) -> flight.FlightStreamReader:
        """Return the stream of a ticket."""
        with self.failures(locate):
            return self._client.do_get(ticket, self._options())

    def upload(self, command: bytes, rows: pa.Table) -> None:
        """Send rows."""
        with self.failures(plain_error):
            descriptor = flight.FlightDescriptor.for_command(command)
            writer, _ = self._client.do_put(descriptor, rows.schema, self._options())
            with writer:
                writer.write_table(rows, max_chunksize=_UPLOAD_ROWS)

    def close(self) -> None:
        """Close the connection; the server stops what it reads for it."""
        self._client.close()

    @contextmanager
    def failures(self, locate: Locate) -> Iterator[None]:
        """Raise failures of a call as our errors."""
        try:
            yield
        except (flight.FlightError, pa.ArrowException, OSError) as error:
            raise self._error(error, locate) from error

    def _error(self, error: BaseException, locate: Locate) -> PenstockError:
        sent = decode_error(bytes(getattr(error, "extra_info", b"") or b""))
        if sent is not None:
            return locate(sent)
        what = _first_line(error)
        if isinstance(error, flight.FlightUnavailableError) and not self._is_open:
            hint = "start it by penstock serve, or correct host and port"
            message = f"cannot connect to the server at {self.url.address}"
            return PenstockError(
                "CLI-6241",
                message,
                detail=what,
                hint=hint,
                kind=Kind.EXTERNAL,
                retriable=True,
                sqlstate="08001",
            )
        if isinstance(error, flight.FlightUnavailableError | flight.FlightTimedOutError | OSError):
            return PenstockError(
                "CLI-6242",
                f"the connection to the server at {self.url.address} was lost",
                detail=what,
                hint="connect again; whether the statement has run is not known, SHOW JOBS lists jobs",
                kind=Kind.EXTERNAL,
                sqlstate="08006",
            )
        if isinstance(error, flight.FlightCancelledError):
            message = "the statement was cancelled"
            return PenstockError("CLI-6237", message, kind=Kind.EXTERNAL, sqlstate="57014")
        return PenstockError(
            "CLI-6243",
            f"the server at {self.url.address} answered what this client does not understand",
            detail=what,
            hint="is it a server of penstock, of this version? penstock --version",
            kind=Kind.EXTERNAL,
            sqlstate="08P01",
        )

    def _options(self) -> flight.FlightCallOptions:
        return flight.FlightCallOptions(headers=self._headers)


_RECONNECT = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 2_000)]
"""How soon a lost server is looked for again: gRPC itself waits up to two minutes."""
_UPLOAD_ROWS = 65_536  # of one message


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
