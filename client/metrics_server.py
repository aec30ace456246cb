"""The one page of the Prometheus endpoint: GET /metrics on 127.0.0.1, answered by threads of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from catalog.errors import Kind, PenstockError
from client.prometheus import CONTENT_TYPE, exposition
from engine.metric_registry import metrics_of

if TYPE_CHECKING:
    from engine.job import Job

HOST = "127.0.0.1"
REQUEST_TIMEOUT_S = 10.0


class MetricsServer:
    """Serves the metrics of the jobs ``jobs`` gives. Port 0 takes any that is free. CLI-6031 when the port cannot be had."""

    def __init__(self, jobs: Callable[[], Sequence[Job]], port: int) -> None:
        def page() -> str:
            return exposition([metric for job in jobs() for metric in metrics_of(job.job_id, job.metrics())])

        class Page(_Page):
            text = staticmethod(page)

        try:
            self._server = ThreadingHTTPServer((HOST, port), Page)
        except OSError as error:
            message = f"port {port} of {HOST} cannot be had for metrics: {error.strerror}"
            hint = "choose another port; 0 turns the endpoint off"
            raise PenstockError("CLI-6031", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="58000") from error
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="penstock-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Page(BaseHTTPRequestHandler):
    """Answers one request; ``text`` gives the page."""

    text: Callable[[], str]
    server_version = "penstock"
    sys_version = ""
    timeout = REQUEST_TIMEOUT_S

    def do_GET(self) -> None:
        """Answer /metrics; there is nothing else."""
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "only /metrics is here")
            return
        body = self.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: being read every few seconds is no news."""
