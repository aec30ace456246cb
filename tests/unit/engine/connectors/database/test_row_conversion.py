"""Rows of a driver as columns of exact types: texts and numbers where SQLite has no type, and a refusal that
names the column.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    DataType,
    Decimal,
    Timestamp,
    TimestampLtz,
)
from penstock.engine.connectors.database.row_conversion import rows_of

DAY, TIME = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 0, 0, 5)
SAMPLES: dict[str, tuple[DataType, list[Any], list[Any]]] = {
    "integers": (BIGINT, [2**63 - 1, None, -(2**63)], [2**63 - 1, None, -(2**63)]),
    "doubles": (DOUBLE, [1.5, None, float("inf")], [1.5, None, float("inf")]),
    "texts": (STRING, ["", None, "ä"], ["", None, "ä"]),
    "bytes": (BINARY, [b"\x00", None, b""], [b"\x00", None, b""]),
    "booleans as numbers": (BOOLEAN, [None, 1, 0], [None, True, False]),
    "booleans": (BOOLEAN, [True, None, False], [True, None, False]),
    "days as texts": (DATE, [None, "2024-02-29"], [None, DAY]),
    "days": (DATE, [DAY, None], [DAY, None]),
    "times as texts": (Timestamp(6), ["2024-02-29 12:00:00.000005", None], [TIME, None]),
    "instants as texts": (
        TimestampLtz(6),
        [None, "2024-02-29 12:00:00.000005Z"],
        [None, TIME.replace(tzinfo=dt.UTC)],
    ),
    "decimals as texts": (Decimal(12, 3), ["1.5", None], [Number("1.500"), None]),
    "decimals": (Decimal(12, 3), [Number("1.5"), None], [Number("1.500"), None]),
    "nothing but NULL": (DATE, [None, None], [None, None]),
}


@pytest.mark.parametrize("what", SAMPLES)
def test_values_have_the_declared_type(what: str) -> None:
    kind, values, expected = SAMPLES[what]
    fields = (Field("n", INT), Field("v", kind))
    batch = rows_of([(number, value) for number, value in enumerate(values)], fields, "t")
    batch.validate(full=True)
    assert batch.schema == Schema(fields).to_arrow()
    assert batch.column(1).to_pylist() == expected


def test_no_rows_have_the_columns_and_rows_of_no_columns_are_counted() -> None:
    fields = (Field("n", INT), Field("d", DATE))
    assert rows_of([], fields, "t").schema == Schema(fields).to_arrow()
    assert rows_of([(1,)] * 3, (), "t").num_rows == 3


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (INT, 2**31),
        (INT, "x"),
        (STRING, 5),
        (BOOLEAN, "maybe"),
        (DATE, "2024-02-30"),
        (Timestamp(6), "noon"),
        (Decimal(4, 1), "1234.5"),
        (Decimal(4, 1), Number("1.25")),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_with_its_column(kind: DataType, value: object) -> None:
    with pytest.raises(PenstockError, match=r"DAT-4704.*column wrong of t holds what is no") as caught:
        rows_of([(1, None), (2, value)], (Field("n", INT), Field("wrong", kind)), "t")
    assert "STRING" in str(caught.value.hint)


def test_a_column_of_numbers_is_not_read_as_text_when_it_is_declared_so() -> None:
    assert rows_of([("5",)], (Field("s", STRING),), "t").column(0).type == pa.string()
