"""Hashes: MD5, SHA-1, SHA-2, and Spark's row hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.expressions.datum import Datum, Kernel, aligned, on_first
from penstock.engine.expressions.evaluation_errors import bad_argument, over_capacity
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, by_value, compiled_later
from penstock.engine.kernels import arrow_views

# the seed of Spark's hash() and xxhash64()
_SEED = 42
# sha2(x, 0) is SHA-256
_SHA = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _sha2(bound: BoundCall) -> Kernel:
    name = _SHA.get(bound.constant(1))  # type: ignore[call-overload]  # the constant may have any type
    if name is None:
        raise bad_argument(f"sha2 has no digest of {bound.constant(1)} bits", "use 224, 256, 384 or 512")
    return _digest(name)(bound)


def _digest(name: str) -> Factory:
    """Return the factory of a digest in hexadecimal digits; a second argument is its constant length."""

    def compute(value: str | bytes, *_: int) -> str:
        return hashlib.new(name, _bytes(value), usedforsecurity=False).hexdigest()

    def compiled(values: pa.Array) -> pa.Array:
        from penstock.engine.kernels.functions import digests

        offsets, data = arrow_views.string_parts(values)
        valid, ends = arrow_views.validity(values), np.empty(len(values) + 1, np.int64)
        width = hashlib.new(name, usedforsecurity=False).digest_size
        size = 2 * width * (len(values) - values.null_count)
        if size > LIMITS.array_bytes:
            raise over_capacity()
        out = np.empty(size, np.uint8)
        start = np.array(digests.STARTS[name], np.uint32).view(np.uint8)
        function = {"md5": digests.MD5, "sha1": digests.SHA1}.get(name, digests.SHA2)
        digests.digests(function, start, width // 4, offsets, data, valid, ends, out)
        return arrow_views.array_of_strings(ends, out, valid, pa.string())

    general = by_value(compute, pa.string())

    def factory(bound: BoundCall) -> Kernel:
        # words of 64 bits
        if name in ("sha384", "sha512"):
            return general(bound)
        return compiled_later(general(bound), on_first(compiled))

    return factory


def _row_hash(name: str) -> Factory:
    """Return the factory of ``hash`` (Murmur3) or ``xxhash64``."""

    def kernel(*data: Datum) -> pa.Array:
        from penstock.engine.kernels import arrow_views as col  # numba is loaded where it is needed
        from penstock.engine.kernels import spark_hash

        words, texts = (
            (spark_hash.murmur_words, spark_hash.murmur_bytes)
            if name == "hash"
            else (spark_hash.xx_words, spark_hash.xx_bytes)
        )
        columns = aligned(*data)
        # Each column continues from the hash so far; a NULL leaves it unchanged.
        hashes = np.full(len(columns[0]), _SEED, np.uint64)
        for column in columns:
            if col.is_bytes(column.type):
                texts(*col.string_parts(column), col.validity(column), hashes)
            elif not pa.types.is_null(column.type):
                words(_words(column, col.words), col.validity(column), _is_long(column.type), hashes)
        return pa.array(hashes.astype(np.uint32).view(np.int32) if name == "hash" else hashes.view(np.int64))

    return lambda bound: kernel


def _is_long(kind: pa.DataType) -> bool:
    return pa.types.is_decimal(kind) or (kind.bit_width == 64)


def _words(column: pa.Array, words: Callable[[pa.Array], np.ndarray]) -> np.ndarray:
    """Return the bits that Spark hashes. A FLOAT hashes as 32 bits, not as a DOUBLE."""
    if column.type != pa.float32():
        return words(column)
    # Adding zero turns -0.0 into 0.0; all NaNs get Java's one bit pattern.
    values = column.fill_null(0).to_numpy() + np.float32(0)
    return np.where(np.isnan(values), np.int32(0x7FC00000), values.view(np.int32)).astype(np.int64)


DIGESTS: dict[str, Factory] = {
    "md5": _digest("md5"),
    "sha1": _digest("sha1"),
    "sha2": _sha2,
    "hash": _row_hash("hash"),
    "xxhash64": _row_hash("xxhash64"),
}
