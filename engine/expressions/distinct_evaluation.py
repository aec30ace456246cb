"""Functions without a vector form: asked once for each different combination of arguments, however many
rows have it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of, truths
from penstock.engine.expressions.call_site import Factory, plain
from penstock.engine.expressions.datum import aligned

_CODES_MAX = 1 << 62


def by_value(compute: Callable[..., Any], kind: pa.DataType) -> Factory:
    """Return the factory of a Python function's kernel; NULL where an argument is, and where the function
    gives None.
    """

    def kernel(*data: Any) -> pa.Array:
        columns = aligned(*data)
        codes, known = _combinations(columns)
        _, firsts, inverse = np.unique(np.where(known, codes, -1), return_index=True, return_inverse=True)
        places = array_of(firsts)
        arguments = zip(*(column.take(places).to_pylist() for column in columns), strict=True)
        results = [
            compute(*values) if wanted else None
            for values, wanted in zip(arguments, known[firsts].tolist(), strict=True)
        ]
        return pa.array(results, kind).take(array_of(inverse))

    return plain(kernel)


def _combinations(columns: list[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
    """Return a number per row, equal for equal values of all columns, and whether none of them is NULL."""
    codes, known, count = np.zeros(len(columns[0]), np.int64), np.ones(len(columns[0]), np.bool_), 1
    for column in columns:
        encoded = pc.dictionary_encode(column)
        known &= truths(pc.is_valid(encoded.indices))
        size = max(1, len(encoded.dictionary))
        if count * size > _CODES_MAX:  # numbered anew, there are no more of them than rows
            codes = np.unique(codes, return_inverse=True)[1]
            count = len(codes)
        codes = codes * size + pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
        count *= size
    return codes, known
