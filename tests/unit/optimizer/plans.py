"""Plans built by hand for tests: tables, columns, calls."""

from __future__ import annotations

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, BOOLEAN, INT, STRING, TIMESTAMP, DataType
from penstock.planner.expressions.nodes import AggregateCall, Call, Column, Expression, Literal
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.time_attributes import WatermarkAssign

FILES = {"connector": "filesystem", "format": "csv"}


def table(name: str, *fields: Field, primary_key: tuple[str, ...] = (), **options: str) -> CatalogTable:
    schema = Schema(fields)
    given = {"connector": "filesystem", "path": name, "format": "csv"} | {
        key.replace("__", "-").replace("_", "."): value for key, value in options.items()
    }
    return CatalogTable(name, schema, schema, given, primary_key=primary_key)


def orders(**options: str) -> CatalogTable:
    fields = (
        Field("ts", TIMESTAMP),
        Field("k", STRING),
        Field("a", INT),
        Field("b", BIGINT, False),
        Field("u", BIGINT),
    )
    return table("orders", *fields, **options)


def scan(of: CatalogTable) -> Scan:
    return Scan(of, tuple(range(len(of.source_schema))))


def stream(of: CatalogTable | None = None) -> WatermarkAssign:
    """The orders as a stream with event time on ts."""
    source = scan(of or orders(source_replay="true"))
    return WatermarkAssign(source, 0, col(source, 0))


def col(plan: LogicalPlan, index: int) -> Column:
    field = plan.schema[index]
    return Column(field.type, field.nullable, index=index, name=field.name)


def lit(value: object, kind: DataType = INT) -> Literal:
    return Literal(kind, value is None, value=value)  # type: ignore[arg-type]


def call(function: str, *args: Expression, kind: DataType = BOOLEAN) -> Call:
    return Call(kind, any(arg.nullable for arg in args), function=function, args=args)


def count() -> AggregateCall:
    return AggregateCall("count", (), BIGINT, False)


def total(arg: Expression) -> AggregateCall:
    return AggregateCall("sum", (arg,), BIGINT, True)
