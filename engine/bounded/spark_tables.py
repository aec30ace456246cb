"""Tables of Spark's own catalogs: what their columns are here, how they become relations of a query, how rows are written to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlglot import exp

from catalog.errors import Kind, PenstockError
from catalog.names import did_you_mean
from catalog.schema import Field, Schema
from catalog.spark_options import spark_settings
from catalog.tables import Table
from catalog.types import STRING, YEAR_MONTH_INTERVAL, DataType, DayTimeInterval, Time, YearMonthInterval, from_arrow, to_spark
from planner.bounded_query import Relation
from planner.spark_sql import SparkFlavour, interval_us
from planner.sql_flavour import text

_TEXTS = ("string", "varchar", "char")


def settings_of(tables: Iterable[Table]) -> dict[str, str]:
    """Return the settings of Spark that lead to tables."""
    return {key: value for table in tables for key, value in spark_settings(table.options).items()}


def type_here(kind: Any) -> DataType:
    """Return the type a column of Spark has here: its own, or STRING for one that has no like."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import YearMonthIntervalType

    if isinstance(kind, YearMonthIntervalType):
        return YEAR_MONTH_INTERVAL
    try:
        return from_arrow(to_arrow_type(kind))
    except (PySparkException, PenstockError):
        return STRING


def schema_here(struct: Any) -> Schema:
    """Return the columns of a table of Spark with their types here."""
    return Schema(tuple(Field(column.name, type_here(column.dataType), bool(column.nullable)) for column in struct))


def is_missing(error: Any) -> bool:
    """Return whether Spark's error says that a catalog's name leads nowhere."""
    condition = error.getCondition() if hasattr(error, "getCondition") else None
    return condition in ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND") or "NoSuchTable" in str(error) or "NoSuchNamespace" in str(error)


def register_table(session: Any, name: str, relation: Relation) -> None:
    """Make a table of Spark readable as a relation; what its filters, columns and aggregates spare is Spark's own affair.

    DAT-4702 for no table, DAT-4703 for no column, told with the nearest name.
    """
    frame = _opened(session, relation.table)
    there = {column.name.lower(): column for column in reversed(frame.schema.fields)}
    flavour = SparkFlavour()

    def read(field: Field) -> exp.Expr:
        known = there.get(field.name.lower())
        if known is None:
            message = f'table {relation.table.name}: Spark\'s table "{relation.table.options["table-name"]}" has no column {field.name}'
            near = did_you_mean(field.name, frame.columns, others=True)
            raise PenstockError("DAT-4703", message, hint=near, kind=Kind.EXTERNAL, sqlstate="42703")
        column: exp.Expr = exp.column(exp.to_identifier(known.name, quoted=True), table="x")
        given = type_here(known.dataType)
        if to_spark(given) != to_spark(field.type) or (given == STRING and known.dataType.typeName() not in _TEXTS):
            column = flavour.cast(column, given, field.type, False)
        return exp.alias_(_wired(column, field.type, flavour), exp.to_identifier(field.name, quoted=True))

    raw = f"{name}_raw"
    frame.createOrReplaceTempView(raw)
    select = exp.select(*map(read, relation.schema)).from_(exp.to_table(raw, alias="x"))
    session.sql(select.sql(flavour.dialect)).createOrReplaceTempView(name)


def _wired(column: exp.Expr, kind: DataType, flavour: SparkFlavour) -> exp.Expr:
    """A column as ``SparkFlavour.from_wire`` reads it; nothing is put around the others, so that Spark can push what is asked of them."""
    if isinstance(kind, DayTimeInterval):
        return interval_us(column)
    return flavour.wire(column, kind) if isinstance(kind, YearMonthInterval | Time) else column


def _opened(session: Any, table: Table) -> Any:
    from pyspark.errors import PySparkException

    try:
        frame = session.table(table.options["table-name"])
        frame.schema  # noqa: B018  Spark Connect looks for the table only now
    except PySparkException as error:
        if not is_missing(error):
            raise
        message = f'table {table.name}: Spark has no table "{table.options["table-name"]}"'
        hint = "SHOW TABLES of a catalog of 'type' = 'spark' lists those there are"
        raise PenstockError("DAT-4702", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42P01") from error
    return frame


def insert_text(table: Table, query: str, schema: Schema) -> str:
    """Return the INSERT of a query's rows, which have columns c0, c1, .. in wire types."""
    flavour = SparkFlavour()
    columns = [exp.column(f"c{i}", table="q") for i in range(len(schema))]
    kinds = [field.type for field in schema]
    values = [c if isinstance(kind, DayTimeInterval) else flavour.from_wire(c, kind) for c, kind in zip(columns, kinds, strict=True)]
    items = [value.sql(flavour.dialect) for value in values]
    names = ", ".join(exp.to_identifier(field.name, quoted=True).sql(flavour.dialect) for field in table.physical_fields)
    target = text(table.options["table-name"]).sql(flavour.dialect)
    return f"INSERT INTO IDENTIFIER({target}) ({names})\nSELECT {', '.join(items)} FROM (\n{query}\n) AS q"
