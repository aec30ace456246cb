"""Requests to one server, sent again where that may help, and their failures as sentences."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.secrets import redact_url
from penstock.catalog.tables import CatalogTable
from penstock.engine.metrics.operator_metrics import OperatorMetrics

INSTALL = "pip install 'penstock[http]'"
# too many requests, and failures that other requests may not meet; as urllib3 and most clients have them
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0
# an answer that tells of a failure is shown up to here
_SHOWN_BYTES = 200
_HOPS = 5


class HttpClient:
    """Sends the requests of one table. A request that fails is sent again, after a pause that grows, or that
    the server asks for in Retry-After.
    """

    def __init__(self, table: CatalogTable, metrics: OperatorMetrics) -> None:
        try:
            import urllib3
        except ImportError as error:
            raise missing_package() from error
        self._url = table.options["url"]
        self._metrics = metrics
        self._limit = int(str(option(table, "max-answer-size")))
        self._headers = headers_of(table)
        again = urllib3.Retry(
            total=int(str(option(table, "max-retries"))),
            redirect=0,
            status_forcelist=_AGAIN,
            # the receiver tells a request that is sent twice by its idempotency key
            allowed_methods=None,
            backoff_factor=_FIRST_PAUSE_S,
            backoff_max=_LONGEST_PAUSE_S,
            raise_on_status=False,
            raise_on_redirect=False,
        )
        seconds = int(str(option(table, "timeout"))) / 1e3
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=seconds, read=seconds), retries=again
        )

    def request(self, method: str, headers: Mapping[str, str], body: bytes | None = None) -> HttpAnswer:
        """Send a request and return its answer, whose status is below 400.

        DAT-5701 when no answer comes, DAT-5702 for a status that refuses, DAT-5704 for a redirect to another
        server.
        """
        import urllib3

        url = self._url
        for _ in range(_HOPS):
            try:
                raw = self._pool.request(
                    method,
                    url,
                    headers={**self._headers, **headers},
                    body=body,
                    preload_content=False,
                    redirect=False,
                )
            except urllib3.exceptions.HTTPError as error:
                raise self.unanswered(error) from error
            self._metrics.count("http_requests")
            self._metrics.count("http_retries", len(raw.retries.history) if raw.retries else 0)
            if raw.status not in (301, 302, 303, 307, 308):
                break
            # the connection is used again once the answer is read to its end
            raw.drain_conn()
            url = self._redirected(url, raw.headers.get("Location", ""))
        if raw.status >= 300 and raw.status != 304:
            raise self._refused(raw)
        return HttpAnswer(raw, self._limit, self)

    def _redirected(self, url: str, target: str) -> str:
        new = urljoin(url, target)
        # headers with tokens go to no other server, and never from TLS to plain text
        schemes = ("https",) if urlsplit(url).scheme == "https" else ("http", "https")
        if urlsplit(new).hostname != urlsplit(url).hostname or urlsplit(new).scheme not in schemes:
            raise PenstockError(
                "DAT-5704",
                f"{redact_url(self._url)} sends the request to {redact_url(new)}",
                hint="write that address into 'url', if you trust it",
                kind=Kind.EXTERNAL,
            )
        return new

    def _refused(self, raw: Any) -> PenstockError:
        shown = ""
        with contextlib.suppress(Exception):  # the status says enough
            shown = raw.read(_SHOWN_BYTES, decode_content=True).decode("utf-8", "replace")
        raw.release_conn()
        return PenstockError(
            "DAT-5702",
            f"{redact_url(self._url)} answers with status {raw.status} {raw.reason or ''}".rstrip(),
            detail="".join(letter if letter.isprintable() else " " for letter in shown) or None,
            hint=_hint_of(raw.status),
            kind=Kind.EXTERNAL,
            retriable=raw.status in _AGAIN,
            sqlstate="08004",
        )

    def unanswered(self, error: Exception) -> PenstockError:
        """Return the error for a server that cannot be reached."""
        from urllib3 import exceptions

        cause = getattr(error, "reason", None) or error
        says, hint = "does not answer", "start the server, or correct 'url'"
        if isinstance(cause, exceptions.NameResolutionError):
            says, hint = "does not answer: its host has no address", "correct the host in 'url'"
        elif isinstance(cause, exceptions.SSLError):
            says = "cannot be reached by TLS"
            hint = "write http:// where it has no TLS; else its certificate is not one that is trusted here"
        return self._without_answer(says, hint, cause)

    def broken(self, error: Exception) -> PenstockError:
        """Return the error for an answer that ends in its middle, or cannot be unpacked."""
        from urllib3 import exceptions

        if isinstance(error, exceptions.DecodeError):
            return self.strange("an answer that is not packed as its Content-Encoding says", str(error))
        return self._without_answer(
            "breaks off its answer", "a retry may succeed; see the log of the server", error
        )

    def _without_answer(self, says: str, hint: str, cause: Exception) -> PenstockError:
        return PenstockError(
            "DAT-5701",
            f"{redact_url(self._url)} {says}",
            # without the pool's own description, which has no more in it
            detail=str(cause).rpartition(": ")[2][:200] or type(cause).__name__,
            hint=hint,
            kind=Kind.EXTERNAL,
            retriable=True,
            sqlstate="08001",
        )

    def strange(self, what: str, detail: str | None = None, hint: str = "correct 'url'") -> PenstockError:
        """Return the error for a server that answers, but not what the table reads."""
        return PenstockError(
            "DAT-5706",
            f"{redact_url(self._url)} sends {what}",
            detail=detail and detail[:200],
            hint=hint,
            kind=Kind.EXTERNAL,
            sqlstate="08P01",
        )

    def too_long(self) -> PenstockError:
        """Return the error for an answer beyond the table's limit."""
        return PenstockError(
            "DAT-5703",
            f"{redact_url(self._url)} answers with more than {self._limit:,} bytes",
            hint="ask for less at once, or raise 'max-answer-size'",
            kind=Kind.EXTERNAL,
        )

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()


class HttpAnswer:
    """An answer whose body is read once: whole, or in the pieces that arrive."""

    def __init__(self, raw: Any, limit: int, client: HttpClient) -> None:
        self._raw, self._limit, self._client = raw, limit, client

    @property
    def status(self) -> int:
        """The status; 304 for what has not changed."""
        return int(self._raw.status)

    def header(self, name: str) -> str:
        """Return a header, '' where it is missing."""
        return str(self._raw.headers.get(name, ""))

    def body(self) -> bytes:
        """Return the whole body. DAT-5703 when it is too long, DAT-5701 when it breaks off."""
        pieces, size = [], 0
        for piece in self.pieces():
            pieces.append(piece)
            size += len(piece)
            if size > self._limit:
                self.close()
                raise self._client.too_long()
        return b"".join(pieces)

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in pieces as they arrive. DAT-5701 when it breaks off."""
        import urllib3

        try:
            # read1: what has arrived, without waiting for a full piece
            while piece := self._raw.read1(1 << 16, decode_content=True):
                yield piece
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._client.broken(error) from error
        self._raw.release_conn()

    def close(self) -> None:
        """Close the connection, which ends a read that blocks."""
        with contextlib.suppress(Exception):  # a socket that is closed already
            self._raw.shutdown()
        self._raw.close()


def _hint_of(status: int) -> str:
    match status:
        case 401 | 403:
            return "correct the token in 'headers.Authorization'"
        case 408 | 425 | 429:
            return "the server asks for fewer requests: raise 'poll-interval' or 'max-retries'"
        case _ if status >= 500:
            return "the server fails: see its log; 'max-retries' is the number of retries"
        case _:
            return "correct 'url', or what the rows hold"


def headers_of(table: CatalogTable) -> dict[str, str]:
    """Return the headers that the table sets; keys of options are in lower case, as header names may be."""
    return {
        key.removeprefix("headers."): value
        for key, value in table.options.items()
        if key.startswith("headers.")
    }


def missing_package() -> PenstockError:
    """Return the error for an installation without the connector's packages."""
    return PenstockError(
        "DAT-5700", "the connector 'http' needs urllib3 and websockets", hint=INSTALL, sqlstate="0A000"
    )
