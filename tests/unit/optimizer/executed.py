"""Plans executed: every rewrite must give the rows it gave before. Small tables with NULLs, repeats and
unmatched keys; DuckDB computes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.tables import CatalogTable, WatermarkRule
from penstock.catalog.types import BIGINT, INT, STRING, TIMESTAMP, Row
from penstock.engine.bounded.duckdb import connect, create_macros
from penstock.planner.expressions.nodes import Column
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.sql_generator.duckdb.dialect import duckdb_sql

START = datetime(2024, 1, 1)
ORDERS = Schema(
    (
        Field("ts", TIMESTAMP),
        Field("k", STRING),
        Field("a", INT),
        Field("b", BIGINT, False),
        Field("u", BIGINT),
    )
)
PEOPLE = Schema(
    (Field("k", STRING), Field("name", STRING, False), Field("age", INT), Field("id", BIGINT, False))
)

SITES = Schema(
    (
        Field("id", BIGINT, False),
        Field("place", Row((("city", STRING), ("code", INT), ("deep", Row((("x", INT), ("y", INT))))))),
    )
)


def _sites_rows() -> list[dict[str, Any]]:
    places = [
        {"city": f"c{i % 3}", "code": None if i == 4 else i, "deep": {"x": i, "y": -i} if i % 4 else None}
        for i in range(9)
    ]
    return [{"id": i, "place": None if i == 7 else place} for i, place in enumerate(places)]


def _orders_rows() -> list[dict[str, Any]]:
    keys = ["x", "y", "z", None, "w"]
    return [
        {
            "ts": None if i % 17 == 5 else START + timedelta(seconds=i * 7 % 240),
            "k": keys[i * 3 % 5],
            "a": None if i % 7 == 3 else i * 5 % 11 - 3,
            "b": i * 13 % 9,
            "u": None if i % 5 == 2 else i % 4,
        }
        for i in range(60)
    ]


def _people_rows() -> list[dict[str, Any]]:
    keys = ["x", "x", "y", None, "q", "z", "y", None]
    return [
        {"k": k, "name": f"n{i % 4}", "age": None if i == 2 else 20 + i * 7 % 30, "id": i}
        for i, k in enumerate(keys)
    ]


def _table(name: str, schema: Schema, watermark: str | None = None, **options: str) -> CatalogTable:
    given = {"connector": "registered", "name": name} | {
        key.replace("_", "."): value for key, value in options.items()
    }
    if watermark is None:
        return CatalogTable(name, schema, schema, given)
    index = schema.index_of(watermark)
    assert index is not None
    fields = list(schema.fields)
    fields[index] = Field(watermark, TIMESTAMP, True, Role.EVENT_TIME)
    rule = WatermarkRule(watermark, Column(TIMESTAMP, True, index=index, name=watermark), watermark)
    return CatalogTable(name, schema, Schema(tuple(fields)), given, watermark=rule)


def orders_table(**options: str) -> CatalogTable:
    return _table("orders", ORDERS, "ts", **options)


def people_table(**options: str) -> CatalogTable:
    return _table("people", PEOPLE, None, **options)


def sites_table() -> CatalogTable:
    """A recording in parquet files, whose rows hold rows."""
    return CatalogTable(
        "sites",
        SITES,
        SITES,
        {
            "connector": "filesystem",
            "path": "sites",
            "format": "parquet",
            "source.replay": "true",
            "name": "sites",
        },
    )


def _arrow_tables() -> dict[str, pa.Table]:
    return {
        "orders": pa.Table.from_pylist(_orders_rows(), schema=ORDERS.to_arrow()),
        "sites": pa.Table.from_pylist(_sites_rows(), schema=SITES.to_arrow()),
        "people": pa.Table.from_pylist(_people_rows(), schema=PEOPLE.to_arrow()),
    }


TABLES = _arrow_tables()
CONNECTION = connect("UTC")
MACROS: set[str] = set()
"""Those that the connection has."""


def rows_of(plan: LogicalPlan) -> list[str]:
    """Return the rows DuckDB computes for a plan, as sorted texts."""
    query = duckdb_sql(plan)
    create_macros(CONNECTION, query.text, MACROS)
    for number, relation in enumerate(query.relations):
        CONNECTION.register(
            f"t_{number}", TABLES[relation.table.options["name"]].select(list(relation.columns))
        )
    try:
        return sorted(map(str, CONNECTION.sql(query.text).fetchall()))
    except duckdb.InvalidInputException as error:  # a row an expression has no value for
        return [str(error)]
