"""A small HTTP server in this process: it records requests and gives the answers a test has set."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answered:
    """One answer. ``broken``: the connection ends before the whole body is sent."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    broken: bool = False


@dataclass
class Server:
    """A server and what it was asked; ``answer`` makes the next answer of a request."""

    port: int
    asked: list[Asked] = field(default_factory=list)
    answer: Callable[[Asked], Answered] = field(default=lambda asked: Answered(b"{}"))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/rows"


@contextmanager
def http_server(port: int = 0) -> Iterator[Server]:
    """Run a server until the block ends."""
    server: Server
    connections: set[socket.socket] = set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections.add(self.connection)

        def finish(self) -> None:
            connections.discard(self.connection)
            super().finish()

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            server.asked.append(asked)
            answer = server.answer(asked)
            # a client that was killed reads no answer
            with suppress(ConnectionError):
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body) + answer.broken))
                self.end_headers()
                self.wfile.write(answer.body)
            self.close_connection = answer.broken

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as listener:
        listener.daemon_threads = True
        server = Server(listener.server_port)
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()
            # what is kept alive would go on being answered
            for connection in list(connections):
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
