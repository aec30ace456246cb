"""Instants and local times: TIMESTAMP_LTZ seen in a time zone, and back."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

LOCAL = pa.timestamp("us")
INSTANT = pa.timestamp("us", "UTC")


def to_local(instants: pa.Array, zone: str) -> pa.Array:
    """Return the wall-clock times of instants in a zone."""
    if zone == "UTC":
        return instants.view(LOCAL)
    return pc.local_timestamp(instants.cast(pa.timestamp("us", zone)))


def to_instant(local: pa.Array, zone: str) -> pa.Array:
    """Return the instants of wall-clock times in a zone; a time that exists twice is the earlier, one that
    is skipped the end of the gap.
    """
    if zone == "UTC":
        return local.view(INSTANT)
    return pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest").cast(INSTANT)


def local_view(times: pa.Array, zone: str) -> pa.Array:
    """Return timestamps of either kind as wall-clock times."""
    return times if times.type.tz is None else to_local(times, zone)


def like(local: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
    """Return wall-clock times as timestamps of ``kind``."""
    return local if kind.tz is None else to_instant(local, zone)
