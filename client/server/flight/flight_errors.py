"""Errors as Flight sends them: a class that each client maps, a sentence, and our JSON in ``extra_info``.

Only subclasses of FlightError travel clean: of any other exception a client gets Python's traceback.
"""

from __future__ import annotations

import logging

from pyarrow import flight

from penstock.catalog.errors import Kind, PenstockError, out_of_memory
from penstock.client.remote.wire_errors import encode_error, sentence_of

_LOG = logging.getLogger("penstock.server.flight")


def flight_error(error: BaseException) -> flight.FlightError:
    """Return any exception as one that travels. An unexpected one is logged with its traceback, and is
    CLI-6239 without it at the client.
    """
    if isinstance(error, flight.FlightError):
        return error
    if isinstance(error, MemoryError):
        error = out_of_memory(error, "answer the request")
    if not isinstance(error, PenstockError):
        _LOG.error("a request failed", exc_info=error)
        error = PenstockError(
            "CLI-6239",
            f"the server failed with {type(error).__name__}",
            hint="the server's log has the cause; please report it",
            kind=Kind.INTERNAL,
            sqlstate="XX000",
        )
    error.without_secret_causes()
    return _class_of(error)(sentence_of(error), encode_error(error))


def _class_of(error: PenstockError) -> type[flight.FlightError]:
    # ADBC: PROGRAMMING errors are those that are not authenticated or not permitted
    if error.sqlstate.startswith("28"):
        return flight.FlightUnauthenticatedError
    if error.sqlstate == "42501":
        return flight.FlightUnauthorizedError
    # somebody stopped it
    if error.sqlstate.startswith("57014"):
        return flight.FlightCancelledError
    # the server goes, or lets nobody in for now
    if error.sqlstate.startswith(("57P", "53300")):
        return flight.FlightUnavailableError
    if error.kind is Kind.INTERNAL:
        return flight.FlightInternalError
    # UNKNOWN in gRPC, an OperationalError in ADBC: there is no class for wrong statements
    return flight.FlightServerError
