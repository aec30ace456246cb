"""Stdin as a table: a sample leaves the bytes there, lines are rows once they have arrived, and all is read
once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.connectors.filesystem.listing import resolve
from penstock.engine.connectors.filesystem.standard_input import ArrivedLines, StandardInput
from penstock.engine.formats.file_task import CsvDialect, FileTask

FIELDS = (Field("id", BIGINT), Field("n", STRING))


class Pipe:
    """What a sender has sent: ``send`` it; an empty one ends it."""

    def __init__(self, *sent: bytes) -> None:
        self._sent: queue.Queue[bytes] = queue.Queue()
        self._next: list[bytes] = []
        self._lock = threading.Lock()
        for data in sent:
            self.send(data)

    def send(self, data: bytes) -> None:
        self._sent.put(data)

    def read(self) -> bytes:
        with self._lock:
            return self._next.pop() if self._next else self._sent.get()

    def wait(self, timeout_s: float | None) -> bool:
        with self._lock:
            if not self._next:
                try:
                    self._next.append(self._sent.get(timeout=timeout_s))
                except queue.Empty:
                    return False
            return True

    def stdin(self, is_terminal: Callable[[], bool] = lambda: False) -> StandardInput:
        return StandardInput(self.read, self.wait, is_terminal)


def lines(
    pipe: Pipe, dialect: CsvDialect | None = None, kind: str = "csv", documents: bool = False
) -> ArrivedLines:
    task = FileTask(
        resolve("x")[0], "stdin", FIELDS, FIELDS, None, dialect or CsvDialect(), documents=documents
    )
    return ArrivedLines(task, kind, pipe.stdin(), lambda: None)


def arrived(reader: ArrivedLines, count: int) -> list[tuple[object, ...]]:
    """Return the next rows, as soon as so many have arrived."""
    rows: list[tuple[object, ...]] = []
    while len(rows) < count:
        if reader.ready():
            piece = reader.next()
            assert piece is not None, f"stdin ended after {rows}"
            rows += [tuple(row.values()) for row in piece.rows.to_pylist()]
    return rows


def test_a_sample_waits_for_whole_lines_and_takes_nothing() -> None:
    pipe = Pipe(b"id,", b"n\n1,", b"a\n")
    stdin = pipe.stdin()
    assert stdin.sample(1000, 2) == (b"id,n\n1,a\n", False)
    # what is there is enough: the same answer at once
    assert stdin.sample(1000, 2) == (b"id,n\n1,a\n", False)
    pipe.send(b"2,b\n")
    pipe.send(b"")
    assert stdin.sample(1000, 4) == (b"id,n\n1,a\n2,b\n", True)
    stdin.claim()
    assert stdin.next(lambda: False) == b"id,n\n1,a\n2,b\n"
    assert stdin.next(lambda: False) == b""


@pytest.mark.parametrize("late", [True, False])
def test_a_long_wait_for_a_sample_is_reported_once(late: bool, caplog: pytest.LogCaptureFixture) -> None:
    pipe = Pipe(b"id,n\n1,a\n")
    waits: list[float | None] = []

    def wait(timeout_s: float | None) -> bool:
        waits.append(timeout_s)
        # late: the first wait ends without a line
        return not (late and len(waits) == 1) and pipe.wait(timeout_s)

    with caplog.at_level("INFO", "penstock.files"):
        StandardInput(pipe.read, wait, lambda: False).sample(1000, 2)
    assert caplog.messages == ["waiting for the first lines of stdin, which name the columns"] * late
    assert waits == ([3.0, None, 0.1] if late else [3.0, 0.1])


def test_a_sample_is_no_longer_than_asked() -> None:
    assert Pipe(b"1\n" * 10, b"2\n" * 10).stdin().sample(15, 1) == (b"1\n" * 10, False)


def test_stdin_is_read_once_and_never_from_a_terminal() -> None:
    stdin = Pipe(b"a\n", b"").stdin()
    stdin.claim()
    for again in (stdin.claim, lambda: stdin.sample(10, 1)):
        with pytest.raises(PenstockError, match="read by an earlier query") as caught:
            again()
        assert caught.value.code == "DAT-4126"
    with pytest.raises(PenstockError, match="stdin is a terminal"):
        Pipe().stdin(lambda: True).sample(10, 1)


def test_lines_are_rows_as_soon_as_they_are_whole() -> None:
    pipe = Pipe(b"n,id\nx,1\ny,")
    reader = lines(pipe)
    # columns by the header's names; the line that has begun is no row yet
    assert arrived(reader, 1) == [(1, "x")]
    assert not reader.ready()
    pipe.send(b"2\n")
    assert arrived(reader, 1) == [(2, "y")]
    # the last line may lack its end
    pipe.send(b"z,3")
    pipe.send(b"")
    assert arrived(reader, 1) == [(3, "z")]
    while not reader.ready():
        pass
    assert reader.next() is None
    reader.close()


@pytest.mark.parametrize(
    ("kind", "dialect", "sent", "rows"),
    [
        ("csv", CsvDialect(header=False), [b"\xef\xbb\xbf1,a\n2,b\n"], [(1, "a"), (2, "b")]),
        ("csv", CsvDialect(header=False, multiline=True), [b'1,"a\n', b'b"\n'], [(1, "a\nb")]),
        # a character of utf-16 arrives in two halves
        (
            "csv",
            CsvDialect(encoding="utf-16"),
            ["id,n\n1,é\n".encode("utf-16")[:-3], "é\n".encode("utf-16-le")[-3:]],
            [(1, "é")],
        ),
        ("json", CsvDialect(), [b'{"id": 1, "n": "a"}\n{"n": "b"}\n'], [(1, "a"), (None, "b")]),
    ],
)
def test_lines_of_every_dialect(
    kind: str, dialect: CsvDialect, sent: list[bytes], rows: list[tuple[object, ...]]
) -> None:
    reader = lines(Pipe(*sent, b""), dialect, kind)
    assert arrived(reader, len(rows)) == rows
    reader.close()


def test_elements_of_an_array_arrive_one_by_one() -> None:
    pipe = Pipe(b'[{"id": 1,\n"n": "a"},', b' {"n": "b"}]\n', b"")
    reader = lines(pipe, kind="json", documents=True)
    assert arrived(reader, 2) == [(1, "a"), (None, "b")]
    reader.close()


def test_a_bad_line_is_its_own_fault_and_no_header_no_rows() -> None:
    reader = lines(Pipe(b"id,n\n1,a\nx,b\n3,c\n", b""))
    while not reader.ready():
        pass
    piece = reader.next()
    assert piece is not None
    assert piece.rows.num_rows == 2
    assert [record.column for record in piece.bad] == ["id"]
    empty = lines(Pipe(b""))
    while not empty.ready():
        pass
    assert empty.next() is None


def test_closing_ends_a_read_that_waits() -> None:
    pipe = Pipe()
    stdin, closed = pipe.stdin(), threading.Event()
    closed.set()
    assert stdin.next(closed.is_set) == b""
