"""A connection: its statements, its copies without a Python object a message, and its errors."""

from __future__ import annotations

import dataclasses
import itertools
import threading

import psycopg
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.postgres_cdc import link as link_module
from penstock.engine.connectors.postgres_cdc.link import Address, CopyMessages, PostgresLink
from tests.harness.postgres_server import logical_server

pytestmark = pytest.mark.xdist_group("postgres-cdc")
SECRET = "S3CR3T-7f1c"


def address() -> Address:
    server = logical_server()
    return Address(server.host, server.port, "postgres", server.user, SECRET)


def test_statements_and_literals() -> None:
    link = PostgresLink(address())
    assert link.ask("SELECT $1::text, NULL", ["a'b"]) == [["a'b", None]]
    assert link.ask(f"SELECT {link.literal(chr(39) + chr(92))}") == [["'\\"]]
    with pytest.raises(PenstockError) as raised:
        link.ask("SELECT * FROM nowhere")
    assert raised.value.code == "DAT-5402" and raised.value.sqlstate == "42P01" and not raised.value.retriable
    link.close()


def drained(link: PostgresLink, limit: int | None = None) -> list[bytes]:
    messages, found, more = CopyMessages(), list[bytes](), True
    while more:
        more = link.drain(messages.limited(limit))
        ends = [0, *messages.ends[: messages.count].tolist()]
        whole = bytes(messages.data[: messages.used])
        found += [whole[start:end] for start, end in itertools.pairwise(ends)]
        messages.clear()
    return found


def test_a_copy_is_taken_in_pieces_and_messages_larger_than_the_buffer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_module, "_BUFFER_BYTES", 1000)
    link = PostgresLink(address())
    link.start_copy("COPY (SELECT g, repeat('x', g * 10) FROM generate_series(1, 300) g) TO STDOUT")
    assert drained(link, 7) == [f"{g}\t{'x' * g * 10}\n".encode() for g in range(1, 301)]
    # another statement may follow
    assert link.ask("SELECT 1") == [["1"]]
    link.start_copy("COPY (SELECT 1 / (5 - g) FROM generate_series(1, 9) g) TO STDOUT")
    with pytest.raises(PenstockError, match="ended the copy") as raised:
        drained(link)
    assert raised.value.sqlstate == "22012"
    link.close()


def test_a_server_that_is_not_there_and_one_that_goes_away() -> None:
    with pytest.raises(PenstockError) as raised:
        PostgresLink(dataclasses.replace(address(), host="/nowhere"))
    assert raised.value.code == "DAT-5401" and raised.value.retriable
    with pytest.raises(PenstockError) as raised:
        PostgresLink(dataclasses.replace(address(), database="nothing_" + SECRET))
    assert raised.value.code == "DAT-5401" and not raised.value.retriable
    assert SECRET not in str(raised.value.detail)
    link = PostgresLink(address())
    link.start_copy("COPY (SELECT generate_series(1, 100000000)) TO STDOUT")
    with psycopg.connect(logical_server().url, autocommit=True) as there:
        there.execute("SELECT pg_terminate_backend(%s)", [link.process])
    with pytest.raises(PenstockError) as raised:
        drained(link)
    assert raised.value.code == "DAT-5402" and raised.value.retriable
    link.close()


def test_a_connection_is_closed_while_another_thread_waits_for_its_answer() -> None:
    link, raised = PostgresLink(address()), list[PenstockError]()

    def ask() -> None:
        try:
            link.ask("SELECT pg_sleep(600)")
        except PenstockError as error:
            raised.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    at_work = "SELECT wait_event FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
    with psycopg.connect(logical_server().url, autocommit=True) as there:
        while there.execute(at_work, [link.process]).fetchone() is None:
            pass
        link.close()
        asking.join()
    assert [error.code for error in raised] == ["DAT-5402"]
    with pytest.raises(PenstockError, match="is closed"):
        link.ask("SELECT 1")
