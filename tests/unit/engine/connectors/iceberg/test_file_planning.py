"""Which deletes apply to which data files: by partition, by none, and by columns that are gone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StructType

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, STRING
from tests.unit.engine.connectors.iceberg.flink_tables import EQUAL, SCHEMA, made, read
from tests.unit.engine.connectors.iceberg.foreign_tables import Written, commit
from tests.unit.engine.connectors.iceberg.iceberg_files import loaded

_ROW = pa.struct([("a", pa.int64())])


def test_deletes_without_partition_and_columns_that_are_gone(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.append(pa.table([[1, 2, 3], ["a", "b", None], ["x", "y", "z"]], schema=SCHEMA))
    with table.update_spec() as spec:
        spec.add_field("g", IdentityTransform(), "g")
    groups = ["a", "b", "b", None, "a"]
    table.append(pa.table([[1, 2, 3, 4, 3], groups, ["p", "q", "r", "s", "t"]], schema=SCHEMA))
    one = pa.table([[2]], schema=pa.schema([("k", pa.int64())]))
    # of no partition: it deletes in each; then of one: it deletes in that alone
    commit(tmp_path, Written(one, EQUAL, (1,), spec=0))
    expected = Counter([(1, "a", "x"), (3, None, "z"), (1, "a", "p"), (4, None, "s"), (3, "a", "t")])
    assert read(tmp_path) == expected + Counter([(3, "b", "r")])
    three = pa.table([[3]], schema=one.schema)
    commit(tmp_path, Written(three, EQUAL, (1,), partition=("b",)))
    assert read(tmp_path) == expected
    # the column of the keys is dropped, and another has its name
    table = loaded(tmp_path)
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("k")
    with table.update_schema() as update:
        update.add_column("k", LongType())
    values = Counter((v,) for _, _, v in expected.elements())
    assert read(tmp_path, {"v": STRING}) == values
    assert read(tmp_path, {"k": BIGINT, "v": STRING}) == Counter((None, *row) for row in values.elements())


def test_deletes_by_a_column_within_a_row(tmp_path: Path) -> None:
    table = made(tmp_path)
    with table.update_schema() as update:
        update.add_column("s", StructType(NestedField(0, "a", LongType())))
    table.append(pa.table([[1], ["a"], ["x"], [{"a": 1}]], schema=SCHEMA.append(pa.field("s", _ROW))))
    number = loaded(tmp_path).schema().find_field("s.a").field_id
    field = pa.field("a", pa.int64(), True, {"PARQUET:field_id": str(number)})
    commit(tmp_path, Written(pa.table([[1]], schema=pa.schema([field])), EQUAL, (number,)))
    with pytest.raises(PenstockError, match=f"equality deletes by column {number}") as raised:
        read(tmp_path)
    assert raised.value.code == "DAT-5305"
