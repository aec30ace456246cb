"""Rows of the program as an upload to a server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.in_process.registered import registered_source

UPLOAD = b"penstock.upload/1\n"
"""The first bytes of a descriptor's command that uploads a table of our own client."""


def upload_rows(name: str, source: Any) -> pa.Table:
    """Return the rows of a table, frame, list or mapping. CLI-6244 for a source that only this process can
    read.
    """
    if not isinstance(name, str) or not name:
        raise PenstockError("CLI-6040", "a registered table needs a name", sqlstate="42602")
    is_read_here = callable(source) or (isinstance(source, Iterable) and not _is_collection(source))
    # what is no table at all is refused there
    rows = None if is_read_here else registered_source(source).table
    if rows is None:
        message = f"a {type(source).__name__} is read in this process, and the server runs in another"
        hint = "register an Arrow table, a pandas frame or a list: its rows are uploaded"
        raise PenstockError("CLI-6244", message, hint=hint, sqlstate="0A000")
    return rows


def upload_command(name: str, time_column: str | None, delay: Any, stream: bool | None) -> bytes:
    """Return the command of an upload."""
    words = {"name": name, "time_column": time_column, "stream": stream}
    # a timedelta is no word of JSON; a number is of seconds
    words["delay"] = f"{delay.total_seconds() * 1e3:.0f} ms" if isinstance(delay, timedelta) else delay
    return UPLOAD + json.dumps(words).encode()


def decode_upload(command: bytes) -> Mapping[str, Any]:
    """Return what ``upload_command`` wrote. ValueError for other bytes."""
    words = json.loads(command.removeprefix(UPLOAD))
    return {key: words[key] for key in ("name", "time_column", "delay", "stream")}


def _is_collection(source: Any) -> bool:
    """Return whether a source has all its rows now, and is not read by reading it."""
    kinds = (pa.Table, pa.RecordBatch, list, tuple, Mapping, str, bytes)
    return isinstance(source, kinds) or hasattr(source, "columns")
