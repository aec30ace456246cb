"""penstock for asyncio: ``async with penstock.aio.connect() as conn``."""

from __future__ import annotations

from penstock.client.asynchronous import AsyncConnection, AsyncCursor, connect

__all__ = ["AsyncConnection", "AsyncCursor", "connect"]
