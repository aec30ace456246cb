"""Functions of a column and constants give what they give of columns alone; integers become the same decimals
by 64-bit words as by wide ones.
"""

from __future__ import annotations

import decimal

import pyarrow as pa
import pytest

import penstock
from penstock.catalog.types import Decimal
from penstock.engine.expressions.numeric.decimals import integers_as, rescaled

NUMBERS = [0, 1, -1, 7, -7, 122, 123, -246, 10**8, -(10**8) + 1, 10**17, -(10**18), 2**63 - 1, -(2**63), None]


@pytest.mark.parametrize("divisor", [1, 2, 3, 123, 2**31, 2**63 - 1])
def test_remainders_by_a_constant(divisor: int) -> None:
    with penstock.connect(settings={"execution.runtime-mode": "streaming"}) as connection:
        connection.register("numbers", pa.table({"n": NUMBERS, "d": [divisor] * len(NUMBERS)}))
        rows = connection.execute(
            f"SELECT n, MOD(n, {divisor}), PMOD(n, {divisor}), MOD(n, d), PMOD(n, d) FROM numbers"
        ).fetchall()
    assert len(rows) == len(NUMBERS)
    for n, remainder, positive, *by_column in rows:
        assert [remainder, positive] == by_column
        if n is not None:
            assert remainder == (abs(n) % divisor) * (1 if n >= 0 else -1)
            assert positive == n % divisor


@pytest.mark.parametrize(("kind", "low", "high"), [(pa.int8(), -128, 127), (pa.int32(), -(2**31), 2**31 - 1)])
def test_narrow_remainders(kind: pa.DataType, low: int, high: int) -> None:
    numbers = [low, low + 1, -5, -1, 0, 1, 100, high]
    with penstock.connect(settings={"execution.runtime-mode": "streaming"}) as connection:
        connection.register("numbers", pa.table({"n": pa.array(numbers, kind)}))
        rows = connection.execute("SELECT n, n % 100, PMOD(n, 100) FROM numbers").fetchall()
    assert rows == [(n, (abs(n) % 100) * (1 if n >= 0 else -1), n % 100) for n in numbers]


@pytest.mark.parametrize(
    "result", [Decimal(20, 0), Decimal(19, 0), Decimal(18, 0), Decimal(3, 0), Decimal(10, 2), Decimal(38, 18), Decimal(18, 18)]
)  # fmt: skip
def test_integers_as_decimals(result: Decimal) -> None:
    for numbers in (NUMBERS, [5, -7, None, 99], [2**63 - 1, None, -(2**63)], []):
        column = pa.array(numbers, pa.int64())
        found = integers_as(column, result)
        assert found.equals(rescaled(column.cast(pa.decimal256(30, 0)), result))
        fitting = [n for n in numbers if n is not None and abs(n) < 10 ** (result.precision - result.scale)]
        assert [int(value) for value in found.to_pylist() if value is not None] == fitting


def test_wider_decimals_are_those_of_a_check() -> None:
    values = [decimal.Decimal("9.99"), decimal.Decimal("-0.01"), None, decimal.Decimal("1234567.89")]
    narrow = pa.array(values, pa.decimal128(9, 2)).slice(1)
    for result in (Decimal(9, 2), Decimal(12, 2), Decimal(20, 5), Decimal(38, 31)):
        assert rescaled(narrow, result).equals(narrow.cast(pa.decimal256(76, 40)).cast(pa.decimal128(result.precision, result.scale)))  # fmt: skip
    # one digit less before or after the point is checked and rounded
    cut = rescaled(narrow, Decimal(8, 2)).to_pylist()
    assert cut == [decimal.Decimal("-0.01"), None, None]
    tenths = rescaled(narrow, Decimal(9, 1)).to_pylist()
    assert tenths == [decimal.Decimal("0.0"), None, decimal.Decimal("1234567.9")]


def test_pieces_by_a_constant_are_those_by_a_column() -> None:
    texts = ["a/b/c", "", None, "//x", "é/日本"]
    table = pa.table({"s": texts, "d": ["/"] * 5, "n": pa.array([2] * 5, pa.int32())})
    with penstock.connect(settings={"execution.runtime-mode": "streaming"}) as connection:
        connection.register("texts", table)
        calls = (
            "SPLIT_PART(s, '/', 2), SPLIT_PART(s, d, n), SPLIT_INDEX(s, '/', 1), SUBSTRING_INDEX(s, '/', 2)"
        )
        rows = connection.execute(f"SELECT {calls}, SPLIT_PART('x/y', '/', 2) FROM texts").fetchall()
    assert [row[0] for row in rows] == [row[1] for row in rows] == ["b", "", None, "", "日本"]
    assert [row[2] for row in rows] == ["b", None, None, "", "日本"]
    assert [row[3] for row in rows] == ["a/b", "", None, "/", "é/日本"]
    assert [row[4] for row in rows] == ["y"] * 5
