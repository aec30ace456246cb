"""Functions without a vector form: asked once for each different combination of arguments, however many rows have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.expressions.columns import aligned
from engine.expressions.site import Factory, plain


def by_value(compute: Callable[..., Any], kind: pa.DataType) -> Factory:
    """Return the factory of a Python function's kernel; NULL where an argument is, and where the function gives None."""

    def kernel(*data: Any) -> pa.Array:
        columns = aligned(*data)
        encoded = [pc.dictionary_encode(column) for column in columns]
        codes, known = np.zeros(len(columns[0]), np.int64), np.ones(len(columns[0]), np.bool_)
        for column in encoded:
            indices = column.indices
            known &= pc.is_valid(indices).to_numpy(zero_copy_only=False)
            codes = codes * max(1, len(column.dictionary)) + pc.fill_null(indices, 0).to_numpy(zero_copy_only=False)
        different, inverse = np.unique(np.where(known, codes, -1), return_inverse=True)
        results = pa.array([None if code < 0 else compute(*arguments) for code, arguments in _decoded(different, encoded)], kind)
        return results.take(pa.array(inverse))

    return plain(kernel)


def _decoded(codes: np.ndarray, encoded: list[pa.DictionaryArray]) -> list[tuple[int, tuple[Any, ...]]]:
    """Return each combination's code and values; those of a code below 0 mean nothing."""
    places = np.maximum(codes, 0)
    columns: list[list[Any]] = []
    for column in reversed(encoded):
        size = max(1, len(column.dictionary))
        columns.append(column.dictionary.take(pa.array(places % size)).to_pylist() if len(column.dictionary) else [None] * places.size)
        places = places // size
    return list(zip(codes.tolist(), zip(*reversed(columns), strict=True), strict=True))
