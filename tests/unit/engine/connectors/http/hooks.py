"""Rows sent to a server, for the tests beside."""

from __future__ import annotations

import pyarrow as pa

import penstock
from tests.harness.http_server import Server

ROWS = pa.table({"k": range(5), "t": ["a", "b'", None, 'd"', "e,\n"]})
RECORDS = [
    {"k": 0, "t": "a"},
    {"k": 1, "t": "b'"},
    {"k": 2, "t": None},
    {"k": 3, "t": 'd"'},
    {"k": 4, "t": "e,\n"},
]


def sent(server: Server, options: str = "") -> None:
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as connection:
        connection.register("source", ROWS)
        connection.execute(
            f"CREATE TABLE hook (k BIGINT, t STRING) WITH ('connector'='http','url'='{server.url}',"
            f"'format'='json'{options})"
        )
        connection.execute("INSERT INTO hook SELECT k, t FROM source")
