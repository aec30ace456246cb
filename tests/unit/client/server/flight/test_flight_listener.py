"""The listener of Flight SQL by stock drivers: ADBC, pandas, polars, and plain pyarrow.flight."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import adbc_driver_manager
import pandas
import polars
import pyarrow as pa
import pyarrow.flight as flight
import pytest
import trustme
from adbc_driver_flightsql import DatabaseOptions

from penstock.client.server.flight import catalog_rows, flight_server
from penstock.client.server.flight.flight_listener import FlightListener
from penstock.client.server.flight.limits import FlightLimits
from penstock.client.server.flight.messages import pack, pb
from penstock.engine.api.clock import ManualClock
from tests.harness.flight_server import TestAuthenticator, flight_listener, jobs_of
from tests.harness.length import of_length
from tests.harness.patience import await_that

ENDLESS = "CREATE TABLE endless (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '200')"


@pytest.fixture(scope="module")
def shared() -> Iterator[FlightListener]:
    with flight_listener() as listener:
        yield listener


def connected(listener: FlightListener, **options: str) -> Any:
    return adbc.connect(f"grpc://{listener.address}", db_kwargs=options, autocommit=True)


@pytest.fixture
def driver(shared: FlightListener) -> Iterator[Any]:
    with connected(shared) as connection, connection.cursor() as cursor:
        yield cursor


def file_table(cursor: Any, name: str, folder: Path) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{folder}', 'format' = 'parquet'"
    cursor.execute(f"CREATE TABLE {name} (a BIGINT, b STRING) WITH ({options})")


def test_adbc_queries_with_values_and_reads_arrow(driver: Any) -> None:
    driver.execute("SELECT ? + 1 AS a, ? AS b", (41, "x"))
    assert [column[:2] for column in driver.description] == [("a", pa.int32()), ("b", pa.string())]
    assert driver.fetchall() == [(42, "x")]
    driver.execute("SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t (k, v)")
    assert driver.fetch_arrow_table().to_pydict() == {"k": [1, 2], "v": ["a", None]}


def test_adbc_declares_writes_and_reads_tables(driver: Any, tmp_path: Path) -> None:
    file_table(driver, "written", tmp_path)
    driver.execute("INSERT INTO written VALUES (1, 'x'), (2, 'y')")
    driver.executemany("INSERT INTO written VALUES (?, ?)", [(3, "z"), (4, None)])
    assert driver.rowcount == 2
    assert driver.adbc_ingest("written", pa.table({"b": ["w"], "a": [5]}), mode="append") == 1
    driver.execute("SELECT * FROM written ORDER BY a")
    assert driver.fetchall() == [(1, "x"), (2, "y"), (3, "z"), (4, None), (5, "w")]


def test_rows_are_uploaded_into_tables_of_the_session(driver: Any) -> None:
    rows = pa.table({"k": [1, 2]})
    assert driver.adbc_ingest("uploaded", rows, mode="create", temporary=True) == 2
    assert driver.adbc_ingest("uploaded", pa.table({"k": [3]}), mode="append", temporary=True) == 1
    driver.execute("SELECT SUM(k) FROM uploaded")
    assert driver.fetchone() == (6,)
    driver.adbc_ingest("uploaded", pa.table({"k": [9]}), mode="replace", temporary=True)
    driver.execute("SELECT SUM(k) FROM uploaded")
    assert driver.fetchone() == (9,)


def test_what_an_upload_cannot_do_is_refused_with_a_way_out(driver: Any, tmp_path: Path) -> None:
    file_table(driver, "kept", tmp_path)
    rows = pa.table({"a": [1], "b": ["x"]})
    for name, mode, temporary, words in (
        ("kept", "create", False, "exists already"),
        ("kept", "replace", False, "is not replaced"),
        ("kept", "replace", True, "is a table that was created"),
        ("missing", "create", False, "names no connector"),
        ("missing", "append", False, "does not exist"),
    ):
        with pytest.raises(adbc_driver_manager.OperationalError, match=words) as caught:
            driver.adbc_ingest(name, rows, mode=mode, temporary=temporary)
        assert "CLI-6234" in str(caught.value) and "hint: " in str(caught.value)


def test_catalogs_are_browsed(driver: Any, shared: FlightListener) -> None:
    with connected(shared) as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE orders (id BIGINT NOT NULL, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'datagen')"
        )
        cursor.execute("CREATE VIEW big AS SELECT id FROM orders")
        cursor.execute("CREATE DATABASE sales")
        (found,) = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        assert found["catalog_name"] == "default_catalog"
        names = [each["db_schema_name"] for each in found["catalog_db_schemas"]]
        assert names[:2] == ["default_database", "sales"]
        tables = found["catalog_db_schemas"][0]["db_schema_tables"]
        assert [(each["table_name"], each["table_type"]) for each in tables] == [
            ("big", "VIEW"),
            ("orders", "TABLE"),
        ]
        assert tables[1]["table_columns"][0]["column_name"] == "id"
        only = connection.adbc_get_objects(
            depth="tables", table_name_filter="b%", table_types_filter=["VIEW"]
        )
        assert len(only.read_all().to_pylist()[0]["catalog_db_schemas"][0]["db_schema_tables"]) == 1
        assert connection.adbc_get_table_schema("orders") == pa.schema([("id", pa.int64())])
        assert connection.adbc_get_table_types() == ["TABLE", "VIEW", "MATERIALIZED VIEW"]
        assert connection.adbc_get_info()["vendor_name"] == "penstock"


def test_errors_are_clean_sentences_with_a_caret(driver: Any) -> None:
    with pytest.raises(adbc_driver_manager.OperationalError) as caught:
        driver.execute("SELECT nothing\nFROM (VALUES (1)) AS t (a)")
    text = str(caught.value)
    assert 'error[SQL-1042]: column "nothing" does not exist' in text
    assert "  1 | SELECT nothing\n    |        ^^^^^^^" in text
    assert "Traceback" not in text and ".py" not in text
    driver.execute("SELECT 1 / a FROM (VALUES (1), (0)) AS t (a)")
    driver.execute("SELECT 1")  # the session goes on


def test_a_failure_of_ours_is_a_sentence_and_a_line_of_the_log(
    driver: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("what nobody else is to see")

    assert hasattr(catalog_rows, "table_types")
    monkeypatch.setattr(catalog_rows, "table_types", broken)
    with pytest.raises(adbc_driver_manager.Error) as caught:
        driver.connection.adbc_get_table_types()
    assert "CLI-6239" in str(caught.value) and "nobody else" not in str(caught.value)
    assert "nobody else" in caplog.text


def test_an_endless_result_comes_row_by_row_and_ends_with_its_cursor(shared: FlightListener) -> None:
    with connected(shared) as connection:
        with connection.cursor() as cursor:
            cursor.execute(ENDLESS)
            cursor.execute("SELECT a FROM endless")
            assert all(cursor.fetchone() is not None for _ in range(3))
            (job,) = jobs_of(shared)[-1:]
        await_that(lambda: job.state.terminal, "the end of the query")


def test_rows_that_are_updated_come_as_changes(driver: Any) -> None:
    driver.execute(ENDLESS)
    driver.execute("SELECT a % 2 AS k, COUNT(*) AS n FROM endless GROUP BY a % 2")
    assert [column[0] for column in driver.description] == ["op", "k", "n"]
    ops = {driver.fetchone()[0] for _ in range(20)}
    assert {"+I", "-U", "+U"} <= ops
    # rows that come later have places between those before; b is not selected
    driver.execute("SELECT a FROM (SELECT a, -a AS b FROM endless) AS t ORDER BY b")
    assert [column[0] for column in driver.description] == ["op", "a"]
    assert [driver.fetchone()[0] for _ in range(3)] == ["+I"] * 3
    driver.execute("SUBSCRIBE SELECT a FROM (VALUES (1)) AS t (a)")
    assert driver.fetchall() == [("+I", 1)]


def test_a_result_that_ends_has_its_final_rows(driver: Any) -> None:
    driver.execute("SET 'execution.runtime-mode' = 'streaming'")
    driver.execute("SELECT k, COUNT(*) AS n FROM (VALUES (1), (1), (2)) AS t (k) GROUP BY k ORDER BY n DESC")
    assert driver.fetchall() == [(1, 2), (2, 1)]
    driver.execute("RESET 'execution.runtime-mode'")


def test_cancel_from_another_thread_wakes_a_fetch(driver: Any) -> None:
    driver.execute("CREATE TABLE silent (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1')")
    driver.execute("SELECT a FROM silent WHERE a < 0")
    threading.Timer(0.1, driver.adbc_cancel).start()
    with pytest.raises(adbc_driver_manager.Error, match=r"(?i)cancel"):
        driver.fetchone()
    driver.execute("SELECT 1")
    assert driver.fetchone() == (1,)


def test_pandas_and_polars_read(shared: FlightListener) -> None:
    with connected(shared) as connection:
        query = "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (k, v)"
        assert pandas.read_sql(query, connection).to_dict("list") == {"k": [1, 2], "v": ["a", "b"]}
        assert polars.read_database(query, connection).rows() == [(1, "a"), (2, "b")]


# -- plain Flight


def info_of(client: flight.FlightClient, message: Any, *headers: tuple[bytes, bytes]) -> flight.FlightInfo:
    options = flight.FlightCallOptions(headers=list(headers))
    return client.get_flight_info(flight.FlightDescriptor.for_command(pack(message)), options)


@pytest.fixture
def client(shared: FlightListener) -> Iterator[flight.FlightClient]:
    with flight.connect(f"grpc://{shared.address}") as client:
        yield client


def query(sql: str) -> Any:
    return pb.CommandStatementQuery(query=sql)


def test_a_statement_runs_once_whether_nobody_fetches_or_two_do(
    client: flight.FlightClient, tmp_path: Path
) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json'"
    info_of(client, query(f"CREATE TABLE once (a BIGINT) WITH ({options})"))
    info = info_of(client, query("INSERT INTO once VALUES (1)"))
    for _ in range(2):
        assert client.do_get(info.endpoints[0].ticket).read_all().num_rows == 0
    info_of(client, query("INSERT INTO once VALUES (2)"))
    rows = client.do_get(
        info_of(client, query("SELECT a FROM once ORDER BY a")).endpoints[0].ticket
    ).read_all()
    assert rows.to_pydict() == {"a": [1, 2]}


def test_a_select_waits_for_its_reader_and_can_be_read_again(
    shared: FlightListener, client: flight.FlightClient
) -> None:
    before = len(jobs_of(shared))
    info_of(client, query(ENDLESS.replace("endless", "waiting")))
    info = info_of(client, query("SELECT a FROM waiting LIMIT 2"))
    assert info.schema == pa.schema([("a", pa.int64())])
    assert len(jobs_of(shared)) == before
    for _ in range(2):
        assert client.do_get(info.endpoints[0].ticket).read_all().num_rows == 2
    assert len(jobs_of(shared)) == before + 2


def test_a_query_is_cancelled_by_its_flight_info(shared: FlightListener, client: flight.FlightClient) -> None:
    info_of(client, query(ENDLESS.replace("endless", "stopped")))
    info = info_of(client, query("SELECT a FROM stopped"))
    reader = client.do_get(info.endpoints[0].ticket)
    assert reader.read_chunk().data.num_rows
    (job,) = jobs_of(shared)[-1:]
    body = pb.CancelFlightInfoRequest(info=info.serialize()).SerializeToString()
    (answer,) = client.do_action(flight.Action("CancelFlightInfo", body))
    assert pb.ActionCancelQueryResult.FromString(answer.body.to_pybytes()).result == 1
    await_that(lambda: job.state.terminal, "the end of the query")
    (answer,) = client.do_action(
        flight.Action("CancelQuery", pack(pb.ActionCancelQueryRequest(info=info.serialize())))
    )
    with pytest.raises(flight.FlightServerError, match="CLI-6230"):
        client.do_get(info.endpoints[0].ticket)


def test_metadata_commands_have_the_columns_of_the_format(client: flight.FlightClient) -> None:
    info_of(client, query("CREATE TABLE keyed (b INT NOT NULL, a INT NOT NULL, PRIMARY KEY (a, b) NOT ENFORCED) "
                          "WITH ('connector' = 'blackhole')"))  # fmt: skip
    for message, rows in (
        (pb.CommandGetCatalogs(), 1),
        (pb.CommandGetDbSchemas(catalog="default_catalog", db_schema_filter_pattern="def%"), 1),
        (pb.CommandGetDbSchemas(catalog="nowhere"), 0),
        (pb.CommandGetPrimaryKeys(table="keyed"), 2),
        (pb.CommandGetExportedKeys(table="keyed"), 0),
        (pb.CommandGetImportedKeys(table="keyed"), 0),
        (pb.CommandGetCrossReference(pk_table="keyed", fk_table="keyed"), 0),
        (pb.CommandGetXdbcTypeInfo(), 13),
        (pb.CommandGetXdbcTypeInfo(data_type=93), 1),
        (pb.CommandGetSqlInfo(info=[0, 8, 99_999]), 2),
    ):
        info = info_of(client, message)
        table = client.do_get(info.endpoints[0].ticket).read_all()
        assert (table.num_rows, table.schema) == (rows, info.schema), message.DESCRIPTOR.name
        descriptor = flight.FlightDescriptor.for_command(pack(message))
        assert client.get_schema(descriptor).schema == info.schema


def test_session_options_are_settings_and_the_current_namespace(client: flight.FlightClient) -> None:
    def options(**values: str) -> Any:
        return {
            name.replace("__", "."): pb.SessionOptionValue(string_value=each) for name, each in values.items()
        }

    info_of(client, query("CREATE DATABASE shop"))
    request = pb.SetSessionOptionsRequest(
        session_options=options(schema="shop", parallelism__default="2", nope="1")
    )
    (answer,) = client.do_action(flight.Action("SetSessionOptions", request.SerializeToString()))
    errors = pb.SetSessionOptionsResult.FromString(answer.body.to_pybytes()).errors
    assert {name: error.value for name, error in errors.items()} == {
        "nope": pb.SetSessionOptionsResult.INVALID_NAME
    }
    (answer,) = client.do_action(flight.Action("GetSessionOptions", b""))
    found = pb.GetSessionOptionsResult.FromString(answer.body.to_pybytes()).session_options
    assert (found["schema"].string_value, found["parallelism.default"].string_value) == ("shop", "2")
    (answer,) = client.do_action(flight.Action("CloseSession", b""))
    assert pb.CloseSessionResult.FromString(answer.body.to_pybytes()).status == pb.CloseSessionResult.CLOSED


def test_bytes_of_anybody_else_are_refused(client: flight.FlightClient) -> None:
    for command in (b"", b"\xff\xfe", b"penstock.statement/1\n{", b"penstock.statement/1\n{}", b"SELECT 1"):
        with pytest.raises(flight.FlightServerError, match="CLI-6232") as caught:
            client.get_flight_info(flight.FlightDescriptor.for_command(command))
        assert json.loads(caught.value.extra_info)["sqlstate"] in {"08P01", "0A000"}
    with pytest.raises(flight.FlightServerError, match="CLI-6232"):
        client.do_get(flight.Ticket(b"anything"))
    with pytest.raises(flight.FlightServerError, match="CLI-6232"):
        list(client.do_action(flight.Action("penstock.nothing", b"")))
    with pytest.raises(flight.FlightServerError, match="CLI-6021"):
        list(client.do_action(flight.Action("BeginTransaction", b"")))
    with pytest.raises(flight.FlightServerError, match="CLI-6236"):
        descriptor = flight.FlightDescriptor.for_command(pack(pb.CommandStatementUpdate(query="SELECT 1")))
        writer, _ = client.do_put(descriptor, pa.schema([]))
        writer.close()


# -- ends


_CLIENT = """
import sys, adbc_driver_flightsql.dbapi as adbc
cursor = adbc.connect("grpc://" + sys.argv[1], autocommit=True).cursor()
cursor.execute(sys.argv[2])
cursor.execute("SELECT a FROM endless")
cursor.fetchone()
print("reads", flush=True)
while cursor.fetchone():
    pass
"""


def test_a_killed_client_ends_its_query() -> None:
    with flight_listener() as listener:
        command = [sys.executable, "-c", _CLIENT, listener.address, ENDLESS]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"reads\n"
            (job,) = jobs_of(listener)
            assert not job.state.terminal
            process.send_signal(signal.SIGKILL)
            await_that(lambda: job.state.terminal, "the end of the query")


def test_close_ends_open_streams_and_pending_statements_with_an_error() -> None:
    with flight_listener() as listener, flight.connect(f"grpc://{listener.address}") as client:
        info_of(client, query(ENDLESS))
        readers = [
            client.do_get(info_of(client, query("SELECT a FROM endless")).endpoints[0].ticket)
            for _ in range(3)
        ]
        assert all(reader.read_chunk().data.num_rows for reader in readers)
        info_of(client, query("CREATE TABLE sink (a BIGINT) WITH ('connector' = 'blackhole')"))
        info_of(client, query("SET 'table.dml-sync' = 'true'"))
        failed: list[BaseException] = []

        def insert() -> None:
            try:
                info_of(client, query("INSERT INTO sink SELECT a FROM endless"))
            except flight.FlightError as error:
                failed.append(error)

        thread = threading.Thread(target=insert)
        thread.start()
        await_that(lambda: len(jobs_of(listener)) == 4, "the job of the INSERT")
        listener.close()
        thread.join()
        assert "CLI-6237" in str(failed[0])
        for reader in readers:
            with pytest.raises(flight.FlightError, match="the server closes"):
                while reader.read_chunk():
                    pass


@pytest.mark.longer
def test_many_endless_streams_at_once() -> None:
    with flight_listener() as listener, connected(listener) as first, first.cursor() as cursor:
        cursor.execute(ENDLESS)
        with flight.connect(f"grpc://{listener.address}") as client:
            info_of(client, query(ENDLESS))
            infos = [info_of(client, query("SELECT a FROM endless")) for _ in range(of_length(20, 50))]
            readers = [client.do_get(info.endpoints[0].ticket) for info in infos]
            for _ in range(2):
                assert all(reader.read_chunk().data.num_rows for reader in readers)
            for reader in readers:
                reader.cancel()
            await_that(lambda: all(job.state.terminal for job in jobs_of(listener)), "the end of all")


# -- who


def one(uri: str, options: dict[str, str]) -> Any:
    with adbc.connect(uri, db_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone()


def test_users_and_tokens() -> None:
    # a length that base64 pads: drivers in Go send no padding
    users = TestAuthenticator({"ada": "pwd"}, {"secret-token": "robot"})
    with flight_listener(users) as listener:
        uri = f"grpc://{listener.address}"
        for options in ({}, {"username": "ada", "password": "no"}, {"username": "bob", "password": "pwd"}):
            with pytest.raises(adbc_driver_manager.Error, match="not authenticated") as caught:
                one(uri, options)
            assert "pw" not in str(caught.value)
        with connected(listener, username="ada", password="pwd") as ada, ada.cursor() as cursor:
            cursor.execute("SET 'parallelism.default' = '2'")
            cursor.execute("SET 'parallelism.default'")
            assert cursor.fetchone() == ("parallelism.default", "2")
        header = {DatabaseOptions.AUTHORIZATION_HEADER.value: "Bearer secret-token"}
        with connected(listener, **header) as robot, robot.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)
            assert [each.server.principal.name for each in listener.clients.all()] == ["robot"]


def test_a_session_is_found_by_its_cookie_and_by_no_other_principal() -> None:
    users = TestAuthenticator(tokens={"one": "a", "two": "b"})
    with flight_listener(users) as listener:
        found: list[str] = []

        class Cookies(flight.ClientMiddleware):
            def received_headers(self, headers: Any) -> None:
                found.extend(headers.get("set-cookie", ()))

        class CookiesFactory(flight.ClientMiddlewareFactory):
            def start_call(self, info: Any) -> flight.ClientMiddleware:
                return Cookies()

        token = (b"authorization", b"Bearer one")
        with flight.connect(f"grpc://{listener.address}", middleware=[CookiesFactory()]) as client:
            info_of(client, query("SET 'parallelism.default' = '3'"), token)
        cookie = (b"cookie", found[0].partition(";")[0].encode())
        ask = query("SET 'parallelism.default'")
        for bearer, value in ((b"Bearer one", "3"), (b"Bearer two", "1")):
            # another connection: only the cookie leads to the session
            with flight.connect(f"grpc://{listener.address}") as client:
                headers = ((b"authorization", bearer), cookie)
                ticket = info_of(client, ask, *headers).endpoints[0].ticket
                options = flight.FlightCallOptions(headers=list(headers))
                assert client.do_get(ticket, options).read_all().to_pydict()["value"] == [value]


def test_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    with flight_listener(tls=(tmp_path / "cert.pem", tmp_path / "key.pem"), host="localhost") as listener:
        options = {DatabaseOptions.TLS_ROOT_CERTS.value: authority.cert_pem.bytes().decode()}
        with adbc.connect(f"grpc+tls://{listener.address}", db_kwargs=options, autocommit=True) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)
            cursor.close()
        with pytest.raises(adbc_driver_manager.Error), connected(listener) as plain, plain.cursor() as cursor:
            cursor.execute("SELECT 1")


# -- limits


def test_limits() -> None:
    limits = FlightLimits(message_bytes=1_000, upload_bytes=10_000, prepared=2, tickets=2)
    with flight_listener(limits=limits) as listener, flight.connect(f"grpc://{listener.address}") as client:
        numbers = ", ".join(f"({n})" for n in range(1_000))
        info = info_of(client, query(f"SELECT a FROM (VALUES {numbers}) AS t (a)"))
        sizes = [chunk.data.nbytes for chunk in client.do_get(info.endpoints[0].ticket)]
        assert len(sizes) >= 4 and max(sizes) <= 2_000
        for _ in range(2):
            info_of(client, query("SELECT 1"))
        with pytest.raises(flight.FlightServerError, match="CLI-6230"):
            client.do_get(info.endpoints[0].ticket)
        request = pack(pb.ActionCreatePreparedStatementRequest(query="SELECT 1"))
        with pytest.raises(flight.FlightServerError, match="CLI-6233"):
            for _ in range(3):
                list(client.do_action(flight.Action("CreatePreparedStatement", request)))
        refused = pytest.raises(adbc_driver_manager.Error, match="CLI-6235")
        with connected(listener) as connection, connection.cursor() as cursor, refused:
            cursor.adbc_ingest("much", pa.table({"a": range(10_000)}), mode="create", temporary=True)


def test_a_session_that_is_idle_is_closed_and_new_ones_are_refused_at_the_end() -> None:
    clock = ManualClock()
    with (
        flight_listener(clock=clock, limits=FlightLimits(idle_s=60)) as listener,
        flight.connect(f"grpc://{listener.address}") as client,
    ):
        info_of(client, query("SELECT 1"))
        assert len(listener.clients.all()) == 1
        clock.advance(61_000)
        await_that(lambda: not listener.clients.all(), "the end of the idle session")
        listener.stop_accepting()
        with pytest.raises(flight.FlightUnavailableError, match="CLI-6238"):
            info_of(client, query("SELECT 1"))


def test_an_address_that_is_taken() -> None:
    from penstock.catalog.errors import PenstockError

    with flight_listener() as listener:
        port = int(listener.address.rpartition(":")[2])
        with pytest.raises(PenstockError, match="CLI-6203"), flight_listener(port=port):
            pass


def test_every_command_of_the_server_is_one_of_the_format() -> None:
    assert all(hasattr(pb, name) for name in flight_server._METADATA)
