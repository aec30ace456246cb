"""The session of a client without a network: messages in, bytes out."""

import random
import re
import struct

import pytest

from penstock.client.server.postgres import frontend_messages as frontend
from penstock.client.server.postgres.wire_session import NOTICE_AFTER_S, WireSession
from penstock.client.server.principal import LOCAL
from penstock.client.server.server_sessions import ClientAddress, ServerSessions
from penstock.client.session import Session
from tests.harness.length import of_length

ROWS = "(VALUES (1, 'a'), (2, 'b'), (3, NULL)) AS x (k, name)"


class Wire:
    """The connection of a test: keeps what is sent. Its clock only moves when it is told."""

    def __init__(self):
        self.data = bytearray()
        self.now = 0.0
        self.timers = []

    def send(self, data):
        self.data += data

    def monotonic_ms(self):
        return self.now

    def call_later(self, delay_s, call):
        self.timers.append((delay_s, call))
        return lambda: self.timers.clear()

    def take(self):
        """Return the tags and bodies of what was sent."""
        messages, data = [], bytes(self.data)
        self.data.clear()
        while data:
            length = int.from_bytes(data[1:5], "big")
            messages.append((data[:1].decode(), data[5 : 1 + length]))
            data = data[1 + length :]
        return messages


@pytest.fixture(scope="module")
def engine():
    session = Session({"bounded.backend": "duckdb"})
    session.execute(f"CREATE VIEW v AS SELECT * FROM {ROWS}")
    session.execute("CREATE TABLE g (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')")
    yield session
    session.close()


@pytest.fixture
def wire(engine):
    return Wire()


@pytest.fixture
def session(engine, wire):
    sessions = ServerSessions(lambda settings: engine, lambda: 0)
    session = WireSession(sessions.open(LOCAL, ClientAddress("postgres", "test")), wire, {"user": "me"})
    wire.data.clear()
    return session


def tags(messages):
    return "".join(tag for tag, _ in messages)


def query(session, wire, sql):
    session.handle(frontend.SimpleQuery(sql))
    return wire.take()


def ends(messages):
    return [body[:-1].decode() for tag, body in messages if tag == "C"]


def error_of(messages):
    (body,) = [body for tag, body in messages if tag == "E"]
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def test_a_simple_query(session, wire):
    messages = query(session, wire, "SELECT k, name FROM v ORDER BY k")
    assert tags(messages) == "TDDDCZ"
    assert messages[1][1] == b"\0\2\0\0\0\x011\0\0\0\x01a"
    assert messages[3][1] == b"\0\2\0\0\0\x013\xff\xff\xff\xff"
    assert ends(messages) == ["SELECT 3"] and messages[-1] == ("Z", b"I")


def test_several_statements_stop_at_the_first_error(session, wire):
    messages = query(session, wire, "SELECT 1; SELECT nothing; SELECT 2")
    assert tags(messages) == "TDCEZ"
    error = error_of(messages)
    assert (error["C"], error["P"]) == ("42703", "18")
    assert "SQL-1042" in error["M"]


def test_nothing_to_run(session, wire):
    assert tags(query(session, wire, " ; -- nothing\n")) == "IZ"


@pytest.mark.parametrize(
    ("sql", "tag"),
    [
        ("CREATE VIEW w AS SELECT 1 AS a", "CREATE VIEW"),
        ("CREATE OR REPLACE VIEW x AS SELECT 1 AS a", "CREATE VIEW"),
        ("DROP VIEW IF EXISTS w", "DROP VIEW"),
        ("SET 'parallelism.default' = '1'", "SET"),
        ("SET application_name TO 'x'", "SET"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET"),
        ("RESET ALL", "RESET"),
        ("SHOW TABLES", "SHOW"),
        ("SHOW server_version", "SHOW"),
        ("DISCARD ALL", "DISCARD ALL"),
        ("UNLISTEN *", "UNLISTEN"),
        ("DEALLOCATE ALL", "DEALLOCATE ALL"),
        ("EXPLAIN SELECT 1", "EXPLAIN"),
        ("WITH a AS (SELECT 1 AS x) SELECT * FROM a", "SELECT 1"),
        ("SUBSCRIBE SELECT * FROM v", "SELECT 3"),
    ],
)
def test_command_tags(session, wire, sql, tag):
    assert ends(query(session, wire, sql)) == [tag]


def test_parameters_are_shown_and_refused(session, wire):
    assert query(session, wire, "SET TimeZone = 'Europe/Berlin'")[0] == ("S", b"TimeZone\0Europe/Berlin\0")
    assert (
        b"2024-07-01 02:00:00+02"
        in query(session, wire, "SELECT CAST('2024-07-01T00:00:00Z' AS TIMESTAMP_LTZ(3))")[1][1]
    )
    query(session, wire, "RESET timezone")
    assert query(session, wire, "SHOW TimeZone")[1][1].endswith(b"UTC")
    assert error_of(query(session, wire, "SET client_encoding = 'LATIN1'"))["C"] == "22023"
    assert error_of(query(session, wire, "SET integer_datetimes = off"))["M"].endswith("[CLI-6227]")
    assert error_of(query(session, wire, "SET nothing = 1"))["C"] == "42704"
    assert "CLI-6226" in error_of(query(session, wire, "SET datestile = 1"))["M"]


def test_transactions_take_effect_at_once_and_say_so(session, wire):
    assert query(session, wire, "BEGIN")[-1] == ("Z", b"T")
    assert query(session, wire, "CREATE VIEW t1 AS SELECT 1 AS a")[-1] == ("Z", b"T")
    assert query(session, wire, "SELECT nothing")[-1] == ("Z", b"E")
    failed = query(session, wire, "SELECT 1")
    assert error_of(failed)["C"] == "25P02" and "CLI-6262" in error_of(failed)["M"]
    rolled_back = query(session, wire, "ROLLBACK")
    assert tags(rolled_back) == "NCZ" and rolled_back[-1] == ("Z", b"I")
    assert b"nothing is rolled back" in rolled_back[0][1]
    # it is there
    assert ends(query(session, wire, "DROP VIEW t1")) == ["DROP VIEW"]


def extended(session, wire, *messages):
    for message in messages:
        session.handle(message)
    session.handle(frontend.Sync())
    return wire.take()


def prepared(sql, *values, oids=(), formats=(), result=(), rows=0):
    return (
        frontend.Parse("", sql, oids),
        frontend.Bind("", "", formats, values, result),
        frontend.DescribeRequest("P", ""),
        frontend.Execute("", rows),
    )


def test_the_extended_protocol(session, wire):
    messages = extended(session, wire, *prepared("SELECT name FROM v WHERE k = $1", b"2"))
    assert tags(messages) == "12TDCZ"
    assert messages[3][1] == b"\0\1\0\0\0\1b"
    binary = struct.pack(">i", 1)
    messages = extended(
        session, wire, *prepared("SELECT k FROM v WHERE k = $1", binary, formats=(1,), result=(1,))
    )
    assert messages[3][1] == b"\0\1\0\0\0\4\0\0\0\1"


def test_statements_are_described(session, wire):
    messages = extended(
        session,
        wire,
        frontend.Parse("s", "SELECT name FROM v WHERE k = $1", ()),
        frontend.DescribeRequest("S", "s"),
    )
    assert tags(messages) == "1tTZ"
    assert messages[1][1] == struct.pack(">HI", 1, 23)
    messages = extended(
        session,
        wire,
        frontend.Parse("n", "SET x.y = 1", ()),
        frontend.DescribeRequest("S", "n"),
        frontend.Close("S", "s"),
    )
    assert tags(messages) == "1tn3Z"


def test_a_portal_is_read_in_parts(session, wire):
    query(session, wire, "BEGIN")
    first = extended(session, wire, *prepared("SELECT k FROM v ORDER BY k", rows=2))
    assert tags(first) == "12TDDsZ"
    assert tags(extended(session, wire, frontend.Execute("", 2))) == "DCZ"
    query(session, wire, "COMMIT")
    error = error_of(extended(session, wire, frontend.Execute("", 2)))
    assert error["C"] == "34000" and "CLI-6260" in error["M"]


def test_an_error_skips_to_sync(session, wire):
    messages = extended(session, wire, *prepared("SELECT nothing"), *prepared("SELECT 1"))
    assert tags(messages) == "EZ"
    assert tags(extended(session, wire, *prepared("SELECT 1"))) == "12TDCZ"


@pytest.mark.parametrize(
    ("messages", "state", "code"),
    [
        (prepared("SELECT 1", b"x"), "08P01", "CLI-6220"),
        (prepared("SELECT CAST($1 AS INT)", b"abc"), "22P02", "CLI-6223"),
        (prepared("SELECT CAST($1 AS INT)", b"abc", formats=(1,)), "22P03", "CLI-6223"),
        (prepared("SELECT 1", result=(0, 0)), "08P01", "CLI-6225"),
        (prepared("SELECT 1; SELECT 2"), "42601", "CLI-6260"),
        ((frontend.Bind("", "none", (), (), ()),), "26000", "CLI-6260"),
        ((frontend.Parse("a", "SELECT 1", ()), frontend.Parse("a", "SELECT 1", ())), "42P05", "CLI-6260"),
        ((frontend.FastPathCall(),), "08P01", "CLI-6220"),
    ],
)
def test_errors_of_the_extended_protocol(session, wire, messages, state, code):
    error = error_of(extended(session, wire, *messages))
    assert error["C"] == state and code in error["M"]


def test_cursors(session, wire):
    query(session, wire, "BEGIN")
    assert ends(query(session, wire, "DECLARE c NO SCROLL CURSOR FOR SELECT k FROM v ORDER BY k")) == [
        "DECLARE CURSOR"
    ]
    assert tags(query(session, wire, "FETCH FORWARD 2 FROM c")) == "TDDCZ"
    assert ends(query(session, wire, "MOVE 1 IN c")) == ["MOVE 1"]
    assert ends(query(session, wire, "FETCH ALL FROM c")) == ["FETCH 0"]
    assert ends(query(session, wire, "CLOSE c")) == ["CLOSE CURSOR"]
    error = error_of(query(session, wire, "FETCH 1 FROM c"))
    assert (error["C"], "CLI-6229" in error["M"]) == ("34000", True)
    query(session, wire, "ROLLBACK")
    query(session, wire, "DECLARE d CURSOR WITH HOLD FOR SELECT k FROM v; BEGIN; COMMIT")
    assert ends(query(session, wire, "FETCH d")) == ["FETCH 1"]
    query(session, wire, "CLOSE ALL")


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("FETCH BACKWARD 1 FROM c", "0A000"),
        ("DECLARE c SCROLL CURSOR FOR SELECT 1", "0A000"),
        ("DECLARE c CURSOR", "42601"),
        ("DECLARE c CURSOR FOR DROP VIEW v", "42601"),
        ("FETCH 1 FROM c WITH (TIMEOUT)", "42601"),
    ],
)
def test_cursors_that_are_refused(session, wire, sql, state):
    assert error_of(query(session, wire, sql))["C"] == state


def test_a_fetch_of_an_endless_result_ends_at_its_timeout(session, wire):
    query(session, wire, "DECLARE c CURSOR FOR SELECT k FROM g")
    messages = query(session, wire, "FETCH 3 FROM c")
    assert ends(messages) == ["FETCH 3"]
    wire.now = 0
    # the time is over at once: what is there comes, and the cursor stays open
    assert len(ends(query(session, wire, "FETCH ALL FROM c WITH (TIMEOUT = '0 s')"))) == 1
    assert ends(query(session, wire, "FETCH 2 FROM c")) == ["FETCH 2"]
    query(session, wire, "CLOSE c")


def copied(messages):
    return b"".join(body for tag, body in messages if tag == "d")


@pytest.mark.parametrize(
    ("sql", "data"),
    [
        ("COPY (SELECT k, name FROM v ORDER BY k) TO STDOUT", b"1\ta\n2\tb\n3\t\\N\n"),
        ("COPY v (name) TO STDOUT (FORMAT csv, HEADER, NULL 'none')", b"name\na\nb\nnone\n"),
        ("COPY (SELECT 'a,\"b' AS x) TO STDOUT CSV", b'"a,""b"\n'),
        ("COPY (SELECT '' AS x, NULL AS y) TO STDOUT CSV", b'"",\n'),
        ("COPY (SELECT 'a\tb\\c|' AS x) TO STDOUT (DELIMITER '|')", b"a\\tb\\\\c\\|\n"),
        (
            "COPY (SELECT 1 AS x) TO STDOUT (FORMAT binary)",
            b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\1\0\0\0\4\0\0\0\1" + b"\xff\xff",
        ),
    ],
)
def test_copy_to_the_client(session, wire, sql, data):
    messages = query(session, wire, sql)
    assert copied(messages) == data
    assert re.fullmatch("Hd+cCZ", tags(messages))


def test_copy_of_changes(session, wire):
    messages = query(session, wire, "COPY (SUBSCRIBE SELECT k FROM v) TO STDOUT")
    assert sorted(copied(messages).split()) == [b"+I", b"+I", b"+I", b"1", b"2", b"3"]
    assert ends(messages) == ["COPY 3"]


@pytest.mark.parametrize(
    "sql", ["COPY v TO 'file'", "COPY", "COPY v TO STDOUT (FORMAT xml)", "COPY (SELECT 1"]
)
def test_copies_that_are_refused(session, wire, sql):
    assert error_of(query(session, wire, sql))["C"] == "42601"


def test_copy_from_the_client(session, wire, tmp_path):
    query(
        session, wire, "DROP TABLE IF EXISTS t; CREATE TABLE t (k BIGINT, name STRING, b BINARY, a ARRAY<INT>) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'parquet')",
    )  # fmt: skip
    assert tags(query(session, wire, "COPY t FROM STDIN")) == "G"
    # two columns of four
    session.handle(frontend.CopyData(b"1\ta\n"))
    session.handle(frontend.CopyDone())
    failed = wire.take()
    assert tags(failed) == "EZ" and "CLI-6265" in error_of(failed)["M"]
    query(session, wire, "COPY t FROM STDIN")
    session.handle(frontend.CopyData(b"1\ta\\tb\\\\\t\\\\x00ff\t[1,2]\n2\t\\N"))
    session.handle(frontend.CopyData(b"\t\\N\t\\N\n"))
    session.handle(frontend.CopyDone())
    messages = wire.take()
    assert tags(messages) == "CZ" and ends(messages) == ["COPY 2"]
    rows = [body for tag, body in query(session, wire, "SELECT * FROM t ORDER BY k") if tag == "D"]
    assert b"a\tb\\" in rows[0] and b"\\x00ff" in rows[0] and b'{"1","2"}' in rows[0]
    assert rows[1].count(b"\xff\xff\xff\xff") == 3
    # the client gives up: nothing is written
    query(session, wire, "COPY t FROM STDIN CSV")
    session.handle(frontend.CopyData(b"3,x,,\n"))
    session.handle(frontend.CopyFail("enough"))
    error = error_of(wire.take())
    assert error["C"] == "57014" and "CLI-6264" in error["M"]
    assert query(session, wire, "SELECT COUNT(*) FROM t")[1][1].endswith(b"2")


def test_an_endless_select_is_cancelled_and_says_what_to_write(session, wire):
    sent = wire.send

    def send(data):
        sent(data)
        # rows have come: five seconds pass, then the user cancels
        if b"NOTICE" in wire.data:
            session.cancel()
        wire.now += NOTICE_AFTER_S * 1000

    wire.send = send
    messages = query(session, wire, "SELECT k FROM g")
    error = error_of(messages)
    assert error["C"] == "57014" and "CLI-6261" in error["M"]
    (notice,) = [body for tag, body in messages if tag == "N"]
    assert b"FETCH_COUNT" in notice and b"COPY" in notice and b"DECLARE" in notice


def test_a_statement_that_takes_too_long_is_cancelled(session, wire):
    query(session, wire, "SET statement_timeout = '2 s'")
    sent = wire.send

    def send(data):
        sent(data)
        if wire.timers:
            assert wire.timers[0][0] == 2
            wire.timers[0][1]()

    wire.send = send
    error = error_of(query(session, wire, "SELECT k FROM g"))
    assert error["C"] == "57014" and "statement_timeout" in error["M"]
    assert wire.timers == []


def test_endless_rows_that_are_updated_are_refused(session, wire):
    error = error_of(query(session, wire, "SELECT k % 2 AS m, COUNT(*) AS n FROM g GROUP BY k % 2"))
    assert error["C"] == "0A000" and "CLI-6224" in error["M"] and "SUBSCRIBE" in error["H"]


@pytest.mark.longer
def test_messages_in_any_order_end_in_errors_or_answers(session, wire):
    texts = [
        "SELECT 1",
        "SELECT nothing",
        "BEGIN",
        "ROLLBACK",
        "COPY v TO STDOUT",
        "DECLARE c CURSOR FOR SELECT 1",
    ]
    texts += ["FETCH 1 FROM c", "SELECT $1", "", "'", "SHOW ALL", "COPY v FROM STDIN", "CLOSE ALL"]
    for seed in range(of_length(20, 2_000)):
        choice = random.Random(seed)
        for _ in range(8):
            name, text = choice.choice(["", "a"]), choice.choice(texts)
            session.handle(
                choice.choice(
                    [
                        frontend.SimpleQuery(text),
                        frontend.Parse(name, text, ()),
                        frontend.Bind(name, choice.choice(["", "a"]), (), choice.choice([(), (b"1",)]), ()),
                        frontend.DescribeRequest(choice.choice("SP"), name),
                        frontend.Execute(name, choice.choice([0, 1])),
                        frontend.Close(choice.choice("SP"), name),
                        frontend.CopyData(b"x"),
                        frontend.CopyDone(),
                        frontend.CopyFail("x"),
                        frontend.Sync(),
                    ]
                )
            )
        session.handle(frontend.SimpleQuery("ROLLBACK"))
        session.handle(frontend.Sync())
        assert wire.take()[-1] == ("Z", b"I")
