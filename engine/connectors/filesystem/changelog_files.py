"""The files of a changelog table, read as one sequence: a change may retract a row of an earlier file."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.secrets import redact_url
from penstock.engine.api.clock import Clock
from penstock.engine.api.source import Position, SplitReader
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.filesystem.listing import FileSplit

# the split's id
SEQUENCE = "changes"
ListFiles = Callable[[], list[FileSplit]]
OpenFile = Callable[[str, Position | None], SplitReader]


class ChangeSequence:
    """A split reader over files in the order of their paths. ``watch_ms``: interval between listings; a new
    file must sort after those already read.
    """

    def __init__(
        self,
        files: ListFiles,
        opened: OpenFile,
        watch_ms: int | None,
        clock: Clock,
        position: Position | None,
    ) -> None:
        self._files = files
        self._opened = opened
        self._watch_ms = watch_ms
        self._clock = clock
        self._position: Position = position or {}
        self._reader: SplitReader | None = None
        self._next_look_ms = 0.0
        self._ended = False

    @property
    def ended(self) -> bool:
        return self._ended

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        # the rows of the open file, then of the next
        while self._reader is not None or self._begin_next():
            assert self._reader is not None
            rows = self._reader.poll(max_rows)
            done = rows is None and self._reader.ended
            # "file": its split id, "files": how many were begun, "done": whether this one is finished
            self._position |= {"done": done, **self._reader.position()}
            if not done:
                return rows
            self._reader.close()
            self._reader = None
        return None

    def position(self) -> Position:
        return dict(self._position)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _begin_next(self) -> bool:
        """Open the file at the position, or the next one when that file is finished. Return whether there is
        one.
        """
        # resumed in the middle of a file
        if self._position and not self._position["done"]:
            self._reader = self._opened(self._position["file"], self._position)
            return True
        now_ms = self._clock.monotonic_ms()
        # listing may be slow at a store: only once an interval
        if now_ms < self._next_look_ms:
            return False
        following = self._following()
        if following is not None:
            self._reader = self._opened(following.split_id, None)
            return True
        # bounded: the listing that finds no further file is the end
        if self._watch_ms is None:
            self._ended = True
        else:
            self._next_look_ms = now_ms + self._watch_ms
        return False

    def _following(self) -> FileSplit | None:
        """Move the position to the next file. DAT-4111 when a new file sorts before one that was read."""
        files = self._files()
        last = FileSplit.parse(self._position["file"]).path if self._position else ""
        # files that sort up to the last one read; more than were read means that one came too late
        earlier = [file for file in files if file.path <= last]
        passed = self._position.get("files", 0)
        if len(earlier) > passed:
            raise _out_of_order(max(earlier, key=lambda file: file.mtime_us).path, last)
        # nothing sorts after the last file yet
        if len(earlier) == len(files):
            return None
        self._position = {"file": files[len(earlier)].split_id, "done": False, "files": passed + 1}
        return files[len(earlier)]


def _out_of_order(path: str, last: str) -> PenstockError:
    message = f"file {redact_url(path)} came after {redact_url(last)} was read, but sorts before it"
    hint = "give files of changes names that sort in the order they are written in"
    return PenstockError("DAT-4111", message, hint=hint, kind=Kind.EXTERNAL)
