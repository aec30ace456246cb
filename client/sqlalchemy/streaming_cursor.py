"""The cursor of ``stream_results`` and ``yield_per``: it does not wait for a full buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.client.cursor import Cursor, Row


class StreamingCursor:
    """A cursor whose ``fetchmany`` waits for one row, and returns with it those that are there already.

    SQLAlchemy fetches streamed rows by buffers of up to ``max_row_buffer`` rows. A query that never ends
    would otherwise show a row only when the buffer is full.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return up to ``size`` rows, at least one before the end; none of a statement without rows, which
        SQLAlchemy fetches as well.
        """
        if self._cursor.description is None:
            return []
        wanted = self._cursor.arraysize if size is None else size
        rows = self._cursor.fetchmany(1)
        return rows + self._cursor.fetchmany(wanted - 1, timeout=0) if rows else rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)
