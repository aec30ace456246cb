"""More of mathematics: hyperbolic functions, exact ones near zero, buckets, factorials."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.expressions.columns import Kernel, array_of, columnwise, nulls_of_any, values_of
from penstock.engine.expressions.site import Factory, plain

_FACTORIALS = np.array([math.factorial(n) for n in range(21)])


def _of_numbers(compute: object) -> Factory:
    """A function of DOUBLEs in numpy."""

    def kernel(*columns: pa.Array) -> pa.Array:
        with np.errstate(all="ignore"):
            return array_of(compute(*map(values_of, columns)), nulls_of_any(*columns), pa.float64())  # type: ignore[operator]  # a function

    return plain(columnwise(kernel))


def _log1p(x: pa.Array) -> pa.Array:
    values, missing = values_of(x), nulls_of_any(x)
    with np.errstate(all="ignore"):
        outside = values <= -1
        return array_of(np.log1p(values), outside if missing is None else outside | missing, pa.float64())


def _factorial(n: pa.Array) -> pa.Array:
    values, missing = values_of(n), nulls_of_any(n)
    outside = (values < 0) | (values > 20)
    return array_of(_FACTORIALS[np.where(outside, 0, values)], outside if missing is None else outside | missing, pa.int64())


def _width_bucket(x: pa.Array, low: pa.Array, high: pa.Array, count: pa.Array) -> pa.Array:
    value, first, last, parts = (values_of(column) for column in (x, low, high, count))
    with np.errstate(all="ignore"):
        undefined = (parts <= 0) | (first == last) | np.isnan(value) | ~np.isfinite(first) | ~np.isfinite(last)
        inside = np.floor(parts * (value - first) / (last - first)) + 1
    up = first < last
    before, behind = np.where(up, value < first, value > first), np.where(up, value >= last, value <= last)
    bucket = np.where(before, 0, np.where(behind, parts + 1, np.where(np.isfinite(inside), inside, 0))).astype(np.int64)
    missing = nulls_of_any(x, low, high, count)
    return array_of(bucket, undefined if missing is None else undefined | missing, pa.int64())


def _kernel(kernel: Kernel) -> Factory:
    return plain(columnwise(kernel))


NUMBERS: dict[str, Factory] = {
    "sinh": _of_numbers(np.sinh),
    "cosh": _of_numbers(np.cosh),
    "tanh": _of_numbers(np.tanh),
    "asinh": _of_numbers(np.arcsinh),
    "acosh": _of_numbers(np.arccosh),
    "atanh": _of_numbers(np.arctanh),
    "cot": _of_numbers(lambda x: 1.0 / np.tan(x)),
    "sec": _of_numbers(lambda x: 1.0 / np.cos(x)),
    "csc": _of_numbers(lambda x: 1.0 / np.sin(x)),
    "expm1": _of_numbers(np.expm1),
    "log1p": _kernel(_log1p),
    "hypot": _of_numbers(np.hypot),
    "rint": _of_numbers(np.rint),
    "nanvl": _kernel(lambda x, y: pc.if_else(pc.is_nan(x), y, x)),
    "e": plain(lambda: pa.scalar(math.e)),
    "factorial": _kernel(_factorial),
    "width_bucket": _kernel(_width_bucket),
}
