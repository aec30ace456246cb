"""VARIANT on the wires: the text of each value, by Flight SQL, our own client, PostgreSQL's protocol and HTTP."""

from __future__ import annotations

import adbc_driver_flightsql.dbapi as adbc
import psycopg
import pytest

import penstock
from penstock.client.session import Session
from tests.harness.flight_server import flight_listener
from tests.harness.postgres_wire import postgres_server
from tests.harness.web_listener import web_server

LINES = """\
{"k": 1, "v": {"b": [1.50, null], "a": "é"}}
{"k": 2, "v": "text"}
{"k": 3, "v": null}
{"k": 4}
"""
TEXTS = ['{"a":"é","b":[1.5,null]}', '"text"', "null", None]
VALUES = [{"a": "é", "b": [1.5, None]}, "text", None, None]
QUERY = "SELECT k, v, ARRAY[v] AS w, v:b[0] AS x, v:a AS y FROM docs ORDER BY k"
GROUPED = "SELECT v, COUNT(*) AS n FROM (SELECT * FROM docs UNION ALL SELECT * FROM docs) GROUP BY v"


@pytest.fixture
def table(tmp_path):
    (tmp_path / "a.jsonl").write_text(LINES)
    return (
        "CREATE TEMPORARY TABLE docs (k INT, v VARIANT) WITH ('connector' = 'filesystem', "
        f"'path' = '{tmp_path}/a.jsonl', 'format' = 'json')"
    )


def check(rows, grouped):
    assert [row[1] for row in rows] == TEXTS
    assert [row[2] for row in rows] == [[text] for text in TEXTS]
    assert [row[3:] for row in rows] == [("1.5", '"é"'), (None, None), (None, None), (None, None)]
    assert sorted(grouped, key=str) == sorted([(text, 2) for text in TEXTS], key=str)


def test_our_client_and_flight_sql(table):
    with flight_listener() as listener:
        with penstock.connect(f"penstock://{listener.address}") as connection:
            connection.execute(table)
            check(connection.execute(QUERY).fetchall(), connection.execute(GROUPED).fetchall())
            frame = connection.execute(QUERY).fetch_df()
            assert frame["v"].tolist()[:3] == TEXTS[:3] and frame["v"].isna().tolist()[3]
        with adbc.connect(f"grpc://{listener.address}", autocommit=True) as driver, driver.cursor() as cursor:
            cursor.execute(table.replace("TEMPORARY ", ""))
            cursor.execute(QUERY)
            rows = cursor.fetchall()
            cursor.execute(GROUPED)
            check(rows, cursor.fetchall())


# its type there is json, which drivers parse
def test_postgres(table):
    with postgres_server() as server:
        address = f"host=127.0.0.1 port={server.port} user=me dbname=me"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(table)
            for binary in (False, True):
                rows = connection.execute(QUERY, binary=binary).fetchall()
                assert [row[1] for row in rows] == VALUES
                assert [row[3:] for row in rows] == [(1.5, "é"), (None, None), (None, None), (None, None)]
            found = connection.execute("SELECT k FROM docs WHERE v:b[0]::DOUBLE = %s", (1.5,)).fetchall()
            assert found == [(1,)]


def test_http(table):
    with web_server(Session({"bounded.backend": "duckdb"})) as server:
        assert server.post("/api/v1/query", {"sql": table}).status == 200
        answer = server.post("/api/v1/query", {"sql": QUERY}).json
        assert [column["type"] for column in answer["columns"]][1] in ("VARIANT", "STRING")
        assert answer["data"][1] == TEXTS
