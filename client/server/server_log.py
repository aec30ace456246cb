"""The log of a server: one JSON object a line, in a file that is rotated or on stderr, without secrets."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from penstock.catalog.secrets import masked
from penstock.engine.api.threads import EngineThread

LOGGER = "penstock.server"
_FIELDS = "fields"
# files that are kept beside the one that is written
KEPT_FILES = 5


class JsonFormatter(logging.Formatter):
    """Writes a record as one line: time, level, event, then its fields, with secrets masked."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        head = {"at": at.replace("+00:00", "Z"), "level": record.levelname.lower()}
        fields = getattr(record, _FIELDS, None)
        # what the engine logs has a sentence and no fields
        if fields is None:
            fields = {"event": "engine", "message": record.getMessage()}
        line = {key: _masked(value) for key, value in {**head, **fields}.items()}
        return json.dumps(line, ensure_ascii=False, default=str)


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {str(key): _masked(inner) for key, inner in value.items()}
    return value


class _PrivateFile(RotatingFileHandler):
    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8")


class JsonLines:
    """A file of lines that are JSON already, private and rotated by its size."""

    def __init__(self, path: Path, max_bytes: int = 64 << 20) -> None:
        self._handler = _PrivateFile(path, maxBytes=max_bytes, backupCount=KEPT_FILES)

    def write(self, line: str) -> None:
        """Write a line."""
        self._handler.emit(logging.LogRecord(LOGGER, logging.INFO, "", 0, line, None, None))


class ServerLog:
    """Logs events of a server, and what the engine logs. ``path`` None: on stderr. A file is rotated at
    ``max_bytes`` and by ``rotate``; the last ``KEPT_FILES`` are kept. OSError where it cannot be written.
    """

    def __init__(self, path: Path | None = None, max_bytes: int = 64 << 20) -> None:
        self._handler: logging.Handler = (
            logging.StreamHandler(sys.stderr)
            if path is None
            else _PrivateFile(path, maxBytes=max_bytes, backupCount=KEPT_FILES)
        )
        self._handler.setFormatter(JsonFormatter())
        self._logger = logging.getLogger(LOGGER)
        # the parent: the engine's loggers are below it
        engine = logging.getLogger("penstock")
        engine.handlers[:] = [self._handler]
        engine.setLevel(logging.INFO)
        engine.propagate = False
        self._rotate = threading.Event()
        EngineThread(target=self._rotate_on_request, name="penstock-log").start()

    def __call__(
        self, event: str, fields: Mapping[str, object] | None = None, *, level: str = "info"
    ) -> None:
        """Log an event."""
        line = {"event": event, **(fields or {})}
        self._logger.log(logging.getLevelNamesMapping()[level.upper()], event, extra={_FIELDS: line})

    def audit(self, line: str) -> None:
        """Log a line of the audit, which is JSON."""
        self("audit", {"audit": json.loads(line)})

    def rotate(self) -> None:
        """Begin a new file soon."""
        self._rotate.set()

    def _rotate_on_request(self) -> None:
        while True:
            self._rotate.wait()
            self._rotate.clear()
            if isinstance(self._handler, RotatingFileHandler):
                with self._handler.lock or threading.Lock():
                    self._handler.doRollover()
                self("log rotated")
