"""The socket source: lines however they are cut, bad ones, and what a restored job may not pass over."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import STRING
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import ScanRequest
from penstock.engine.connectors.socket.source import MAX_LINE_BYTES, SocketReader, whole_lines
from tests.harness.patience import PATIENCE_S

TABLE = "CREATE TABLE lines (k STRING, v INT) WITH ('connector'='socket','hostname'='localhost','port'='{port}'{more})"


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("localhost", 0)) as listener:
        yield listener


def send(server: socket.socket, data: bytes) -> None:
    """Send bytes to the first who connects, then close."""

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()


def table(server: socket.socket, more: str = "") -> str:
    return TABLE.format(port=server.getsockname()[1], more=more)


@given(st.binary(max_size=200), st.lists(st.integers(1, 30), max_size=60))
def test_lines_are_the_same_however_they_are_cut(data: bytes, cuts: list[int]) -> None:
    sizes, offset = iter(cuts), 0

    def receive(most: int) -> bytes:
        nonlocal offset
        piece = data[offset : offset + min(next(sizes, most), most)]
        offset += len(piece)
        return piece

    blocks = list(whole_lines(receive, "x"))
    assert b"".join(blocks) == data
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_a_line_without_end_is_refused() -> None:
    with pytest.raises(PenstockError, match="line of more than 16 MiB") as raised:
        list(whole_lines(lambda most: b"x" * most, "here:1"))
    assert raised.value.code == "DAT-4116"
    received = iter([b"x" * MAX_LINE_BYTES, b"\n", b""])
    assert sum(map(len, whole_lines(lambda _: next(received), "here:1"))) == MAX_LINE_BYTES + 1


def test_rows_come_until_the_sender_closes(server: socket.socket) -> None:
    send(server, b'{"k":"a","v":1}\n\n{"k":"b"}\r\n{"v":3,"k":"a"}')
    with penstock.connect() as connection:
        cursor = connection.cursor()
        cursor.execute(table(server))
        assert list(cursor.execute("SELECT v, k FROM lines")) == [(1, "a"), (None, "b"), (3, "a")]


def test_a_line_that_cannot_be_read(server: socket.socket) -> None:
    send(server, b'{"k":"a","v":1}\n{"k":"b","v":"x"}\n')
    with penstock.connect() as connection:
        cursor = connection.cursor()
        cursor.execute(table(server))
        with pytest.raises(penstock.Error, match="line 2: column v"):
            list(cursor.execute("SELECT * FROM lines"))


def test_lines_that_cannot_be_read_are_skipped_and_counted(server: socket.socket) -> None:
    send(server, b'{"k":"a","v":1}\nnonsense\n{"k":"c","v":3}\n')
    with penstock.connect() as connection:
        cursor = connection.cursor()
        cursor.execute(table(server, ",'on-error'='skip'"))
        assert list(cursor.execute("SELECT k FROM lines")) == [("a",), ("c",)]


def test_nobody_listens(server: socket.socket) -> None:
    statement = table(server)
    server.close()
    with penstock.connect() as connection:
        cursor = connection.cursor()
        cursor.execute(statement)
        with pytest.raises(penstock.Error, match="cannot connect to localhost") as raised:
            list(cursor.execute("SELECT * FROM lines"))
        assert "DAT-4115" in str(raised.value)


@pytest.mark.parametrize("policy", ["fail", "continue"])
def test_a_restored_job_says_that_lines_are_lost(server: socket.socket, tmp_path: Path, policy: str) -> None:
    settings = {"execution.checkpointing.dir": str(tmp_path), "execution.checkpointing.interval": "20 ms"}
    insert = "INSERT INTO nothing SELECT * FROM lines"

    def statements() -> list[str]:
        more = f",'socket.on-restore'='{policy}'"
        return [table(server, more), "CREATE TABLE nothing (k STRING, v INT) WITH ('connector'='blackhole')"]

    with penstock.connect(settings={**settings, "table.dml-sync": "false"}) as connection:
        cursor = connection.cursor()
        for statement in statements():
            cursor.execute(statement)
        cursor.execute(insert)
        sender, _ = server.accept()
        sender.sendall(b'{"k":"a","v":1}\n')
    sender.close()
    send(server, b'{"k":"b","v":2}\n')
    with penstock.connect(settings=settings) as connection:
        cursor = connection.cursor()
        for statement in statements():
            cursor.execute(statement)
        cursor.execute(insert)
        job = cursor.job
        assert job is not None
        assert job.wait(PATIENCE_S)
        if policy == "continue":
            assert job.error is None
        else:
            assert "a socket cannot be read again" in str(job.error)


class _Watched:
    """A connection whose ``recv`` waits for ``shutdown``, and a moment for a ``close`` by another thread."""

    def __init__(self) -> None:
        self.receiving, self.is_shut, self.is_closed = (threading.Event() for _ in range(3))
        self.was_closed_under_recv = False

    def recv(self, _most: int) -> bytes:
        self.receiving.set()
        assert self.is_shut.wait(PATIENCE_S)
        self.was_closed_under_recv = self.is_closed.wait(0.02)
        return b""

    def shutdown(self, _how: int) -> None:
        self.is_shut.set()

    def close(self) -> None:
        self.is_closed.set()

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def test_a_connection_is_closed_by_the_thread_that_reads_it() -> None:
    watched: Any = _Watched()
    schema = Schema((Field("k", STRING),))
    reader = SocketReader(
        watched,
        "here:1",
        ScanRequest(
            CatalogTable("t", schema, schema, {"connector": "socket"}),
            *((0,), None, 10, ManualClock(), Services()),
        ),
        None,
    )
    assert watched.receiving.wait(PATIENCE_S)
    reader.close()
    assert watched.is_closed.wait(PATIENCE_S)
    assert not watched.was_closed_under_recv
