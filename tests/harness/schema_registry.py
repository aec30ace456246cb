"""A schema registry for tests: a real HTTP server with the calls of Confluent's that serializers use, since no
package brings that server. Compatibility is what fastavro can resolve.
"""

from __future__ import annotations

import base64
import io
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import fastavro


class TestRegistry:
    """The state of one registry. ``failures``: how many answers are 503 first; ``requests``: every call."""

    __test__ = False

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        self.failures = 0
        self.user_info: str | None = None
        self.token: str | None = None
        self.url = ""

    def add(self, subject: str, schema: Any, **more: Any) -> int:
        """Register a schema; return its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        described = {"schema": text} | more
        found = next((key for key, value in self.schemas.items() if value == described), None)
        if found is None:
            found = 100_000 + len(self.schemas)
            self.schemas[found] = described
        versions = self.subjects.setdefault(subject, [])
        if found not in versions:
            versions.append(found)
        return found

    def encode(self, schema_id: int, *rows: Any) -> list[bytes]:
        """Return rows as Confluent's serializer writes them."""
        parsed = fastavro.parse_schema(json.loads(self.schemas[schema_id]["schema"]))
        made = []
        for row in rows:
            out = io.BytesIO(b"\0" + schema_id.to_bytes(4, "big"))
            out.seek(5)
            fastavro.schemaless_writer(out, parsed, row)
            made.append(out.getvalue())
        return made

    def answer(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        self.requests.append(f"{method} {path}")
        path = path.partition("?")[0]
        if self.failures:
            self.failures -= 1
            return 503, {"error_code": 50302, "message": "no leader"}
        given = headers.get("Authorization")
        user = self.user_info and "Basic " + base64.b64encode(self.user_info.encode()).decode()
        if given not in {wanted for wanted in (user, self.token and f"Bearer {self.token}") if wanted} and (
            self.user_info or self.token
        ):
            return 401, {"error_code": 401, "message": "Unauthorized"}
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path):
            known = self.schemas.get(int(found[1]))
            return (200, known) if known else (404, {"error_code": 40403, "message": "Schema not found"})
        if found := re.fullmatch(r"/subjects/([^/]+)/versions/(\d+)", path):
            versions = self.subjects.get(unquote(found[1]), [])
            if not 0 < int(found[2]) <= len(versions):
                return 404, {"error_code": 40402, "message": "Version not found"}
            return 200, self.schemas[versions[int(found[2]) - 1]]
        if found := re.fullmatch(r"/subjects/([^/]+)(/versions)?", path):
            asked = json.loads(body)
            if asked.get("schemaType") == "PROTOBUF":
                return self._post_protobuf(unquote(found[1]), asked, found[2] is not None)
            return self._post(unquote(found[1]), asked["schema"], found[2] is not None)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _post_protobuf(self, subject: str, asked: dict[str, Any], register: bool) -> tuple[int, Any]:
        """Every file is compatible: registries compare protobuf by rules of their own."""
        ids = self.subjects.get(subject, [])
        there = next((one for one in ids if self.schemas[one]["schema"] == asked["schema"]), None)
        if there is None and not register:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        made = self.add(subject, asked["schema"], schemaType="PROTOBUF") if there is None else there
        return 200, {"id": made, "version": self.subjects[subject].index(made) + 1, **self.schemas[made]}

    def _post(self, subject: str, text: str, register: bool) -> tuple[int, Any]:
        ids = self.subjects.get(subject, [])
        for schema_id in ids:
            if json.loads(self.schemas[schema_id]["schema"]) == json.loads(text):
                return 200, {"id": schema_id}
        if not register:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        if ids and not _compatible(json.loads(self.schemas[ids[-1]]["schema"]), json.loads(text)):
            return 409, {"error_code": 409, "message": "Schema being registered is incompatible"}
        return 200, {"id": self.add(subject, text)}


def _compatible(writer: Any, reader: Any) -> bool:
    """Whether one value of the writer's schema can be read: the first of each type is enough for tests."""
    out = io.BytesIO()
    value = {part["name"]: _some(part["type"]) for part in writer["fields"]}
    fastavro.schemaless_writer(out, fastavro.parse_schema(writer), value)
    try:
        fastavro.schemaless_reader(
            io.BytesIO(out.getvalue()), fastavro.parse_schema(writer), fastavro.parse_schema(reader)
        )
    except fastavro.read.SchemaResolutionError:
        return False
    return True


def _some(kind: Any) -> Any:
    kind = kind[-1] if isinstance(kind, list) else kind
    return {"string": "x", "boolean": True, "bytes": b""}.get(kind if isinstance(kind, str) else "", 1)


class _Handler(BaseHTTPRequestHandler):
    registry: TestRegistry

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, answer = self.registry.answer(self.command, self.path, self.headers, body)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _handle

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def schema_registry() -> Iterator[TestRegistry]:
    """Run a registry on a free port."""
    registry = TestRegistry()
    handler = type("Handler", (_Handler,), {"registry": registry})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
