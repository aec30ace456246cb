"""JSON objects over several lines, or in an array, read as lines: bytes go in, as many bytes come out."""

from __future__ import annotations

import numpy as np

from penstock.engine.formats.record_blocks import ByteStream


class DocumentLines:
    """Turns the bytes of JSON documents into lines with one record each, whatever pieces they come in.

    A record without its end, such as one with a quote too many, reaches to the end of the bytes.
    """

    def __init__(self) -> None:
        # here: other files are read without numba, which takes 0.2 s to load
        from penstock.engine.kernels.json_documents import STATE_LENGTH, split_records

        self._state = np.zeros(STATE_LENGTH, np.int64)
        self._split_records = split_records

    def lines_of(self, data: bytes) -> bytes:
        """Return the next bytes as bytes of lines: as many, so that positions stay."""
        lines = np.frombuffer(data, np.uint8).copy()
        self._split_records(lines, self._state)
        return lines.tobytes()


class DocumentStream:
    """A stream of bytes of JSON documents as one of lines."""

    def __init__(self, file: ByteStream) -> None:
        self._file = file
        self._lines = DocumentLines()

    def read(self, most: int) -> bytes:
        """Return the next bytes; nothing at the end."""
        return self._lines.lines_of(self._file.read(most))

    def close(self) -> None:
        """Close what is read."""
        self._file.close()
