"""The listener over real sockets: cancel, killed, slow and too many clients, TLS, garbage."""

import random
import socket
import ssl
import struct
import subprocess
import sys
import threading

import psycopg
import pytest
import trustme

from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.client.execution.engine_state import EngineState
from penstock.client.server.postgres.listener import WireConnection, WireLimits
from penstock.client.session import Session
from tests.harness.length import of_length
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.postgres_wire import Users, postgres_server, server_tls
from tests.unit.client.server.postgres.test_frontend_messages import startup, tagged

ENDLESS = (
    "CREATE TABLE IF NOT EXISTS g (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100000')"
)


def running_jobs(server):
    return [
        job
        for session in server.sessions.all()
        for job in session.connection.session.jobs()
        if not job.state.terminal
    ]


def test_a_cancel_request_stops_the_statement(address, server):
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(ENDLESS)
        with connection.cursor() as cursor:
            stream = cursor.stream("SELECT k FROM g")
            next(stream)
            connection.cancel_safe()
            with pytest.raises(psycopg.errors.QueryCanceled):
                for _ in stream:
                    pass
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_wrong_key_cancels_nothing(address, server):
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(ENDLESS)
        with connection.cursor() as cursor:
            stream = cursor.stream("SELECT k FROM g")
            next(stream)
            process = connection.info.backend_pid
            with socket.create_connection(("127.0.0.1", server.port)) as other:
                other.sendall(struct.pack(">iiiI", 16, 80877102, process, 0))
                assert other.recv(1) == b""
            assert next(stream) is not None
            stream.close()


KILLED = """
import psycopg, sys
connection = psycopg.connect(sys.argv[1], autocommit=True)
connection.execute(sys.argv[2])
for row in connection.cursor().stream("SELECT k FROM g"):
    print("row", flush=True)
"""


def test_a_client_that_is_lost_leaves_the_insert_that_it_waits_for():
    engine = EngineState(Settings({}), is_shared=True)
    with postgres_server(session=lambda settings: Session(settings, engine=engine)) as server:
        with psycopg.connect(
            f"host=127.0.0.1 port={server.port} user=me dbname=me", autocommit=True
        ) as other:
            other.execute(ENDLESS)
            other.execute("CREATE TABLE hole (k BIGINT) WITH ('connector' = 'blackhole')")
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(startup(user="me", database="me"))
            # waits for ever: the stream has no end
            client.sendall(tagged(b"Q", b"SET 'table.dml-sync' = 'true'; INSERT INTO hole SELECT k FROM g\0"))
            await_that(lambda: engine.jobs.all() and engine.jobs.all()[0].metrics().rows_out)
        await_that(lambda: not server.connections)
        (job,) = engine.jobs.all()
        written = job.metrics().rows_out
        await_that(lambda: job.state.terminal or job.metrics().rows_out > 2 * written)
        assert not job.state.terminal
        job.cancel()
        assert job.wait(PATIENCE_S)
    engine.close()


def test_a_killed_client_ends_its_query(address, server):
    client = subprocess.Popen([sys.executable, "-c", KILLED, address, ENDLESS], stdout=subprocess.PIPE)
    try:
        assert client.stdout.readline() == b"row\n"
        assert running_jobs(server)
    finally:
        client.kill()
        client.communicate()
    await_that(lambda: not running_jobs(server))


def open_socket(server):
    client = socket.create_connection(("127.0.0.1", server.port))
    client.sendall(startup(user="me"))
    read_until(client, b"Z")
    return client


def read_until(client, tag):
    """Read messages up to one of a tag; return their tags."""
    tags, data = b"", b""
    while not tags.endswith(tag):
        piece = client.recv(1 << 16)
        if not piece:
            return tags
        data += piece
        while len(data) >= 5 and len(data) > (length := int.from_bytes(data[1:5], "big")):
            tags, data = tags + data[:1], data[1 + length :]
    return tags


def test_a_slow_client_stops_its_statement_and_nothing_grows():
    limits = WireLimits(output_bytes=1 << 20)
    with postgres_server(limits=limits) as server:
        client = open_socket(server)
        client.sendall(tagged(b"Q", ENDLESS.encode() + b"\0"))
        read_until(client, b"Z")
        client.sendall(tagged(b"Q", b"SELECT k, repeat('x', 1000) AS x FROM g\0"))
        (connection,) = server.connections.values()
        await_that(lambda: connection._unwritten + connection._transport.get_write_buffer_size() >= 1 << 20)
        # nobody reads: what waits is bounded, by the limit and one piece
        assert connection._unwritten + connection._transport.get_write_buffer_size() < 32 << 20
        # another client is served meanwhile
        with open_socket(server) as other:
            other.sendall(tagged(b"Q", b"SELECT 1\0"))
            assert read_until(other, b"Z") == b"TDCZ"
        client.close()
        await_that(lambda: not running_jobs(server))


def test_tls_and_users():
    authority, users = trustme.CA(), Users({"ann": "secret"})
    options = {"tls": server_tls(authority), "requires_tls": True}
    with postgres_server(users, **options) as server, authority.cert_pem.tempfile() as root:
        to = f"host=localhost hostaddr=127.0.0.1 port={server.port} dbname=ann sslrootcert={root}"
        connection = psycopg.connect(f"{to} user=ann password=secret sslmode=verify-full")
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.close()
        messages = []
        for user, password in (("ann", "wrong"), ("eve", "secret")):
            with pytest.raises(psycopg.OperationalError) as error:
                psycopg.connect(f"{to} user={user} password={password} sslmode=verify-full")
            messages.append(str(error.value).partition("FATAL")[2])
        assert messages[0] == messages[1] and "CLI-6210" in messages[0]
        with pytest.raises(psycopg.OperationalError, match="CLI-6221"):
            psycopg.connect(f"{to} user=ann password=secret sslmode=disable")


def test_passwords_over_tls():
    authority, users = trustme.CA(), Users({"ann": "secret"})
    with postgres_server(users, tls=server_tls(authority), by_password=True) as server:
        to = f"host=127.0.0.1 port={server.port} user=ann dbname=ann password=secret"
        for mode in ("require", "disable"):
            with psycopg.connect(f"{to} sslmode={mode}") as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
        # SCRAM where there is no TLS
        assert users.asked == ["ann"]


def test_plain_bytes_behind_the_request_for_tls_are_refused():
    authority = trustme.CA()
    with postgres_server(tls=server_tls(authority)) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(struct.pack(">ii", 8, 80877103) + startup(user="me"))
            assert b"CLI-6220" in client.recv(1 << 16)
        # a client that never speaks TLS behind it ends alone
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(struct.pack(">ii", 8, 80877103))
            assert client.recv(1) == b"S"
            client.sendall(b"no TLS at all")
            with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
                assert client.recv(1 << 10) != b""
                raise ConnectionError


def test_limits():
    with postgres_server(limits=WireLimits(connections=1, start_s=0.2, message_bytes=1000)) as server:
        with open_socket(server) as client:
            with socket.create_connection(("127.0.0.1", server.port)) as other:
                assert b"CLI-6266" in other.recv(1 << 16)
            client.sendall(tagged(b"Q", b"x" * 1000 + b"\0"))
            assert read_until(client, b"E") == b"E"
            assert client.recv(1) == b""
        await_that(lambda: not server.connections)
        # nothing is sent: the connection ends
        with socket.create_connection(("127.0.0.1", server.port)) as silent:
            assert b"CLI-6266" in silent.recv(1 << 16)
        await_that(lambda: not server.sessions.all())


def test_an_address_in_use_is_refused(server):
    from penstock.client.server.postgres.listener import PostgresListener

    second = PostgresListener(server.sessions, server.authenticator, port=server.port)
    with pytest.raises(PenstockError) as error:
        second.start()
    assert error.value.code == "CLI-6203" and str(server.port) in str(error.value)


def test_no_more_clients_are_accepted_while_others_go_on():
    with postgres_server() as server, open_socket(server) as client:
        server.stop_accepting()
        await_that(lambda: not can_connect(server))
        client.sendall(tagged(b"Q", b"SELECT 1\0"))
        assert read_until(client, b"Z") == b"TDCZ"


def can_connect(server):
    try:
        socket.create_connection(("127.0.0.1", server.port)).close()
    # reset: the listener was closed with this connection in its queue
    except (ConnectionRefusedError, ConnectionResetError):
        return False
    return True


@pytest.mark.longer
def test_garbage_ends_its_own_connection_only(server):
    choice = random.Random(7)
    with open_socket(server) as bystander:
        for number in range(of_length(60, 100_000)):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(
                    (startup(user="me") if number % 2 else b"") + choice.randbytes(choice.randint(1, 200))
                )
                client.shutdown(socket.SHUT_WR)
                while client.recv(1 << 16):
                    pass
        bystander.sendall(tagged(b"Q", b"SELECT 1\0"))
        assert read_until(bystander, b"Z") == b"TDCZ"
    await_that(lambda: len(server.sessions.all()) == len(server.connections))


def test_a_client_that_goes_while_its_session_is_opened_leaves_none(server, monkeypatch):
    def lost(connection, data):
        raise ConnectionResetError

    monkeypatch.setattr(WireConnection, "send", lost)
    opened = []
    opening = server.sessions.open
    monkeypatch.setattr(server.sessions, "open", lambda *who: opened.append(opening(*who)) or opened[-1])
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(startup(user="me"))
        assert client.recv(1) == b""
    assert len(opened) == 1
    assert server.sessions.find(opened[0].session_id) is None


def test_the_listener_has_one_thread_whatever_is_connected(server):
    clients = [open_socket(server) for _ in range(30)]
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("penstock-postgres") >= 1
    # idle clients hold no worker
    assert sum(name.startswith("penstock-postgres-statement") for name in names) < 30
    for client in clients:
        client.close()
