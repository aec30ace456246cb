"""The rows of a table and its changes, against a real server: what is read is what the server has at the end,
however often reading is interrupted and whoever writes meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, BINARY, STRING, Decimal, Timestamp, TimestampLtz
from penstock.engine.connectors.postgres_cdc import reader as reader_module
from penstock.engine.connectors.postgres_cdc.key_ranges import KeyRanges
from penstock.engine.connectors.postgres_cdc.slots import text_of
from tests.harness.cdc_reading import CdcReading, cdc_table, rows_there
from tests.harness.patience import await_that
from tests.harness.postgres_server import PostgresServer, logical_server

pytestmark = pytest.mark.xdist_group("postgres-cdc")
COLUMNS = {"id": BIGINT, "name": STRING, "n": BIGINT}


@pytest.fixture(scope="module")
def server() -> PostgresServer:
    return logical_server()


@pytest.fixture
def there(server: PostgresServer) -> Iterator[Any]:
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection
        for (slot,) in connection.execute(
            "SELECT slot_name FROM pg_replication_slots WHERE NOT active"
        ).fetchall():
            # a reader that was closed while it opened connections closes them a moment later
            with contextlib.suppress(psycopg.errors.ObjectInUse):
                connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])


def made(there: Any, name: str, rows: int = 0) -> None:
    there.execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY, name text, n bigint)")
    there.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    there.execute(f"INSERT INTO {name} SELECT g, 'row ' || g, g % 7 FROM generate_series(1, {rows}) g")


def until_equal(reading: CdcReading, server: PostgresServer, name: str) -> None:
    expected = rows_there(server, f"SELECT id, name, n FROM {name}")
    reading.reads(lambda: reading.fold == expected, f"the rows of {name}")


def test_rows_then_changes(server: PostgresServer, there: Any) -> None:
    made(there, "plain", 100)
    reading = CdcReading(cdc_table(server, "plain", COLUMNS))
    until_equal(reading, server, "plain")
    there.execute("UPDATE plain SET name = NULL, n = n + 1 WHERE id <= 10")
    there.execute("DELETE FROM plain WHERE id > 95")
    there.execute("INSERT INTO plain VALUES (-1, '', NULL), (1000, 'a,\"b\"\nc\\N', 2)")
    # the key itself changes, also onto one that was free a statement before
    there.execute("UPDATE plain SET id = id + 500 WHERE id BETWEEN 20 AND 30")
    until_equal(reading, server, "plain")
    reading.close()


@pytest.mark.parametrize("guarded", [True, False])
def test_a_table_that_changes_while_its_rows_are_read_again_and_again(
    server: PostgresServer, there: Any, guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the ranges of keys (the control) the same run reads rows twice and misses others."""
    name = f"handed_{str(guarded).lower()}"
    if not guarded:
        monkeypatch.setattr(KeyRanges, "counts", lambda self, keys, fields, commits: commits >= 0)
    made(there, name, 300)
    reading = CdcReading(cdc_table(server, name, COLUMNS), batch=20)
    for turn in range(6):
        reading.polls(2)
        reading.checkpoint()
        there.execute(f"UPDATE {name} SET n = n + 1 WHERE id % 5 = {turn % 5}")
        there.execute(f"DELETE FROM {name} WHERE id % 50 = {turn}")
        there.execute(f"INSERT INTO {name} VALUES ({1000 + turn}, 'new', 0), ({-turn}, 'first', 0)")
        # keys move between what was read and what was not
        there.execute(f"UPDATE {name} SET id = 2000 + {turn} WHERE id = {10 + turn}")
        there.execute(f"UPDATE {name} SET id = {-100 - turn} WHERE id = {290 - turn}")
        reading.polls(1)
        reading.restart()
    assert reading.position["snapshot"]
    expected = rows_there(server, f"SELECT id, name, n FROM {name}")
    if guarded:
        until_equal(reading, server, name)
        assert len(reading.counters) > 0
    else:
        seen = "marker"
        there.execute(f"INSERT INTO {name} VALUES (99999, '{seen}', 0)")
        reading.reads(lambda: reading.fold[(99999, seen, 0)], "the marker")
        assert reading.fold != expected
    reading.close()


def test_writers_at_work_during_the_hand_over(server: PostgresServer, there: Any) -> None:
    made(there, "busy", 2000)
    stop, written = threading.Event(), []

    def write(number: int) -> None:
        with psycopg.connect(server.url, autocommit=True) as connection:
            for turn in range(10_000):
                key = (turn * 37 + number) % 2500
                connection.execute(
                    "INSERT INTO busy VALUES (%s, 'w', %s) ON CONFLICT (id) DO UPDATE SET n = busy.n + 1",
                    [key, turn],
                )
                connection.execute("DELETE FROM busy WHERE id = %s", [(key * 7) % 2500])
                written.append(turn)
                if stop.is_set():
                    return

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    reading = CdcReading(cdc_table(server, "busy", COLUMNS), batch=300)
    for _ in range(4):
        reading.polls(2)
        reading.checkpoint()
        reading.restart()
    reading.reads(lambda: reading.counters.get("changes_received", 0) > 50, "changes of the writers")
    stop.set()
    for thread in threads:
        thread.join()
    assert written
    until_equal(reading, server, "busy")
    reading.close()


def test_a_large_transaction_is_one_piece_or_cut_where_a_restart_finds_it(
    server: PostgresServer, there: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(there, "large")
    whole = CdcReading(cdc_table(server, "large", COLUMNS))
    whole.reads(lambda: "slot_lag_bytes" in whole.counters, "the stream")
    there.execute("INSERT INTO large SELECT g, 'row ' || g, 1 FROM generate_series(1, 50000) g")
    sizes: list[int] = []
    whole.reads(lambda: sizes.append(len(whole.fold)) or whole.fold, "the transaction")
    assert set(sizes) <= {0, 50000}
    whole.close()
    monkeypatch.setattr(reader_module, "HELD_BYTES", 1 << 16)
    cut = CdcReading(cdc_table(server, "large", COLUMNS, slot__name="slot_cut"))
    cut.reads(lambda: "slot_lag_bytes" in cut.counters, "the stream")
    with there.transaction():
        there.execute("UPDATE large SET n = n + 1")
        there.execute("DELETE FROM large WHERE id % 2 = 0")
    cut.reads(lambda: cut.counters.get("transactions_cut"), "a piece of the transaction")
    cut.checkpoint()
    assert cut.position["partial"][1] > 0
    cut.restart()
    until_equal(cut, server, "large")
    cut.close()


def test_an_idle_table_does_not_hold_the_log(server: PostgresServer, there: Any) -> None:
    made(there, "idle", 3)
    there.execute("CREATE TABLE other (i int)")
    reading = CdcReading(cdc_table(server, "idle", COLUMNS))
    until_equal(reading, server, "idle")
    for turn in range(200):
        there.execute("INSERT INTO other VALUES (%s)", [turn])
    (wanted,) = there.execute("SELECT pg_current_wal_lsn()::text").fetchone()

    def passed() -> bool:
        reading.checkpoint()
        query = "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots WHERE slot_name = %s"
        return bool(there.execute(query, [wanted, "slot_idle"]).fetchone()[0])

    reading.reads(passed, "the slot passes what others wrote")
    # looked up in the background, perhaps later than the slot has moved
    reading.reads(lambda: "slot_lag_bytes" in reading.counters, "the lag of the slot")
    assert reading.counters["slot_lag_bytes"] >= 0
    reading.close()


def test_what_no_checkpoint_has_is_kept_by_the_server(server: PostgresServer, there: Any) -> None:
    made(there, "kept", 3)
    reading = CdcReading(cdc_table(server, "kept", COLUMNS))
    until_equal(reading, server, "kept")
    reading.checkpoint()
    there.execute("INSERT INTO kept VALUES (4, 'late', 4)")
    until_equal(reading, server, "kept")
    # not durable: the job goes back, and the row must come again
    reading.restart()
    assert reading.fold[(4, "late", 4)] == 0
    until_equal(reading, server, "kept")
    reading.close()


def test_a_terminated_connection_is_opened_again(server: PostgresServer, there: Any) -> None:
    made(there, "cut_off", 5)
    reading = CdcReading(cdc_table(server, "cut_off", COLUMNS))
    reading.reads(lambda: "slot_lag_bytes" in reading.counters, "the stream")
    there.execute(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'slot_cut_off'"
    )
    there.execute("DELETE FROM cut_off WHERE id < 3")
    until_equal(reading, server, "cut_off")
    assert reading.counters["reconnects"] >= 1
    reading.close()


def test_out_of_line_values_that_an_update_leaves_alone(server: PostgresServer, there: Any) -> None:
    made(there, "toast")
    there.execute("ALTER TABLE toast ALTER COLUMN name SET STORAGE EXTERNAL")
    there.execute("INSERT INTO toast SELECT g, repeat(chr(64 + g), 20000), 0 FROM generate_series(1, 3) g")
    reading = CdcReading(cdc_table(server, "toast", COLUMNS))
    until_equal(reading, server, "toast")
    there.execute("UPDATE toast SET n = id")
    until_equal(reading, server, "toast")
    assert sorted(row[2] for row in reading.fold) == [1, 2, 3]
    reading.close()


def test_what_cannot_be_followed_is_an_error(server: PostgresServer, there: Any) -> None:
    cases = {
        "DAT-5416": "TRUNCATE {}",
        "DAT-5405": "ALTER TABLE {0} REPLICA IDENTITY DEFAULT; UPDATE {0} SET n = 9",
        "DAT-5413": "ALTER TABLE {0} DROP COLUMN n; DELETE FROM {0}",
        "DAT-5417": "ALTER TABLE {0} RENAME TO {0}_old",
        "DAT-5408": "ALTER PUBLICATION penstock_slot_{0} DROP TABLE {0}",
    }
    for code, statements in cases.items():
        name = "broken_" + code[-2:]
        made(there, name, 3)
        reading = CdcReading(cdc_table(server, name, COLUMNS))
        until_equal(reading, server, name)
        there.execute(statements.format(name))
        with pytest.raises(PenstockError) as raised:
            reading.reads(lambda: False)
        assert raised.value.code == code and raised.value.hint
        reading.close()


def test_an_added_column_is_reported_and_read_once_it_is_declared(
    server: PostgresServer, there: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made(there, "wider", 3)
    reading = CdcReading(cdc_table(server, "wider", COLUMNS))
    until_equal(reading, server, "wider")
    reading.checkpoint()
    there.execute("UPDATE wider SET n = 4 WHERE id = 1")
    there.execute("ALTER TABLE wider ADD COLUMN more text DEFAULT 'x'")
    with caplog.at_level("WARNING", "penstock.postgres"):
        there.execute("UPDATE wider SET n = 5, more = 'y'; INSERT INTO wider VALUES (9, 'nine', 9, 'z')")
        until_equal(reading, server, "wider")
        assert "ALTER TABLE `wider` ADD `more` STRING" in caplog.text
        assert reading.counters["schema_changes"] == 1
        # from a position at which the table had no such column
        reading.declare(cdc_table(server, "wider", COLUMNS | {"more": STRING}))
        reading.reads(lambda: reading.fold[(9, "nine", 9, "z")], "the added column")
    # a row from before the column, the old row of an update after it, the rows of now
    assert [(row, weight) for row, weight in reading.fold.items() if row[0] == 1 and len(row) == 4] == [
        ((1, "row 1", 1, None), -1),
        ((1, "row 1", 4, None), 1),
        ((1, "row 1", 4, "x"), -1),
        ((1, "row 1", 5, "y"), 1),
    ]
    assert 'UPDATE public.wider SET "more" = "more"' in caplog.text
    reading.close()


def test_names_that_must_be_quoted(server: PostgresServer, there: Any) -> None:
    there.execute('CREATE SCHEMA "My ""Schema"".x"')
    place = '"My ""Schema"".x"."order.Lines ""1"""'
    there.execute(f'CREATE TABLE {place} ("Id" bigint PRIMARY KEY, "na""me" text, "select" bigint)')
    there.execute(f"ALTER TABLE {place} REPLICA IDENTITY FULL; INSERT INTO {place} VALUES (1, 'a', 1)")
    table = cdc_table(
        server,
        'order.Lines "1"',
        {"Id": BIGINT, 'na"me': STRING, "select": BIGINT},
        key=("Id",),
        slot__name="slot_quoted",
        schema_name='My "Schema".x',
    )
    reading = CdcReading(table)
    reading.reads(lambda: reading.fold[(1, "a", 1)])
    there.execute(f"INSERT INTO {place} VALUES (2, 'b', 2)")
    reading.reads(lambda: reading.fold[(2, "b", 2)])
    there.execute(f"ALTER TABLE {place} REPLICA IDENTITY DEFAULT; DELETE FROM {place}")
    with pytest.raises(PenstockError) as raised:
        reading.reads(lambda: False)
    assert f"ALTER TABLE {place} REPLICA IDENTITY FULL" in str(raised.value.hint)
    reading.close()


def test_a_slot_that_is_in_use_gone_or_further_on(server: PostgresServer, there: Any) -> None:
    made(there, "slots", 3)
    table = cdc_table(server, "slots", COLUMNS, connect__max_retries="0")
    first = CdcReading(table)
    until_equal(first, server, "slots")
    first.checkpoint()
    second = CdcReading(table)
    with pytest.raises(PenstockError, match="in use by server process") as raised:
        second.reads(lambda: False)
    assert raised.value.code == "DAT-5412"
    first.close()
    there.execute("INSERT INTO slots VALUES (4, 'x', 4)")
    active = "SELECT active FROM pg_replication_slots WHERE slot_name = 'slot_slots'"
    await_that(lambda: not there.execute(active).fetchone()[0], "the slot is free")
    second.restart()
    second.reads(lambda: "slot_lag_bytes" in second.counters, "the stream")
    second.checkpoint()
    second.reads(lambda: second.fold[(4, "x", 4)], "the row")
    second.checkpoint()

    at = first.position["position"]
    passed = (
        "SELECT confirmed_flush_lsn > %s::pg_lsn FROM pg_replication_slots WHERE slot_name = 'slot_slots'"
    )

    def confirmed() -> bool:
        second.checkpoint()
        return bool(there.execute(passed, [text_of(at)]).fetchone()[0])

    second.reads(confirmed, "the slot moves on")
    second.close()
    await_that(lambda: not there.execute(active).fetchone()[0], "the slot is free")
    there_is_a_loss = "changes are lost"
    first.restart()
    with pytest.raises(PenstockError, match=there_is_a_loss) as raised:
        first.reads(lambda: False)
    assert raised.value.code == "DAT-5411"
    there.execute("SELECT pg_drop_replication_slot('slot_slots')")
    first.restart()
    with pytest.raises(PenstockError, match="no longer exists") as raised:
        first.reads(lambda: False)
    assert raised.value.code == "DAT-5410"


def test_each_change_as_a_row_with_its_metadata(server: PostgresServer, there: Any) -> None:
    made(there, "logged", 2)
    metadata = {
        "op": ("op", STRING),
        "lsn": ("lsn", BIGINT),
        "at": ("op_ts", TimestampLtz(6)),
        "s": ("schema_name", STRING),
        "t": ("table_name", STRING),
    }
    table = cdc_table(
        server,
        "logged",
        {"id": BIGINT, "n": BIGINT},
        metadata=metadata,
        scan__read_changelog_as_append_only__enabled="true",
    )
    reading = CdcReading(table)
    reading.reads(lambda: len(reading.fold) == 2)
    there.execute("UPDATE logged SET n = 50 WHERE id = 1; DELETE FROM logged WHERE id = 2")
    reading.reads(lambda: len(reading.fold) == 5)
    rows = sorted(reading.fold, key=lambda row: (row[3], row[2] != "-U", row[2]))
    assert [(row[0], row[1], row[2]) for row in rows] == [
        (1, 1, "+I"),
        (2, 2, "+I"),
        (1, 1, "-U"),
        (1, 50, "+U"),
        (2, 2, "-D"),
    ]
    assert all(row[5:] == ("public", "logged") for row in rows)
    assert [row[4] is None for row in rows] == [True, True, False, False, False]
    (near,) = there.execute("SELECT abs(extract(epoch FROM now() - %s)) < 3600", [rows[-1][4]]).fetchone()
    assert near
    reading.close()


def test_latest_offset_reads_what_is_inserted_from_now_on(server: PostgresServer, there: Any) -> None:
    made(there, "tail", 3)
    reading = CdcReading(cdc_table(server, "tail", COLUMNS, scan__startup__mode="latest-offset"))
    reading.reads(lambda: "slot_lag_bytes" in reading.counters, "the stream")
    there.execute("INSERT INTO tail VALUES (4, 'four', 4)")
    reading.reads(lambda: reading.fold)
    assert reading.fold == {(4, "four", 4): 1}
    there.execute("UPDATE tail SET n = 0 WHERE id = 1")
    with pytest.raises(PenstockError) as raised:
        reading.reads(lambda: False)
    assert raised.value.code == "DAT-5414"
    reading.close()


def test_values_are_the_same_in_the_snapshot_and_in_the_stream(server: PostgresServer, there: Any) -> None:
    """Also where the database has settings of its own for the text form of values."""
    there.execute("CREATE TYPE feeling AS ENUM ('sad', 'ok')")
    there.execute("CREATE DOMAIN amount AS numeric(10, 2) CHECK (VALUE > 0); CREATE DOMAIN price AS amount")
    there.execute(
        "CREATE TABLE odd (id bigint PRIMARY KEY, m feeling, p price, a text[], t timestamp, z timestamptz, b bytea, i "
        "interval, f float8, r int4range, c char(5))"
    )
    there.execute("ALTER TABLE odd REPLICA IDENTITY FULL")
    values = (
        "'sad', 5.5, '{\"a,b\",NULL}', '0001-01-01', '2024-02-29 23:59:59.999999+05:30', '\\x00ff', '1 year -2 hours', "
        "'NaN', '[1,5)', 'ab'"
    )
    with psycopg.connect(server.database_url("template1"), autocommit=True) as connection:
        for setting in ("timezone = 'Asia/Kolkata'", "datestyle = German", "intervalstyle = sql_standard"):
            connection.execute(f"ALTER DATABASE postgres SET {setting}")
    columns = {
        "id": BIGINT,
        "m": STRING,
        "p": Decimal(12, 2),
        "a": STRING,
        "t": Timestamp(6),
        "z": TimestampLtz(6),
    }
    columns |= {"b": BINARY, "i": STRING, "f": STRING, "r": STRING, "c": STRING}
    there.execute(f"INSERT INTO odd VALUES (1, {values})")
    reading = CdcReading(cdc_table(server, "odd", columns))
    try:
        reading.reads(lambda: reading.fold, "the snapshot")
        there.execute(f"INSERT INTO odd VALUES (2, {values})")
        reading.reads(lambda: len(reading.fold) == 2, "the stream")
    finally:
        there.execute("ALTER DATABASE postgres RESET ALL")
        reading.close()
    first, second = sorted(reading.fold, key=lambda row: row[0])
    assert first[1:] == second[1:]
    assert (first[7], str(first[2]), first[8]) == ("1 year -02:00:00", "5.50", "NaN")
