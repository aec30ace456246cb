"""The source of system tables: a table once, and a table with its changes by an injected clock."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.catalog.system_tables import SYSTEM_TABLES
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process.system_tables import SystemSource, SystemTables


class Sessions:
    """A table whose rows the test changes."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []
        self.tables = SystemTables()
        self.tables.provide("sessions", self.read)

    def read(self) -> pa.Table:
        schema = SYSTEM_TABLES["system.sessions"].schema.to_arrow()
        given = {"session": [name for name, _ in self.rows], "principal": [who for _, who in self.rows]}
        columns = [pa.array(given.get(one.name, [None] * len(self.rows)), one.type) for one in schema]
        return pa.Table.from_arrays(columns, schema=schema)

    def source(self, columns: tuple[int, ...], clock: ManualClock, **options: str) -> SystemSource:
        table = SYSTEM_TABLES["system.sessions"]
        followed = CatalogTable(table.name, table.source_schema, table.schema, {**table.options, **options})
        return SystemSource(ScanRequest(followed, columns, None, 100, clock, Services(self.tables)))


def changes(batch: object) -> list[tuple[int, str]]:
    assert isinstance(batch, Batch)
    weights = [1] * batch.num_rows if batch.weights is None else batch.weights.tolist()
    return list(zip(weights, batch.rows.column(0).to_pylist(), strict=True))


def test_a_query_reads_the_rows_of_its_start() -> None:
    sessions = Sessions()
    sessions.rows = [("s1", "ann"), ("s2", "bob")]
    reader = sessions.source((1,), ManualClock()).open("sessions", None)
    sessions.rows = []
    batch = reader.poll(10)
    assert isinstance(batch, pa.RecordBatch)
    assert batch.to_pydict() == {"principal": ["ann", "bob"]}
    assert reader.ended


def test_what_is_followed_is_read_again_after_the_interval() -> None:
    sessions, clock = Sessions(), ManualClock()
    reader = sessions.source((0,), clock, follow="true", interval="100 ms").open("sessions", None)
    sessions.rows = [("s1", "ann"), ("s2", "bob")]
    assert changes(reader.poll(10)) == [(1, "s1"), (1, "s2")]
    sessions.rows = [("s2", "bob"), ("s3", "eve")]
    assert reader.poll(10) is None, "the interval is not over"
    clock.advance(100)
    assert changes(reader.poll(10)) == [(-1, "s1"), (1, "s3")]
    clock.advance(100)
    assert reader.poll(10) is None, "nothing has changed"
    assert not reader.ended


def test_columns_that_are_not_read_make_no_changes() -> None:
    sessions, clock = Sessions(), ManualClock()
    sessions.rows = [("s1", "ann")]
    reader = sessions.source((0,), clock, follow="true", interval="100 ms").open("sessions", None)
    assert changes(reader.poll(10)) == [(1, "s1")]
    sessions.rows = [("s1", "bob")]
    clock.advance(100)
    assert reader.poll(10) is None


@pytest.mark.parametrize("name", sorted(SYSTEM_TABLES))
def test_a_table_that_nothing_provides_is_empty(name: str) -> None:
    rows = SystemTables().arrow_table(name.partition(".")[2])
    assert rows.num_rows == 0
    assert rows.schema.equals(SYSTEM_TABLES[name].schema.to_arrow())
