"""Texts of times that come often are those of each time alone."""

import numpy as np
import pyarrow as pa
import pytest

from engine.expressions.time_patterns import compile_format

HOUR = 3_600_000_000


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd", "HH:mm", "a h EEE", "mm:ss", "ss.SSS", "MMM D Q", "'day'", ""])
@pytest.mark.parametrize(("middle", "width"), [(0, 2 * HOUR), (-62 * 365 * 24 * HOUR, 40 * HOUR), (1_577_836_800_000_000, 30_000_000)])
def test_often(pattern, middle, width):
    times = middle + np.random.default_rng(7).integers(-width, width, 2000)
    column = pa.array(times).view(pa.timestamp("us"))
    texts = compile_format(pattern)(column)
    assert texts.to_pylist() == [compile_format(pattern)(column.slice(i, 1))[0].as_py() for i in range(2000)]
    assert compile_format(pattern)(column.slice(700, 900)).equals(texts.slice(700, 900))
    with_null = pa.concat_arrays([column, pa.nulls(1, column.type)])
    assert compile_format(pattern)(with_null).to_pylist() == [*texts.to_pylist(), None]
