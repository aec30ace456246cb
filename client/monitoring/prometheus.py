"""Prometheus: a job's metrics in its text format, version 0.0.4, and the endpoint GET /metrics on 127.0.0.1.

``prometheus_client`` writes the text. The endpoint is our own: the library's server limits neither the number
of readers nor the time and size of a request.
"""

from __future__ import annotations

import contextlib
import io
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.job.metric_registry import Metric, MetricKind, declaration, metrics_of
from penstock.engine.network.admission import Admission, AdmissionLimits

if TYPE_CHECKING:
    from prometheus_client.core import Metric as LibraryMetric

    from penstock.engine.job.job import Job


# the version of the text format, not of penstock
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# our unit: the word in the name, and the factor; Prometheus asks for base units
_UNIT_WORDS = {
    "ms": ("seconds", 1e-3),
    "us": ("seconds", 1e-6),
    "bytes": ("bytes", 1.0),
    "permille": ("ratio", 1e-3),
    "ms/s": ("ratio", 1e-3),
}


def exposition(metrics: Iterable[Metric]) -> str:
    """Return the text: all samples of a metric together under its HELP and TYPE."""
    # 45 ms of processor time: not before somebody asks for metrics
    from prometheus_client import generate_latest

    return generate_latest(_Registry(metrics)).decode()  # type: ignore[arg-type]


def prometheus_name(metric: Metric) -> str:
    """Return ``penstock_<scope>_<name>`` with its base unit, and ``_total`` for counters, as is the
    custom.
    """
    # numRecordsIn becomes num_records_in
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", metric.name).lower()
    words = re.sub(r"_ms(_per_second)?$", "", re.sub(r"[^a-z0-9_]", "_", words))
    unit = _UNIT_WORDS.get(declaration(metric.name).unit, ("", 1.0))[0]
    # busyTimeMs becomes penstock_task_busy_time_seconds; a name that has its unit already gets no second one
    suffix = f"_{unit}" if unit and not words.endswith(unit) and f"_{unit}_" not in f"_{words}_" else ""
    return f"penstock_{metric.scope}_{words}{suffix}{'_total' if metric.kind is MetricKind.COUNTER else ''}"


def _families(metrics: Iterable[Metric]) -> Iterator[LibraryMetric]:
    from prometheus_client.core import Metric as LibraryMetric

    families: dict[str, LibraryMetric] = {}
    for metric in metrics:
        name = prometheus_name(metric)
        # the format wants the samples of a family together, and metrics come by job and operator
        if name not in families:
            # the library appends the _total of a counter itself
            help_text = declaration(metric.name).help
            families[name] = LibraryMetric(name.removesuffix("_total"), help_text, str(metric.kind))
        # a summary has one sample a quantile, and _count and _sum beside them
        suffix = f"_{metric.quantile}" if metric.quantile in ("count", "sum") else ""
        families[name].add_sample(name + suffix, _labels(metric), _value(metric))
    yield from families.values()


def _labels(metric: Metric) -> dict[str, str]:
    labels = {"job": metric.job}
    # a job's own metrics have no operator
    if metric.subtask is not None:
        labels |= {
            "operator": metric.operator,
            "operator_id": metric.operator_id,
            "subtask": str(metric.subtask),
        }
    if metric.split:
        labels["split"] = metric.split
    if metric.source:
        labels["source"] = metric.source
    if metric.quantile and metric.quantile not in ("count", "sum"):
        labels["quantile"] = metric.quantile
    return labels


def _value(metric: Metric) -> float:
    factor = _UNIT_WORDS.get(metric.unit, ("", 1.0))[1]
    # 6 digits: the smallest unit, 1 us, is 1e-6 s; further digits are noise of the product
    return metric.value if factor == 1.0 else round(metric.value * factor, 6)


class _Registry:
    """The metrics of one moment, as the library's writer reads them."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[LibraryMetric]:
        """Yield the families."""
        return _families(self._metrics)


# this machine only: the endpoint asks for no password
HOST = "127.0.0.1"
LIMITS = AdmissionLimits(strangers=64, hello_ms=10_000.0)
"""How many readers may be connected at a time, and how long each may take for its request and the answer."""
# of the request line and the headers
REQUEST_BYTES = 8192


class MetricsServer:
    """Serves the metrics of the jobs that ``jobs`` returns. Port 0 takes any free port. CLI-6031 when the
    port is not free.
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
            # seconds: shutdown waits up to so long for the loop to notice it
            kwargs={"poll_interval": 0.05},
            name="penstock-metrics",
            daemon=True,
        )
        self._thread.start()

    @property
    def admission(self) -> Admission[socket.socket]:
        """The connections that are answered, and counts of those that were closed early."""
        return self._server.admission

    def close(self) -> None:
        """Stop answering."""
        # first the loop ends, then the port is released
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    """Answers each connection in a thread of its own. It closes slow connections, and those above the
    limit.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], page: type[BaseHTTPRequestHandler], clock: Clock) -> None:
        super().__init__(address, page)
        self.admission: Admission[socket.socket] = Admission(self.socket, clock, _hang_up, limits=LIMITS)
        self._pause = threading.Event()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Return the next connection; OSError, which the server expects, when none can be accepted now."""
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
        """Close connections whose time is over; the server calls it several times a second."""
        self.admission.check_time()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Count a connection that broke: it is no reason to write on the terminal."""
        self.admission.refuse(request)


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Request(io.RawIOBase):
    """The lines of a request, at most ``REQUEST_BYTES`` of them; then it ends."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        # bytes that may still be read: a stranger must not fill the memory
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
    """Answers one request with the page that ``text`` returns."""

    text: Callable[[], str]
    server_version = "penstock"
    sys_version = ""

    def setup(self) -> None:
        """Read no more than a request may be long."""
        super().setup()
        self.rfile = _Request(self.rfile)  # type: ignore[assignment]

    def do_GET(self) -> None:
        """Answer /metrics; there is nothing else."""
        # parameters after the path are ignored
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
        """Log nothing: a request comes every few seconds."""
