"""Tables of Spark's own catalogs: their column types here, their relations in a query, and the INSERT into
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlglot import exp

from penstock.catalog.connectors.spark import spark_settings
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    DayTimeInterval,
    Decimal,
    Foreign,
    Map,
    Row,
    Time,
    to_spark,
)
from penstock.planner.sql_generator.dialect import text
from penstock.planner.sql_generator.query import ScannedTable
from penstock.planner.sql_generator.spark.dialect import SparkFlavour, has_months, interval_us

_LIKES: dict[str, DataType] = {
    "NullType": NULL,
    "BooleanType": BOOLEAN,
    "ByteType": TINYINT,
    "ShortType": SMALLINT,
    "IntegerType": INT,
    "LongType": BIGINT,
    "FloatType": FLOAT,
    "DoubleType": DOUBLE,
    "BinaryType": BINARY,
    "StringType": STRING,
    "CharType": STRING,
    "VarcharType": STRING,
    "VariantType": STRING,
    "DateType": DATE,
    "TimeType": TIME,
    "TimestampType": TIMESTAMP_LTZ,
    "TimestampNTZType": TIMESTAMP,
    "DayTimeIntervalType": DAY_TIME_INTERVAL,
    "YearMonthIntervalType": YEAR_MONTH_INTERVAL,
}
"""Types by class name in PySpark. PySpark is not imported before Spark runs, and need not know all of
them.
"""


def settings_of(tables: Iterable[CatalogTable]) -> dict[str, str]:
    """Return the Spark settings that make tables reachable."""
    return {key: value for table in tables for key, value in spark_settings(table.options).items()}


def type_here(kind: Any) -> DataType:
    """Return our type for a Spark column type: STRING for VARIANT, as JSON, and Foreign for a type without
    equivalent.
    """
    from pyspark.sql import types as of

    # by class name; the parameters of DECIMAL and of nested types come after
    like = _LIKES.get(type(kind).__name__)
    if isinstance(kind, of.DecimalType):
        like = Decimal(kind.precision, kind.scale)
    elif isinstance(kind, of.ArrayType | of.MapType | of.StructType):
        like = _nested(kind)
    return like or Foreign(kind.simpleString().upper())


def _nested(kind: Any) -> DataType | None:
    """Return the type of an array, a map or a row, ``None`` where a part has no equivalent."""
    parts = [type_here(part) for part in _parts(kind)]
    # one part that we cannot read makes the whole type foreign
    if any(isinstance(part, Foreign) for part in parts):
        return None
    # a struct has names; an array has one part, a map two
    names = getattr(kind, "names", None)
    if names is not None:
        return Row(tuple(zip(names, parts, strict=True)))
    return Array(*parts) if len(parts) == 1 else Map(*parts)


def _parts(kind: Any) -> list[Any]:
    """Return the element, key and value or field types of a type."""
    return [
        getattr(kind, name) for name in ("elementType", "keyType", "valueType") if hasattr(kind, name)
    ] or [f.dataType for f in kind.fields]


def _is_like(kind: Any) -> bool:
    """Whether values need no conversion: the type has no own collation, is no VARIANT and no interval of
    fewer fields.
    """
    from pyspark.sql import types as of

    match kind:
        # equal to the default one: no collation, whose comparisons differ from ours
        case of.StringType():
            return bool(kind == of.StringType())
        # DAY TO SECOND, not DAY TO HOUR; in the same manner YEAR TO MONTH below
        case of.DayTimeIntervalType():
            return bool(kind == of.DayTimeIntervalType())
        case of.YearMonthIntervalType():
            return bool(kind == of.YearMonthIntervalType())
        # element by element
        case of.ArrayType() | of.MapType() | of.StructType():
            return all(_is_like(part) for part in _parts(kind))
    return not isinstance(kind, of.VariantType)


def schema_here(struct: Any) -> Schema:
    """Return the columns of a table of Spark with our types."""
    return Schema(
        tuple(Field(column.name, type_here(column.dataType), bool(column.nullable)) for column in struct)
    )


def is_missing(error: Any) -> bool:
    """Return whether Spark's error reports a name that does not exist in a catalog."""
    # Iceberg and Hive raise Java exceptions without a condition
    condition = error.getCondition() if hasattr(error, "getCondition") else None
    return (
        condition in ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
        or "NoSuchTable" in str(error)
        or "NoSuchNamespace" in str(error)
    )


def register_table(session: Any, name: str, relation: ScannedTable) -> None:
    """Register a table of Spark as a relation. Spark itself pushes filters, columns and aggregates down to
    it.

    DAT-4702 for no table. DAT-4703 for no column, with the nearest name as a hint. DAT-4706 for a column
    declared with a type where Spark's type has no equivalent.
    """
    frame = _opened(session, relation.table)
    # names regardless of case; of two that differ only by case the first wins
    there = {column.name.lower(): column for column in reversed(frame.schema.fields)}
    flavour = SparkFlavour()

    def read(field: Field) -> exp.Expr:
        known = there.get(field.name.lower())
        if known is None:
            message = (
                f'table {relation.table.name}: Spark\'s table "{relation.table.options["table-name"]}" '
                f"has no column {field.name}"
            )
            near = did_you_mean(field.name, frame.columns, others=True)
            raise PenstockError("DAT-4703", message, hint=near, kind=Kind.EXTERNAL, sqlstate="42703")
        column: exp.Expr = exp.column(exp.to_identifier(known.name, quoted=True), table="x")
        spark_type = type_here(known.dataType)
        # no equivalent here; another type than declared; the same type
        if isinstance(spark_type, Foreign):
            column = _unread(relation.table, field, spark_type)
        elif to_spark(spark_type) != to_spark(field.type) or not _is_like(known.dataType):
            column = flavour.cast(column, spark_type, field.type, False)
        return exp.alias_(_wired(column, field.type, flavour), exp.to_identifier(field.name, quoted=True))

    # Spark's table under a name of ours, and over it the view with declared names and types
    raw = f"{name}_raw"
    frame.createOrReplaceTempView(raw)
    select = exp.select(*map(read, relation.schema)).from_(exp.to_table(raw, alias="x"))
    session.sql(select.sql(flavour.dialect)).createOrReplaceTempView(name)


def _unread(table: CatalogTable, field: Field, there: Foreign) -> exp.Expr:
    """Return NULL for a column whose type has no equivalent, provided that no expression reads it. Else
    DAT-4706.
    """
    if isinstance(field.type, Foreign):
        return exp.null()
    message = (
        f"table {table.name}: column {field.name} is {there} in Spark, which cannot be read as {field.type}"
    )
    raise PenstockError(
        "DAT-4706",
        message,
        hint="make a view in Spark that casts it to STRING or BINARY, and read that",
        kind=Kind.EXTERNAL,
        sqlstate="0A000",
    )


def _wired(column: exp.Expr, kind: DataType, flavour: SparkFlavour) -> exp.Expr:
    """A column as ``SparkFlavour.from_wire`` reads it. Other columns stay bare, so that Spark can push
    filters on them.
    """
    if isinstance(kind, DayTimeInterval):
        return interval_us(column)
    return flavour.wire(column, kind) if isinstance(kind, Time) or has_months(kind) else column


def _opened(session: Any, table: CatalogTable) -> Any:
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


def insert_text(table: CatalogTable, query: str, schema: Schema) -> str:
    """Return the INSERT of a query's rows, which have columns c0, c1, .. in wire types."""
    flavour = SparkFlavour()
    columns = [exp.column(f"c{i}", table="q") for i in range(len(schema))]
    kinds = [field.type for field in schema]
    values = [
        c if isinstance(kind, DayTimeInterval) else flavour.from_wire(c, kind)
        for c, kind in zip(columns, kinds, strict=True)
    ]
    # the query returns wire types; an interval of days is stored as its count of microseconds
    items = [value.sql(flavour.dialect) for value in values]
    names = ", ".join(
        exp.to_identifier(field.name, quoted=True).sql(flavour.dialect) for field in table.physical_fields
    )
    target = text(table.options["table-name"]).sql(flavour.dialect)
    return f"INSERT INTO IDENTIFIER({target}) ({names})\nSELECT {', '.join(items)} FROM (\n{query}\n) AS q"
