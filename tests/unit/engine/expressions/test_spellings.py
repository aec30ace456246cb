"""Spellings that are another function or a CASE, as a user writes them."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest

from penstock.catalog.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    DataType,
    to_arrow,
)
from tests.unit.engine.expressions.calls import run
from tests.unit.engine.expressions.nested_cases import bound

TIME = datetime(2024, 2, 29, 13, 45, 50)
COLUMNS: dict[str, tuple[DataType, list]] = {
    "s": (STRING, ["hello world", "", None, "ñandú"]),
    "i": (INT, [1, 2, None, -3]),
    "l": (BIGINT, [1, 2, None, 2**63 - 1]),
    "d": (DATE, [date(2024, 1, 1), date(2024, 2, 29), None, date(1969, 12, 31)]),
    "t": (TIMESTAMP, [TIME, datetime(2024, 1, 1), None, datetime(1969, 12, 31, 23, 59, 59)]),
    "x": (DOUBLE, [1.5, -2.5, None, 0.0]),
    "j": (STRING, ['{"a": 1, "b": []}', "[1, 2]", None, "x"]),
}
NEW_YEAR = datetime(2024, 1, 1)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("OVERLAY(s PLACING 'XX' FROM 2 FOR 4)", ["hXX world", "XX", None, "ñXX"]),
        ("OVERLAY(s PLACING 'XX' FROM 2)", ["hXXlo world", "XX", None, "ñXXdú"]),
        ("s SIMILAR TO 'h(e|x)l{2}o%'", [True, False, None, False]),
        ("s NOT SIMILAR TO '_a[m-o]%'", [True, True, None, False]),
        ("s SIMILAR TO '%.%'", [False, False, None, False]),
        ("'50%' SIMILAR TO '[0-9]+!%' ESCAPE '!'", [True] * 4),
        ("decode(i, 1, 'one', NULL, 'none', 'more')", ["one", "more", "none", "more"]),
        ("decode(i, 1, 'one')", ["one", None, None, None]),
        ("CEIL(t TO HOUR)", [datetime(2024, 2, 29, 14), NEW_YEAR, None, datetime(1970, 1, 1)]),
        ("FLOOR(t TO MONTH)", [datetime(2024, 2, 1), NEW_YEAR, None, datetime(1969, 12, 1)]),
        ("CEIL(d TO YEAR)", [date(2024, 1, 1), date(2025, 1, 1), None, date(1970, 1, 1)]),
        ("FLOOR(d TO MONTH)", [date(2024, 1, 1), date(2024, 2, 1), None, date(1969, 12, 1)]),
        ("CEILING(x)", [2, -2, None, 0]),
        ("s LIKE ANY ('H%', 'h%')", [True, False, None, False]),
        ("s ILIKE ANY ('H%', 'Ñ%')", [True, False, None, True]),
        ("s LIKE ALL ('h%', '%d')", [True, False, None, False]),
        ("s NOT LIKE ALL ('h%', '%d')", [False, True, None, True]),
        ("s NOT LIKE ANY ('h%', '%x')", [True, True, None, True]),
        ("s LIKE SOME ('h%', NULL)", [True, None, None, None]),
        ("i BETWEEN SYMMETRIC 2 AND 1", [True, True, None, False]),
        ("i NOT BETWEEN SYMMETRIC 2 AND -9", [False, False, None, False]),
        ("i BETWEEN ASYMMETRIC 1 AND 1", [True, False, None, False]),
        ("(i, l) IN ((1, 1), (2, 3))", [True, False, None, False]),
        ("(i, l) NOT IN ((1, 1), (2, 3))", [False, True, None, True]),
        ("(i, l) = (1, 1)", [True, False, None, False]),
        ("(i, s) <> (1, 'hello world')", [False, True, None, True]),
        ("(i, l) < (2, 2)", [True, False, None, True]),
        ("(i, l) >= (2, 2)", [False, True, None, False]),
        ("(i, l) <= (1, 1)", [True, False, None, True]),
        ("(i, l) IS DISTINCT FROM (NULL, NULL)", [True, True, False, True]),
        ("DATEDIFF(DAY, d, DATE '2024-03-01')", [60, 1, None, 19784]),
        ("DATE_ADD(MONTH, 1, d)", [datetime(2024, 2, 1), datetime(2024, 3, 29), None, datetime(1970, 1, 31)]),
        ("try_add(l, 1)", [2, 3, None, None]),
        ("try_subtract(-2, l)", [-3, -4, None, None]),
        ("try_multiply(l, l)", [1, 4, None, None]),
        ("try_multiply(l, -1)", [-1, -2, None, 1 - 2**63]),
        ("try_divide(i, x)", [1 / 1.5, 2 / -2.5, None, None]),
        ("try_mod(i, CAST(x AS INT))", [0, 0, None, None]),
        ("try_add(i, 2147483647)", [None, None, None, 2147483644]),
        (
            "try_divide(INTERVAL '1' DAY, i)",
            [timedelta(days=1), timedelta(hours=12), None, -timedelta(hours=8)],
        ),
        ("j IS JSON", [True, True, None, False]),
        ("j IS JSON VALUE", [True, True, None, False]),
        ("j IS JSON OBJECT", [True, False, None, False]),
        ("j IS NOT JSON ARRAY", [True, False, None, True]),
        ("'1' IS JSON SCALAR", [True] * 4),
        ("json_length(j)", [2, 2, None, None]),
        ("json_length('7')", [1] * 4),
    ],
)
def test_values(text: str, values: list[object]) -> None:
    batch = pa.record_batch(
        [pa.array(column, to_arrow(kind)) for kind, column in COLUMNS.values()], names=list(COLUMNS)
    )
    assert run(bound(text, COLUMNS), batch).to_pylist() == values
