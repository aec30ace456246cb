"""The pipelines of queries/pipelines over a month of flights, on servers started from packages: what arrives is
DuckDB's answer over the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import penstock
from penstock.repl.launch.script_runner import substitute
from queries.pipelines import demo
from tests.harness.kafka_broker import KafkaTopics, new_broker
from tests.harness.postgres_server import logical_server

pytestmark = pytest.mark.xdist_group("kafka")
PIPELINES = Path(demo.__file__).parent
JANUARY = "queries/data/flights/2013-01.csv.gz"
FLIGHTS = f"(SELECT * FROM read_csv('{JANUARY}', nullstr = 'NA'))"
PLANES = f"(SELECT * FROM read_csv('{demo.PLANES}', nullstr = 'NA'))"
EDITED = "CASE WHEN manufacturer LIKE 'MCDONNELL%' THEN 'BOEING' ELSE manufacturer END"


@pytest.fixture(scope="module")
def kafka() -> str:
    broker = KafkaTopics(new_broker().bootstrap)
    for name in ("flights", "routes", "makers"):
        broker.create(name, 3)
    run("flights_topic.sql", kafka=broker.bootstrap, flights=JANUARY)
    return broker.bootstrap


def run(script: str, **variables: str) -> list[tuple[Any, ...]]:
    """Run a pipeline whose sources end; return the rows of its last statement."""
    text = substitute((PIPELINES / script).read_text(encoding="utf-8"), variables)
    with penstock.connect(settings={"bounded.backend": "duckdb", "parallelism.default": "2"}) as connection:
        cursor = connection.executescript(text)
        return cursor.fetchall() if cursor.description else []


def asked(query: str) -> list[tuple[Any, ...]]:
    return duckdb.connect().sql(query).fetchall()


def test_windows_of_a_topic_are_in_the_delta_table(kafka: str, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    shown = run("kafka_to_delta.sql", kafka=kafka, delta=str(tmp_path / "delays"), until="latest-offset")
    written = pa.table(deltalake.DeltaTable(tmp_path / "delays").to_pyarrow_table())
    oracle = asked(f"""SELECT time_bucket(INTERVAL '7 days', make_date(year, month, day), DATE '1970-01-01')::TIMESTAMP,
        origin, carrier, count(*), count(*) FILTER (dep_delay IS NULL), count(*) FILTER (arr_delay > 15),
        sum(arr_delay)::BIGINT FROM {FLIGHTS} WHERE tailnum IS NOT NULL GROUP BY 1, 2, 3""")
    found = [tuple(row.values()) for row in written.to_pylist()]
    assert sorted(found, key=str) == sorted(oracle, key=str) and len(shown) > 5


def test_debeziums_changes_are_the_busiest_routes_in_postgresql(kafka: str) -> None:
    server = logical_server()
    demo.ask(server, f"DROP TABLE IF EXISTS busiest_routes; {demo.BUSIEST}")
    run("routes_topic.sql", kafka=kafka, flights=JANUARY)
    run("debezium_top.sql", kafka=kafka, postgres=server.url, until="latest-offset")
    found = demo.ask(server, "SELECT origin, place, dest, flights FROM busiest_routes")
    oracle = asked(f"""SELECT origin, row_number() OVER (PARTITION BY origin ORDER BY count(*) DESC, dest) AS place,
        dest, count(*) FROM {FLIGHTS} GROUP BY origin, dest QUALIFY place <= 3""")
    assert sorted(found) == sorted(oracle) and len(found) == 9


def test_an_edit_in_postgresql_corrects_the_topic_and_the_view(kafka: str) -> None:
    server = logical_server()
    demo.ask(server, "DROP TABLE IF EXISTS planes")
    demo.fill_planes(server)
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as connection:
        demo.follow(connection, kafka, server)
        for maker in ("manufacturer", EDITED):
            oracle = asked(f"""SELECT {maker} AS m, count(*), sum(seats)::BIGINT
                FROM {FLIGHTS} AS f JOIN {PLANES} AS p USING (tailnum) GROUP BY m""")
            if maker == EDITED:
                demo.ask(server, demo.EDIT)
            wanted = sorted(oracle, key=str)
            demo.await_rows(connection, demo.MAKERS, lambda rows: sorted(rows, key=str) == wanted)  # noqa: B023
