"""Declared columns as the schema of a new Iceberg table, with its key and its partitions.

One request makes the table: not every REST catalog makes one in stages, as a transaction of the library asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from penstock.catalog.schema import Field
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    Array,
    BigInt,
    Binary,
    Boolean,
    DataType,
    Date,
    Decimal,
    Double,
    Float,
    Map,
    Row,
    String,
    Timestamp,
    TimestampLtz,
)


def new_table(table: CatalogTable) -> dict[str, Any]:
    """Return the schema and the partitioning of a new table, as the library's ``create_table`` takes them."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import NestedField

    fields, ids = table.physical_fields, count(1)
    numbers = {field.name.lower(): next(ids) for field in fields}
    columns = [
        NestedField(
            numbers[field.name.lower()], field.name, _type(field.type, ids), required=not field.nullable
        )
        for field in fields
    ]
    parts = [
        PartitionField(numbers[name.lower()], 1000 + place, IdentityTransform(), name)
        for place, name in enumerate(table.partitioned_by)
    ]
    key = [numbers[name.lower()] for name in table.primary_key] if _identifies(table) else []
    return {"schema": Schema(*columns, identifier_field_ids=key), "partition_spec": PartitionSpec(*parts)}


def _identifies(table: CatalogTable) -> bool:
    """Return whether the key is one of Iceberg's: no NULL, and no number of a float."""
    keys: list[Field] = [field for field in table.physical_fields if field.name in table.primary_key]
    return not any(field.nullable or isinstance(field.type, Float | Double) for field in keys)


def _type(kind: DataType, ids: Iterator[int]) -> Any:
    """Return the library's type for a column; the columns in it have numbers of their own."""
    from pyiceberg import types

    match kind:
        case Array(element):
            return types.ListType(next(ids), _type(element, ids), element_required=False)
        case Map(key, value):
            return types.MapType(
                next(ids), _type(key, ids), next(ids), _type(value, ids), value_required=False
            )
        case Row(fields):
            return types.StructType(
                *(
                    types.NestedField(next(ids), name, _type(field, ids), required=False)
                    for name, field in fields
                )
            )
        case Decimal(precision, scale):
            return types.DecimalType(precision, scale)
    # any other integer has 32 bits there: catalog/connectors/iceberg.py takes none that is smaller
    plain = {
        Boolean: types.BooleanType,
        BigInt: types.LongType,
        Float: types.FloatType,
        Double: types.DoubleType,
        String: types.StringType,
        Binary: types.BinaryType,
        Date: types.DateType,
        Timestamp: types.TimestampType,
        TimestampLtz: types.TimestamptzType,
    }
    return plain.get(type(kind), types.IntegerType)()
