"""SQL over the sample tables as plans: orders is a recording replayed as a stream with event time, people
and archive are bounded tables.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.catalog import Catalog
from penstock.catalog.schema import Field, Schema
from penstock.catalog.settings import Settings
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, STRING
from penstock.planner.binder.binder import Binder
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.sink import Sink
from penstock.planner.statements.nodes import Insert, Query
from penstock.planner.statements.script import parse_script
from tests.unit.optimizer.executed import orders_table, people_table, sites_table


def catalog() -> Catalog:
    tables = Catalog()
    tables.create_table(orders_table(source_replay="true"), False)
    tables.create_table(replace(orders_table(), name="archive"), False)
    tables.create_table(people_table(), False)
    tables.create_table(replace(people_table(source_replay="true"), name="arrivals"), False)
    tables.create_table(sites_table(), False)
    keyed = replace(people_table(source_replay="true"), name="keyed", primary_key=("id",))
    tables.create_table(keyed, False)
    tables.create_table(replace(people_table(source_unbounded="true"), name="endless"), False)
    tables.create_table(replace(orders_table(source_unbounded="true"), name="endless_orders"), False)
    out = replace(
        people_table(), name="out", options={"connector": "filesystem", "path": "out", "format": "csv"}
    )
    tables.create_table(out, False)
    for name, options, key in (
        ("forgotten", {"connector": "blackhole"}, ()),
        ("shown", {"connector": "print"}, ()),
        ("totals", {"connector": "sqlite", "path": "totals.db", "table": "totals"}, ("k",)),
        (
            "files",
            {"connector": "filesystem", "path": "f", "format": "csv", "changelog.mode": "upsert"},
            ("k",),
        ),
    ):
        columns = Schema((Field("k", STRING), Field("n", BIGINT)))
        tables.create_table(CatalogTable(name, columns, columns, options, primary_key=key), False)
    return tables


def bind(text: str, tables: Catalog | None = None) -> LogicalPlan:
    """Return the plan of one query (to the client) or INSERT."""
    binder = Binder(tables or catalog(), Settings({}))
    (statement,) = parse_script(text)
    if isinstance(statement.node, Insert):
        return binder.bind_insert(statement.node)
    assert isinstance(statement.node, Query)
    return Sink(binder.bind_query(statement.node), None)
