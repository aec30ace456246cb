"""One connection to a PostgreSQL server by libpq, in SQL or in the replication protocol. Messages of a copy
are taken without a Python object for each.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from os import dup
from socket import SHUT_RDWR, socket
from typing import Any

import numpy as np

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.connectors.database.database import failed
from penstock.engine.connectors.database.postgres import CONNECT_S, FOR_GOOD, REFUSED, SESSION, TRANSIENT
from penstock.engine.kernels.libpq_copy import (
    BROKEN,
    COUNT,
    ENDED,
    HELD,
    HELD_LENGTH,
    STATE_WORDS,
    USED,
    drain_copy,
)
from penstock.engine.kernels.pgoutput import COMMIT, XLOG_HEADER

_LOST = "08006"
# Bytes and messages taken at once. A larger message makes the buffer grow.
_BUFFER_BYTES = 4 << 20
_MESSAGES = 32_768
# So many bytes of an open transaction are worth decoding: small batches cost more than their rows.
_WORTH_BYTES = 1 << 20


@dataclass(frozen=True)
class Address:
    """Where a server is and who connects."""

    host: str
    port: int
    database: str
    username: str
    password: str | None

    @property
    def shown(self) -> str:
        """The address without a secret."""
        return f"{self.host}:{self.port}/{self.database}"


class CopyMessages:
    """The messages of one or more calls of ``PostgresLink.drain``: their bytes, and where each ends."""

    def __init__(self) -> None:
        self.data = np.zeros(_BUFFER_BYTES, np.uint8)
        self.ends = self._all_ends = np.zeros(_MESSAGES, np.int64)
        self.state = np.zeros(STATE_WORDS, np.int64)
        self.cell = np.zeros(1, np.int64)

    @property
    def count(self) -> int:
        """How many messages there are."""
        return int(self.state[COUNT])

    @property
    def used(self) -> int:
        """How many bytes they have."""
        return int(self.state[USED])

    @property
    def incomplete(self) -> bool:
        """Whether the last message is within a transaction, and few have come: more follow at once."""
        if not self.count or self.used > _WORTH_BYTES or self.state[HELD]:
            return False
        start = int(self.ends[self.count - 2]) if self.count > 1 else 0
        return bool(self.data[start] == ord("w") and self.data[start + XLOG_HEADER] != COMMIT)

    def limited(self, most: int | None) -> CopyMessages:
        """Take at most so many messages; ``None``: as many as there is space for."""
        self.ends = self._all_ends if most is None else self._all_ends[:most]
        return self

    def clear(self) -> None:
        """Forget the messages. A buffer that grew for a large one shrinks again."""
        self.state[USED] = self.state[COUNT] = 0
        if self.data.size > _BUFFER_BYTES and not self.state[HELD]:
            self.data = np.zeros(_BUFFER_BYTES, np.uint8)

    def grow(self) -> None:
        """Make space for the message that did not fit, if there is one."""
        needed = self.used + int(self.state[HELD_LENGTH])
        if self.state[HELD] and not self.used and needed > self.data.size:
            self.data = np.zeros(needed, np.uint8)


class PostgresLink:
    """A connection. It is used by one thread at a time, and any thread may close it: a statement that another
    thread waits for fails then. ``drain`` and ``send`` do not wait for the server.
    """

    def __init__(self, address: Address, *, replication: bool = False) -> None:
        """Connect. DAT-4700 without psycopg, DAT-5401 when the server cannot be reached."""
        try:
            import psycopg
        except ImportError as error:
            raise PenstockError(
                "DAT-4700",
                "the connector postgres-cdc needs psycopg, which is not installed",
                hint="pip install 'penstock[postgres]'",
                kind=Kind.EXTERNAL,
            ) from error
        self._driver: Any = psycopg
        self._address = address
        self._functions = _functions(psycopg)
        # libpq frees a connection that is finished, also under a call of another thread
        self._lock = threading.Lock()
        self._asking = self._closed = False
        options = {
            "host": address.host,
            "port": str(address.port),
            "dbname": address.database,
            "user": address.username,
            "connect_timeout": str(CONNECT_S),
            "application_name": "penstock",
            "client_encoding": "UTF8",
            # a server that is gone without a word is noticed in about a minute
            "keepalives_idle": "30",
            "keepalives_interval": "10",
            "keepalives_count": "3",
            "options": f"{SESSION} -c standard_conforming_strings=on",
        }
        options |= {"password": address.password} if address.password is not None else {}
        options |= {"replication": "database"} if replication else {}
        text = psycopg.conninfo.make_conninfo(**options)
        self._connection: Any = psycopg.pq.PGconn.connect(text.encode())
        if self._connection.status != psycopg.pq.ConnStatus.OK:
            reason = self._connection.get_error_message()
            self._connection.finish()
            what = f"no connection to {address.shown}"
            raise self._failed(what, reason, _refusal_state(reason), "DAT-5401")

    def ask(self, text: str, values: Sequence[str] = ()) -> list[list[str | None]]:
        """Run a statement with placeholders ``$1`` and return its rows as texts."""
        answer = self._execute(text, values)
        status = self._driver.pq.ExecStatus
        if answer.status not in (status.TUPLES_OK, status.COMMAND_OK):
            raise self._refused(answer, "the PostgreSQL server does not answer as asked")
        return [
            [
                None if (value := answer.get_value(row, column)) is None else value.decode()
                for column in range(answer.nfields)
            ]
            for row in range(answer.ntuples)
        ]

    def _execute(self, text: str, values: Sequence[str] = ()) -> Any:
        with self._lock:
            if self._closed:
                raise self._failed("the connection to PostgreSQL is closed", "", _LOST, "DAT-5402")
            self._asking = True
        try:
            given = [value.encode() for value in values]
            # the replication protocol knows the simple query only
            return (
                self._connection.exec_params(text.encode(), given)
                if given
                else self._connection.exec_(text.encode())
            )
        finally:
            with self._lock:
                self._asking = False
                if self._closed:
                    self._connection.finish()

    def literal(self, text: str) -> str:
        """Return a text as a literal of SQL."""
        escaping = self._driver.pq.Escaping(self._connection)
        return str(bytes(escaping.escape_literal(text.encode())).decode())

    def start_copy(self, text: str) -> None:
        """Run a statement that begins a copy, to here or in both directions."""
        answer = self._execute(text)
        status = self._driver.pq.ExecStatus
        if answer.status not in (status.COPY_OUT, status.COPY_BOTH):
            raise self._refused(answer, "the PostgreSQL server does not send what was asked for")

    def drain(self, messages: CopyMessages) -> bool:
        """Append the messages that have arrived. Return False when the copy has ended."""
        messages.grow()
        get, free, consume = self._functions
        ended = drain_copy(
            get,
            free,
            consume,
            self._connection.pgconn_ptr,
            messages.cell,
            messages.data,
            messages.ends,
            messages.state,
        )
        if ended == BROKEN:
            reason = self._connection.get_error_message()
            raise self._failed("the connection to PostgreSQL is lost", reason, _LOST, "DAT-5402")
        if ended == ENDED:
            # the last result is None: only then may another statement follow
            while (answer := self._connection.get_result()) is not None:
                if answer.status == self._driver.pq.ExecStatus.FATAL_ERROR:
                    raise self._refused(answer, "the PostgreSQL server has ended the copy")
            return False
        return True

    def send(self, data: bytes) -> None:
        """Send a message within a copy in both directions."""
        try:
            self._connection.put_copy_data(data)
            self._connection.flush()
        except self._driver.Error as error:
            what = "the connection to PostgreSQL is lost"
            raise self._failed(what, str(error), _LOST, "DAT-5402") from error

    @property
    def descriptor(self) -> int:
        """The number of its socket in this process."""
        return int(self._connection.socket)

    @property
    def process(self) -> int:
        """The server process of the connection, by which the server's log names it."""
        return int(self._connection.backend_pid)

    def close(self) -> None:
        """Close the connection. The thread that waits for an answer closes it, if there is one."""
        with self._lock:
            self._closed = True
            if not self._asking:
                self._connection.finish()
                return
            # the wait of that thread ends as if the server had closed the connection
            with suppress(OSError, self._driver.Error), socket(fileno=dup(self._connection.socket)) as wire:
                wire.shutdown(SHUT_RDWR)

    def _refused(self, answer: Any, what: str) -> PenstockError:
        field = self._driver.pq.DiagnosticField.SQLSTATE
        state = (answer.error_field(field) or _LOST.encode()).decode()
        return self._failed(what, answer.get_error_message(), state, "DAT-5402")

    def _failed(self, what: str, reason: str, state: str, code: str) -> PenstockError:
        transient = state.startswith(TRANSIENT) and not state.startswith(FOR_GOOD)
        return failed(
            what,
            Exception(reason),
            self._redact,
            state=f"SQLSTATE {state}",
            sqlstate=state,
            code=code,
            transient=transient,
            hint="correct 'hostname', 'port', 'username' and 'password'; is the server up?"
            if code == "DAT-5401"
            else None,
        )

    def _redact(self, text: str) -> str:
        return text.replace(self._address.password, "******") if self._address.password else text


def _refusal_state(reason: str) -> str:
    # while connecting there is no SQLSTATE, only a sentence
    return "28000" if any(word in reason for word in REFUSED) else _LOST


def _functions(driver: Any) -> tuple[int, int, int]:
    """Return the addresses of the functions of the very libpq the driver uses."""
    # the driver's modules are loaded by now; which ones depends on how it was built
    name = {"python": "psycopg.pq._pq_ctypes", "c": "psycopg_c.pq"}.get(
        driver.pq.__impl__, "psycopg_binary.pq"
    )
    module: Any = sys.modules[name]
    # a symbol is looked up in the libraries of an extension module too
    library: Any = module.pq if name.endswith("ctypes") else ctypes.CDLL(module.__file__)
    get, free, consume = (
        ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        for name in ("PQgetCopyData", "PQfreemem", "PQconsumeInput")
    )
    return get, free, consume
