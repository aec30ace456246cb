"""Functions asked once per combination of arguments: however many combinations there are, each row gets
its own answer.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.expressions.kernel_factory import by_value

SITE: Any = SimpleNamespace()


@pytest.mark.parametrize("width", [1, 2, 4, 6, 9])
def test_rows_of_many_different_values_keep_their_answers(width: int) -> None:
    """Of six columns of 30,000 different values there could be more combinations than an int64 has
    numbers.
    """
    rows = 30_000
    random = np.random.default_rng(width)
    columns = [random.permutation(rows) for _ in range(width)]
    found = by_value(lambda *values: "-".join(map(str, values)), pa.string())(SITE)(*map(pa.array, columns))
    assert found.to_pylist() == ["-".join(map(str, row)) for row in zip(*columns, strict=True)]


def test_each_combination_is_asked_for_once_and_null_never() -> None:
    asked: list[tuple[str, int]] = []

    def compute(text: str, number: int) -> str | None:
        asked.append((text, number))
        return None if number == 3 else text * number

    texts = pa.array(["a", "b", None, "a", "b", "a", "a"])
    numbers = pa.array([2, 1, 1, 2, None, 3, 1])
    found = by_value(compute, pa.string())(SITE)(texts, numbers)
    assert found.to_pylist() == ["aa", "b", None, "aa", None, None, "a"]
    assert sorted(asked) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]


def test_no_rows() -> None:
    assert by_value(len, pa.int64())(SITE)(pa.array([], pa.string())).to_pylist() == []
