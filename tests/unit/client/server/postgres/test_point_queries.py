"""Point queries over the PostgreSQL wire: answered between other messages, with the same bytes."""

import socket
import struct
import threading

import psycopg
import pyarrow as pa
import pytest

from penstock.catalog.settings import Settings
from penstock.client.execution.engine_state import EngineState
from penstock.client.server.postgres import frontend_messages as frontend
from penstock.client.server.postgres.wire_session import WireSession
from penstock.client.server.principal import LOCAL
from penstock.client.server.server_sessions import ClientAddress, ServerSessions
from penstock.client.session import Session
from tests.harness.patience import await_that
from tests.harness.postgres_wire import postgres_server
from tests.unit.client.server.postgres.test_frontend_messages import startup, tagged
from tests.unit.client.server.postgres.test_wire_session import Wire

ROWS = {"k": [1, 2, 3, 3], "name": ["a", "\u00e9", None, "d"], "price": [1.5, 2.5, None, 4.0]}
VIEW = (
    "CREATE MATERIALIZED VIEW m AS SELECT k, name, price, COUNT(*) AS n FROM source GROUP BY k, name, price"
)
SQL = "SELECT name, n, price * 2 AS twice FROM m WHERE k = $1"


@pytest.fixture(scope="module")
def engine():
    settings = {"bounded.backend": "duckdb", "execution.checkpointing.interval": "50 ms"}
    shared = EngineState(Settings(settings), is_shared=True)
    first = Session({}, engine=shared)
    first.register("source", pa.table(ROWS), stream=True)
    first.execute(VIEW)
    await_that(lambda: first.execute("SELECT COUNT(*) AS c FROM m").final_rows()["c"][0].as_py() == 4)
    yield shared
    shared.jobs.all()[0].cancel()
    shared.close()


@pytest.fixture
def sessions(engine):
    """Two sessions of one engine; the index is built."""
    opened = ServerSessions(lambda settings: Session(settings, engine=engine), lambda: 0)
    made = []
    for name in ("first", "second"):
        wire = Wire()
        session = WireSession(opened.open(LOCAL, ClientAddress("postgres", name)), wire, {"user": "me"})
        session.handle(frontend.Parse("s", SQL, ()))
        for message in messages(b"1"):
            session.handle(message)
        wire.data.clear()
        made.append((session, wire))
    return made


def messages(value, form=0, result=0):
    bound = frontend.Bind("", "s", (form,), (value,), (result,))
    return [bound, frontend.DescribeRequest("P", ""), frontend.Execute("", 0), frontend.Sync()]


@pytest.mark.parametrize("result", [0, 1])
@pytest.mark.parametrize(
    ("value", "form"),
    [
        (b"1", 0),
        (b"2", 0),
        (b"3", 0),
        (b"99", 0),
        (None, 0),
        ((3).to_bytes(8, "big"), 1),
        (b"abc", 0),
        (b"99999999999999999999", 0),
        (b"\0", 1),
    ],
)
def test_the_bytes_are_those_of_a_worker(sessions, value, form, result):
    (later, later_wire), (now, now_wire) = sessions
    handed_over = []
    for message in messages(value, form, result):
        later.handle(message)
        if not now.handle_now(message):
            handed_over.append(type(message))
            now.handle(message)
    # a number that no BIGINT has is compared by the backend
    is_usual = value is None or len(value) < 10
    assert handed_over == ([] if is_usual else [frontend.Execute, frontend.Sync])
    # nothing is sent before it is asked for: one write for all
    assert not (is_usual and now_wire.data)
    now.flush()
    assert bytes(now_wire.data) == bytes(later_wire.data)


def test_a_part_of_the_rows_and_the_rest(sessions):
    (later, later_wire), (now, now_wire) = sessions
    asked = [*messages(b"3")[:1], *(frontend.Execute("", 1) for _ in range(3)), frontend.Sync()]
    for message in asked:
        later.handle(message)
        assert now.handle_now(message)
    now.flush()
    assert bytes(now_wire.data) == bytes(later_wire.data)
    assert bytes(now_wire.data).count(b"s\0\0\0\4") == 2


@pytest.mark.parametrize(
    "message",
    [
        frontend.SimpleQuery("SELECT 1"),
        frontend.Parse("", "SELECT 1", ()),
        frontend.Terminate(),
        frontend.Bind("", "other", (), (), ()),
        frontend.Execute("nothing", 0),
    ],
)
def test_what_may_wait_is_left_to_a_worker(sessions, message):
    session, wire = sessions[1]
    session.handle(frontend.Parse("other", "SELECT k FROM m", ()))
    wire.data.clear()
    assert not session.handle_now(message)
    assert not wire.data


def test_a_text_that_was_parsed_before_is_parsed_at_once(sessions):
    session, _ = sessions[1]
    assert session.handle_now(frontend.Parse("", SQL, ()))
    session.handle(frontend.SimpleQuery("SET 'table.local-time-zone' = 'Asia/Tokyo'"))
    assert not session.handle_now(frontend.Parse("", SQL, ()))
    session.handle(frontend.SimpleQuery("RESET 'table.local-time-zone'"))


def test_after_an_error_all_is_skipped_up_to_sync(sessions):
    session, wire = sessions[1]
    for message in (*messages(b"abc")[:1], *messages(b"1")[:3]):
        assert session.handle_now(message)
    # not a message that ends the connection
    assert not session.handle_now(frontend.Terminate())
    assert session.handle_now(frontend.Sync())
    session.flush()
    assert [tag for tag, _ in wire.take()] == ["E", "Z"]


def test_a_wait_for_the_first_state_of_a_view_is_cancelled(engine):
    opened = ServerSessions(lambda settings: Session(settings, engine=engine), lambda: 0)
    wire = Wire()
    session = WireSession(opened.open(LOCAL, ClientAddress("postgres", "waits")), wire, {"user": "me"})
    for sql in (
        "CREATE TABLE endless (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '10')",
        "SET 'execution.checkpointing.interval' = '1 h'",
        "CREATE MATERIALIZED VIEW late AS SELECT COUNT(*) AS n FROM endless",
    ):
        session.handle(frontend.SimpleQuery(sql))
    wire.data.clear()
    waiting = threading.Thread(target=session.handle, args=(frontend.SimpleQuery("SELECT n FROM late"),))
    waiting.start()
    # until it runs: a cancel that comes before cancels nothing
    await_that(lambda: session.cancel() or not waiting.is_alive())
    assert b"CLI-6261" in wire.data
    session.handle(frontend.SimpleQuery("DROP MATERIALIZED VIEW late"))


def test_pipelined_queries_are_answered_by_no_worker(engine):
    with postgres_server(session=lambda settings: Session(settings, engine=engine)) as server:
        where = f"host=127.0.0.1 port={server.port} user=me dbname=me"
        with psycopg.connect(where, autocommit=True) as connection:
            ask = "SELECT name FROM m WHERE k = %s"
            for _ in range(7):
                assert connection.execute(ask, (1,), prepare=True).fetchall() == [("a",)]
            submitted = []
            submit = server.workers.submit
            server.workers.submit = lambda *words: submitted.append(words) or submit(*words)
            for key, name in ((1, "a"), (2, "\u00e9")) * 20:
                assert connection.execute(ask, (key,), prepare=True).fetchall() == [(name,)]
            assert not submitted
        with socket.create_connection(("127.0.0.1", server.port)) as stranger:
            stranger.sendall(startup(user="me", database="me"))
            received = bytearray()
            until(stranger, received, 1)
            parse = tagged(b"P", b"s\0" + SQL.encode() + b"\0\0\0")
            once = tagged(b"B", b"\0s\0\0\0\0\1" + struct.pack(">i", 1) + b"1\0\0") + tagged(b"E", b"\0" * 5)
            # more than are answered at once: a worker has the rest
            stranger.sendall(parse + (once + tagged(b"S")) * 200)
            until(stranger, received, 201)
            assert received.count(b"SELECT 1\0") == 200


def until(stranger, received, count):
    """Read up to so many ReadyForQuery."""
    while received.count(b"Z\0\0\0\5I") < count:
        piece = stranger.recv(1 << 16)
        assert piece, bytes(received)
        received += piece
