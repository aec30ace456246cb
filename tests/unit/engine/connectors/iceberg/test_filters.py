"""Filters as expressions of the library."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING
from penstock.engine.connectors.iceberg.filters import row_filter
from penstock.planner.expressions.nodes import Call, Column, Expression, Literal

expressions = pytest.importorskip("pyiceberg.expressions", reason="the extra iceberg is not installed")

FIELDS = (Field("k", BIGINT), Field("v", STRING), Field("d", DATE), Field("f", DOUBLE))


def called(name: str, at: int, *values: Any) -> Expression:
    kind = FIELDS[at].type
    literals = tuple(Literal(kind, False, value=value) for value in values)
    return Call(BOOLEAN, True, function=name, args=(Column(kind, True, index=at), *literals))


def test_what_is_tested() -> None:
    assert row_filter(None, FIELDS) == expressions.AlwaysTrue()
    assert row_filter(called("equal", 0, 3), FIELDS) == expressions.EqualTo("k", 3)
    assert row_filter(called("in", 1, "a", "b"), FIELDS) == expressions.In("v", ["a", "b"])
    assert row_filter(called("is_null", 2), FIELDS) == expressions.IsNull("d")
    both = Call(
        BOOLEAN, True, function="and", args=(called("less", 2, date(2026, 1, 1)), called("greater", 0, 1))
    )
    assert row_filter(both, FIELDS) == expressions.And(
        expressions.LessThan("d", date(2026, 1, 1)), expressions.GreaterThan("k", 1)
    )
    # NaN
    assert row_filter(called("equal", 3, 1.5), FIELDS) == expressions.AlwaysTrue()
