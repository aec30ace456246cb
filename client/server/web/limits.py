"""The limits of the web listener: what one client may ask of it."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass


@dataclass(frozen=True)
class WebLimits:
    """``request_bytes``: of a body. ``request_s``: to send the headers, and to send the body.
    ``connections``: of all clients at a time. ``sessions``: signed-in browsers and tokens at a time, and
    ``idle_ms`` how long one stays without a request. ``streams``: streams of events of all clients at a time.
    ``rows``: of one answer or event.
    """

    request_bytes: int = 1 << 20
    request_s: float = 10.0
    connections: int = 512
    sessions: int = 256
    idle_ms: float = 1_800_000.0
    streams: int = 128
    rows: int = 1_000
