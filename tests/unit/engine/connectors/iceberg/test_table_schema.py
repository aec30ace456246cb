"""A new table has the declared columns, its key and its partitions, in one request."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    Array,
    DataType,
    Decimal,
    Map,
    Row,
    to_arrow,
)
from penstock.engine.connectors.iceberg.iceberg_table import arrow_schema
from penstock.engine.connectors.lakehouse.columns import engine_type
from tests.unit.engine.connectors.iceberg.iceberg_files import declared, loaded, target

TYPES: list[DataType] = [
    BIGINT,
    INT,
    BOOLEAN,
    FLOAT,
    DOUBLE,
    Decimal(9, 2),
    STRING,
    BINARY,
    DATE,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    Array(STRING),
    Map(STRING, Array(INT)),
    Row((("x", INT), ("y", Row((("z", Array(BIGINT)),))))),
]


def test_columns_of_every_type(tmp_path: Path) -> None:
    columns = {f"c{place}": kind for place, kind in enumerate(TYPES)}
    target(declared(tmp_path, columns, key=("c0",), partitioned_by=("c6", "c8")))
    made = loaded(tmp_path)
    assert [engine_type(field.type) for field in arrow_schema(made)] == [to_arrow(kind) for kind in TYPES]
    assert [field.required for field in made.schema().fields] == [True] + [False] * (len(TYPES) - 1)
    assert made.schema().identifier_field_names() == {"c0"}
    assert [(field.name, str(field.transform)) for field in made.spec().fields] == [
        ("c6", "identity"),
        ("c8", "identity"),
    ]


@pytest.mark.parametrize("kind", [DOUBLE, FLOAT])
def test_a_float_identifies_no_row(tmp_path: Path, kind: DataType) -> None:
    target(declared(tmp_path, {"k": kind}, key=("k",)))
    assert loaded(tmp_path).schema().identifier_field_ids == []
