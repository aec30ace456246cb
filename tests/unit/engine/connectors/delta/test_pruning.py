"""Filters as tests of whole files."""

from __future__ import annotations

from datetime import date

import pytest

from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING
from penstock.engine.connectors.delta.pruning import file_test
from penstock.planner.expressions.nodes import Call, Column, Expression, Literal

FIELDS = (Field("k", BIGINT), Field("it's", STRING), Field("d", DATE), Field("f", DOUBLE))


def compared(name: str, at: int, value: object) -> Expression:
    kind = FIELDS[at].type
    column, literal = Column(kind, True, index=at), Literal(kind, False, value=value)  # type: ignore[arg-type]
    return Call(BOOLEAN, True, function=name, args=(column, literal))


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (None, None),
        (compared("equal", 0, 3), '"k" = 3'),
        (compared("less", 1, "o'clock"), "\"it's\" < 'o''clock'"),
        (compared("greater_equal", 2, date(2026, 1, 2)), "\"d\" >= DATE '2026-01-02'"),
        # statistics of floats know no NaN
        (compared("equal", 3, 1.5), None),
    ],
)
def test_what_files_are_asked(predicate: Expression | None, text: str | None) -> None:
    assert file_test(predicate, FIELDS) == text
