"""How long a connection may say nothing, and how much at once."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.network.frames import MAX_PAYLOAD_BYTES


@dataclass(frozen=True)
class LinkLimits:
    """``hello_ms``: until both sides have said who they are, connecting included. ``ping_ms``: how often a
    silent side says that it is alive.

    ``silence_ms``: after how long without a byte the peer counts as lost. ``close_ms``: how long leaving
    waits for the peer to have read all. ``greeting``: connections without a hello kept at a time; one more
    and the oldest is dropped. ``max_payload``: bytes of one frame.
    """

    hello_ms: float = 5_000.0
    ping_ms: float = 1_000.0
    silence_ms: float = 10_000.0
    close_ms: float = 1_000.0
    greeting: int = 256
    max_payload: int = MAX_PAYLOAD_BYTES
