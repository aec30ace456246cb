"""Requests to an object store: what is tried again, what a lost answer means, and the sentence of each failure.

The answers come from a server over the wire that says what a store says in trouble.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.locations import ObjectUrl
from penstock.engine.storage.object_client import ATTEMPTS, ObjectClient, Version, client_of

Answer = tuple[int, str]
OK: Answer = (200, "")


class Scripted:
    """A server that keeps objects, and gives the answers of a script first. An answer marked as late is given
    after the request was carried out.
    """

    def __init__(self) -> None:
        self.answers: list[tuple[int, str, bool]] = []
        self.objects: dict[str, bytes] = {}
        self.requests = 0
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                data = self.rfile.read(int(self.headers["content-length"] or 0))

                def carry_out() -> Answer:
                    known = scripted.objects.get(self.path)
                    if self.headers.get("if-none-match") and known is not None:
                        return 412, "PreconditionFailed"
                    if (tag := self.headers.get("if-match")) and (known is None or tag != _tag(known)):
                        return 412, "PreconditionFailed"
                    scripted.objects[self.path] = data
                    return OK

                self._answer(carry_out, _tag(data))

            def do_GET(self) -> None:
                data = scripted.objects.get(self.path, b"")
                found = self.path in scripted.objects
                self._answer(lambda: OK if found else (404, "NoSuchKey"), _tag(data), data)

            def _answer(self, carry_out: Callable[[], Answer], tag: str, data: bytes = b"") -> None:
                scripted.requests += 1
                status, word, late = scripted.answers.pop(0) if scripted.answers else (0, "", False)
                if late or not status:
                    done = carry_out()
                if not status:
                    status, word = done
                if status != 200:
                    data = f"<Error><Code>{word}</Code><Message>no</Message></Error>".encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.send_header("etag", tag)
                self.send_header("last-modified", "Mon, 23 Nov 2026 10:00:00 GMT")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _tag(data: bytes) -> str:
    return f'"{data.hex()}"'


@pytest.fixture
def server() -> Iterator[Scripted]:
    scripted = Scripted()
    yield scripted
    scripted.close()


def client(server: Scripted, told: list[str] | None = None) -> ObjectClient:
    options = {
        "endpoint": server.endpoint,
        "access_key_id": "someone",
        "secret_access_key": "very-secret-words",
        "region": "us-east-1",
    }
    made = client_of(ObjectUrl("s3", "bucket"), options, told=None if told is None else told.append)
    made._pause = lambda _: None
    return made


@pytest.mark.parametrize("answer", [(503, "SlowDown"), (500, "InternalError"), (429, "TooManyRequests")])
def test_what_may_pass_is_tried_again_told_and_counted(server: Scripted, answer: Answer) -> None:
    told: list[str] = []
    asked = client(server, told)
    server.answers = [(*answer, False)] * 3
    asked.put("key", b"data")
    assert server.objects["/bucket/key"] == b"data" and server.requests == 4
    assert asked.counts["retries"] == 3 and len(told) == 3
    assert told[0].startswith("s3://bucket: it ") and told[0].endswith("; it is tried again (attempt 1)")


def test_what_does_not_pass_ends_after_some_attempts(server: Scripted) -> None:
    server.answers = [(503, "SlowDown", False)] * 20
    with pytest.raises(PenstockError) as failed:
        client(server).get("key")
    assert failed.value.code == "DAT-5509" and failed.value.retriable and server.requests == ATTEMPTS
    assert "after 7 attempts: it asks for fewer requests (503 SlowDown no)" in failed.value.message


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ((404, "NoSuchBucket"), "DAT-5504"),
        ((403, "InvalidAccessKeyId"), "DAT-5505"),
        ((403, "SignatureDoesNotMatch"), "DAT-5505"),
        ((403, "AccessDenied"), "DAT-5506"),
        ((400, "ExpiredToken"), "DAT-5507"),
        ((403, "RequestTimeTooSkewed"), "DAT-5507"),
        ((301, "PermanentRedirect"), "DAT-5508"),
        ((400, "AuthorizationHeaderMalformed"), "DAT-5508"),
        ((501, "NotImplemented"), "DAT-5510"),
    ],
)
def test_what_another_try_does_not_mend_is_refused_at_once(
    server: Scripted, answer: Answer, code: str
) -> None:
    server.answers = [(*answer, False)]
    with pytest.raises(PenstockError) as failed:
        client(server).put("key", b"data")
    assert failed.value.code == code and failed.value.hint and server.requests == 1
    assert "very-secret-words" not in str(failed.value)


def test_a_lost_answer_is_settled_by_what_is_there(server: Scripted) -> None:
    asked = client(server)
    server.answers = [(500, "InternalError", True)]
    version = asked.put_new("key", b"mine")
    assert version == Version(_tag(b"mine"))
    server.answers = [(500, "InternalError", True)]
    assert asked.replace("key", b"mine too", version) == Version(_tag(b"mine too"))


def test_a_lost_answer_is_not_mistaken_for_success(server: Scripted) -> None:
    asked = client(server)
    server.objects["/bucket/key"] = b"theirs"
    server.answers = [(500, "InternalError", False)]
    with pytest.raises(FileExistsError):
        asked.put_new("key", b"mine")
    # an empty object says nothing about who has written it
    server.objects["/bucket/empty"] = b""
    server.answers = [(500, "InternalError", False)]
    with pytest.raises(FileExistsError):
        asked.put_new("empty", b"")


def test_a_conflict_with_a_write_under_way_is_tried_again(server: Scripted) -> None:
    asked = client(server)
    server.answers = [(409, "ConditionalRequestConflict", False)]
    asked.put_new("key", b"mine")
    assert server.objects["/bucket/key"] == b"mine" and asked.counts["retries"] == 1


def test_nobody_at_the_endpoint() -> None:
    closed = Scripted()
    closed.close()
    with pytest.raises(PenstockError) as failed:
        client(closed).get("key")
    assert failed.value.code == "DAT-5509" and failed.value.retriable


def test_settings_that_the_library_does_not_take() -> None:
    with pytest.raises(PenstockError) as refused:
        client_of(ObjectUrl("s3", "bucket"), {"colour": "blue"})
    assert refused.value.code == "DAT-5503"
