"""Registered tables: what a program may hand over, its types, its cuts, what can be read again and what
cannot.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable, WatermarkRule
from penstock.catalog.types import BIGINT, STRING, TIMESTAMP
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Services
from penstock.engine.connectors.in_process.registered import RegisteredTables, registered_source
from penstock.planner.expressions.nodes import Column
from tests.harness.reading import Taken, drain, open_source

ROWS = [{"n": i, "s": None if i % 3 else f"x{i}"} for i in range(10)]


def registered(source: Any, **options: str) -> tuple[CatalogTable, Services]:
    tables = RegisteredTables()
    schema = tables.register("Mine", source)
    return CatalogTable(
        "mine", schema, schema, {"connector": "registered", "name": "mine", **options}
    ), Services(tables)


def rows_of(source: Any, **how: Any) -> list[dict[str, Any]]:
    """Read a registered source to its end, waiting for the reading-ahead thread when there is one."""
    table, services = registered(source)
    clock = ManualClock()
    operator, out = open_source(table, services=services, clock=clock, **how), Taken()
    while not operator.poll(out).ended:
        time.sleep(0)
        clock.advance(10)
    operator.close()
    return out.rows


def generator() -> Iterator[dict[str, Any]]:
    yield from ROWS


@pytest.mark.parametrize("batch", [1, 3, 1000])
def test_everything_a_program_may_have(batch: int) -> None:
    table = pa.Table.from_pylist(ROWS)
    for source in (
        table,
        table.to_batches()[0],
        table.to_reader(3),
        ROWS,
        generator(),
        generator,
        table.to_batches(4),
        lambda: table,
        table.to_pandas(),
    ):
        assert rows_of(source, batch=batch) == ROWS


def test_tuples_and_their_names() -> None:
    tables = RegisteredTables()
    assert tables.register("t", [(1, "a"), (2, None)]).names == ["f0", "f1"]
    assert tables.register("t", [(1, "a")], columns=["n", "s"]).names == ["n", "s"]


def test_types_become_the_engines() -> None:
    source = registered_source(
        pa.table(
            {
                "u": pa.array([1], pa.uint16()),
                "d": pa.array(["a"]).dictionary_encode(),
                "t": pa.array([1], pa.timestamp("ms")),
            }
        )
    )
    assert [str(f.type) for f in source.schema] == ["INT", "STRING", "TIMESTAMP(6)"]
    assert [b.schema for b in source.batches()] == [source.schema.to_arrow()]


def test_an_arrow_table_resumes_and_is_cut_into_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engine.connectors.in_process.registered_source.RANGE_ROWS", 4)
    table, services = registered(pa.Table.from_pylist(ROWS))
    operator, out = open_source(table, services=services, batch=3), Taken()
    for _ in range(3):
        operator.poll(out)
    again = open_source(table, services=services, batch=3)
    again.restore_items(operator.snapshot_items())
    assert drain(again, out).rows == ROWS
    parts = [drain(open_source(table, services=services, subtask=s, parallelism=2)).rows for s in range(2)]
    assert [len(part) for part in parts] == [6, 4]


def test_with_a_watermark_it_is_one_split_in_its_order() -> None:
    table, services = registered(pa.table({"ts": pa.array(range(5), pa.timestamp("us"))}))
    table = CatalogTable(
        "mine",
        table.schema,
        table.schema,
        table.options,
        watermark=WatermarkRule("ts", Column(TIMESTAMP, True, index=0), "ts"),
    )
    out = drain(open_source(table, services=services, batch=2))
    assert len(out.rows) == 5 and out.split_events == [("opened", 0), ("ended", 0)]


def test_an_iterator_can_be_read_once_only() -> None:
    table, services = registered(generator())
    operator = open_source(table, services=services)
    operator.poll(Taken())
    with pytest.raises(PenstockError, match="DAT-4503"):
        open_source(table, services=services).poll(Taken())
    operator.close()


def test_a_slow_iterable_never_blocks_a_poll_and_its_error_arrives() -> None:
    def slow() -> Iterator[dict[str, int]]:
        yield {"n": 1}
        time.sleep(0.05)
        yield {"n": 2}
        raise ValueError("the feed broke")

    table, services = registered(slow, **{"source.unbounded": "true"})
    assert boundedness(table) is Boundedness.UNBOUNDED
    operator, out = open_source(table, services=services), Taken()
    with pytest.raises(PenstockError, match="failed with ValueError: the feed broke"):
        for _ in range(1000):
            operator.poll(out)
            operator._splits[0].again_ms = 0
            time.sleep(0.001)
    assert [r["n"] for r in out.rows] == [1, 2]
    assert ("empty", 0) in out.split_events


def test_a_changed_table_is_refused() -> None:
    table, services = registered(ROWS)
    operator = open_source(table, services=services)
    items = operator.snapshot_items()
    services.get(RegisteredTables).register("mine", ROWS[:3])
    with pytest.raises(PenstockError, match="it had 10 rows, it has 3"):
        open_source(table, services=services).restore_items(items)


@pytest.mark.parametrize(
    "source", [5, "text", [], iter(()), [{"a": 1}, 5], [(1, 2), (1,)], [{"a": 1}, {"a": "x"}]]
)
def test_what_is_no_table(source: Any) -> None:
    with pytest.raises(PenstockError, match="DAT-4501"):
        registered_source(source)


def test_unknown_names() -> None:
    tables = RegisteredTables()
    tables.register("orders", ROWS)
    with pytest.raises(PenstockError) as caught:
        tables.source("order")
    assert caught.value.hint == 'did you mean "orders"?'
    tables.unregister("ORDERS")
    assert tables.names() == []


def test_a_batch_that_lacks_a_column() -> None:
    batches = [pa.record_batch({"n": [1]}), pa.record_batch({"m": [1]})]
    with pytest.raises(PenstockError, match="DAT-4504"):
        registered_source(batches)


def test_schema_type() -> None:
    schema = RegisteredTables().register("t", ROWS)
    assert isinstance(schema, Schema) and [f.type for f in schema] == [BIGINT, STRING]
