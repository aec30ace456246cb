"""ROUND and BROUND of doubles against Python's decimals."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import pyarrow as pa
import pytest

import penstock


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_doubles_are_rounded_as_they_print(mode: str) -> None:
    values = [2.675, -2.675, 2.665, 0.125, 0.375, 1.115, -0.5, 1.5, 0.285, -1.005, 1e-20, 83.7945] + [
        n / 1000 for n in range(0, 4000, 5)
    ]
    settings = {"bounded.backend": "duckdb", "execution.runtime-mode": mode}
    with penstock.connect(settings=settings) as connection:
        connection.register("doubles", pa.table({"x": values}))
        for digits in (0, 1, 2):
            rows = connection.execute(
                f"SELECT x, round(x, {digits}), bround(x, {digits}) FROM doubles"
            ).fetchall()
            for x, up, even in rows:
                printed, step = Decimal(repr(x)), Decimal(1).scaleb(-digits)
                assert up == float(printed.quantize(step, ROUND_HALF_UP))
                assert even == float(printed.quantize(step, ROUND_HALF_EVEN))
