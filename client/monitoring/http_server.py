"""The one page of the Prometheus endpoint: GET /metrics on 127.0.0.1, answered by threads of its own."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.monitoring.prometheus import CONTENT_TYPE, exposition
from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.job.metric_registry import metrics_of
from penstock.engine.network.admission import Admission, AdmissionLimits

if TYPE_CHECKING:
    from penstock.engine.job.job import Job

HOST = "127.0.0.1"
LIMITS = AdmissionLimits(strangers=64, hello_ms=10_000.0)
"""Of readers, who stay strangers until they have their page: how many at a time, and how long each may
take for its request and the answer.
"""
REQUEST_BYTES = 8192


class MetricsServer:
    """Serves the metrics of the jobs ``jobs`` gives. Port 0 takes any that is free. CLI-6031 when the port
    cannot be had.
    """

    def __init__(self, jobs: Callable[[], Sequence[Job]], port: int, clock: Clock | None = None) -> None:
        def page() -> str:
            return exposition([metric for job in jobs() for metric in metrics_of(job.job_id, job.metrics())])

        class Page(_Page):
            text = staticmethod(page)

        try:
            self._server = _Server((HOST, port), Page, clock or SystemClock())
        except OSError as error:
            message = f"port {port} of {HOST} cannot be had for metrics: {error.strerror}"
            hint = "choose another port; 0 turns the endpoint off"
            raise PenstockError(
                "CLI-6031", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="58000"
            ) from error
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.05},
            name="penstock-metrics",
            daemon=True,
        )
        self._thread.start()

    @property
    def admission(self) -> Admission[socket.socket]:
        """Who is being answered, and who was hung up on."""
        return self._server.admission

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    """Answers each connection in a thread of its own; those that ask slowly, or too many at once, are hung
    up on.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], page: type[BaseHTTPRequestHandler], clock: Clock) -> None:
        super().__init__(address, page)
        self.admission: Admission[socket.socket] = Admission(self.socket, clock, _hang_up, limits=LIMITS)
        self._pause = threading.Event()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Return the next connection; OSError, which the server expects, when there is none to take now."""
        connection = self.admission.accept()
        if connection is None:
            if self.admission.resting:
                self._pause.wait(LIMITS.rest_ms / 1000)
            raise BlockingIOError
        self.admission.add(connection)
        return connection, None

    def shutdown_request(self, request: Any) -> None:
        """End a connection that was answered."""
        self.admission.remove(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called several times a second: hang up on those whose time is over."""
        self.admission.check_time()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Count a connection that broke: it is no reason to write on the terminal."""
        self.admission.refuse(request)


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Request(io.RawIOBase):
    """The lines of a request as far as ``REQUEST_BYTES`` go; then it ends."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._left = REQUEST_BYTES

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line."""
        line: bytes = self._stream.readline(
            min(self._left, size) if size is not None and size >= 0 else self._left
        )
        self._left -= len(line)
        return line

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()
        super().close()


class _Page(BaseHTTPRequestHandler):
    """Answers one request; ``text`` gives the page."""

    text: Callable[[], str]
    server_version = "penstock"
    sys_version = ""

    def setup(self) -> None:
        """Read no more than a request may be long."""
        super().setup()
        self.rfile = _Request(self.rfile)  # type: ignore[assignment]

    def do_GET(self) -> None:
        """Answer /metrics; there is nothing else."""
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "only /metrics is here")
            return
        try:
            body = self.text().encode()
        except Exception:  # noqa: BLE001 - a fault of ours is an answer too
            self.send_error(500, "the metrics cannot be read: a fault of penstock")
            return
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: being read every few seconds is no news."""
