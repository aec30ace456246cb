"""What is counted of connections."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class LinkCounters:
    """Of one connection, or of all together; written by the thread that drives the connections, read by
    anyone.
    """

    bytes_in: int = 0
    bytes_out: int = 0
    elements_in: int = 0
    elements_out: int = 0
    rows_in: int = 0
    rows_out: int = 0
    credits_in: int = 0
    credits_out: int = 0
