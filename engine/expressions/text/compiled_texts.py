"""Functions of texts by compiled loops. What a loop leaves is computed by the function's general kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.expressions.datum import Datum, Kernel, aligned
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, by_value
from penstock.engine.kernels import arrow_views

_PARTS = ("PROTOCOL", "AUTHORITY", "USERINFO", "HOST", "PATH", "QUERY", "REF", "FILE")
_NO_KEY = np.zeros(1, np.uint8)


def _completed(result: pa.Array, texts: pa.Array, left: np.ndarray, general: Kernel) -> pa.Array:
    """Return a result in which the general kernel has computed the rows that are left. NULL needs none."""
    left = left != 0
    if texts.null_count:
        left &= arrow_views.validity(texts) != 0
    if not left.any():
        return result
    mask = array_of(left)
    return pc.replace_with_mask(result, mask, general(texts.filter(mask)))


def soundex_factory(compute: Callable[[str], str]) -> Factory:
    """Return the factory of SOUNDEX; ``compute`` is for texts that are not ASCII."""
    general = by_value(compute, pa.string())

    def factory(bound: BoundCall) -> Kernel:
        def kernel(text: Datum) -> pa.Array:
            from penstock.engine.kernels.functions import word_metrics  # numba is loaded where it is needed

            (texts,) = aligned(text)
            offsets, data = arrow_views.string_parts(texts)
            left, ends = np.empty(len(texts), np.uint8), np.empty(len(texts) + 1, np.int64)
            # four letters, or the text itself
            out = np.empty(int(offsets[-1]) - int(offsets[0]) + 4 * len(texts), np.uint8)
            used = word_metrics.soundex(offsets, data, left, ends, out)
            return _completed(_texts(texts, ends, out[:used]), texts, left, general(bound))

        return kernel

    return factory


def _texts(texts: pa.Array, ends: np.ndarray, out: np.ndarray) -> pa.Array:
    return arrow_views.array_of_strings(ends, out, arrow_views.validity(texts), pa.string())


def levenshtein(*data: Datum) -> pa.Array:
    """Return the distances of two texts of each row; -1 where it exceeds a third argument."""
    from penstock.engine.kernels.functions import word_metrics  # numba is loaded where it is needed

    first, second, *limits = aligned(*data)
    parts = [arrow_views.string_parts(texts) for texts in (first, second)]
    longest = max(int(np.diff(offsets).max(initial=0)) for offsets, _ in parts)
    scratch = np.empty((3, longest + 2), np.int64)
    out = np.empty(len(first), np.int32)
    word_metrics.levenshtein(*parts[0], *parts[1], *scratch, out)
    missing = np.zeros(len(first), np.bool_)
    for column in (first, second, *limits):
        if column.null_count:
            missing |= arrow_views.validity(column) == 0
    result = array_of(out, missing if missing.any() else None)
    if not limits:
        return result
    return pc.if_else(pc.greater(result, limits[0]), pa.scalar(-1, pa.int32()), result)


def url_encoded(text: Datum) -> pa.Array:
    """Return texts with all but plain characters as %XX."""
    from penstock.engine.kernels.functions import urls  # numba is loaded where it is needed

    (texts,) = aligned(text)
    offsets, data = arrow_views.string_parts(texts)
    ends = np.empty(len(texts) + 1, np.int64)
    out = np.empty(3 * (int(offsets[-1]) - int(offsets[0])), np.uint8)
    used = urls.encode(offsets, data, ends, out)
    return _texts(texts, ends, out[:used])


def url_decoder(compute: Callable[[str], str | None]) -> Factory:
    """Return the factory of URL_DECODE; ``compute`` raises, or is NULL, for what is not encoded."""
    general = by_value(compute, pa.string())

    def factory(bound: BoundCall) -> Kernel:
        def kernel(text: Datum) -> pa.Array:
            from penstock.engine.kernels.functions import urls  # numba is loaded where it is needed

            (texts,) = aligned(text)
            offsets, data = arrow_views.string_parts(texts)
            left, ends = np.empty(len(texts), np.uint8), np.empty(len(texts) + 1, np.int64)
            out = np.empty(int(offsets[-1]) - int(offsets[0]), np.uint8)
            used = urls.decode(offsets, data, left, ends, out)
            return _completed(_texts(texts, ends, out[:used]), texts, left, general(bound))

        return kernel

    return factory


def url_parts(compute: Callable[..., str | None]) -> Factory:
    """Return the factory of PARSE_URL: compiled for a constant part and key, and URLs with ``//``."""
    general = by_value(compute, pa.string())

    def factory(bound: BoundCall) -> Kernel:
        part, key = bound.constant(1), bound.constant(2)
        by_hand = general(bound)
        named = len(bound.kinds) == 3
        if part not in _PARTS or (named and (part != "QUERY" or not isinstance(key, str))):
            return by_hand
        encoded = np.frombuffer(str(key).encode(), np.uint8) if named else _NO_KEY
        if not encoded.size:
            return by_hand

        def rest(texts: pa.Array) -> pa.Array:
            return by_hand(texts, pa.scalar(part), *([pa.scalar(key)] if named else []))

        def kernel(url: Datum, *_: Datum) -> pa.Array:
            from penstock.engine.kernels.functions import string_split, urls  # numba is loaded here

            (texts,) = aligned(url)
            offsets, data = arrow_views.string_parts(texts)
            left, starts = np.empty(len(texts), np.uint8), np.empty(len(texts), np.int64)
            lengths = np.empty(len(texts), np.int64)
            urls.locate_part(offsets, data, _PARTS.index(str(part)), encoded, named, left, starts, lengths)
            if texts.null_count:
                lengths[arrow_views.validity(texts) == 0] = -1
            ends = np.zeros(len(texts) + 1, np.int64)
            np.cumsum(np.maximum(lengths, 0), out=ends[1:])
            out = np.empty(int(ends[-1]), np.uint8)
            string_split.copy_pieces(starts, lengths, data, out)
            valid = (lengths >= 0).view(np.uint8)
            result = arrow_views.array_of_strings(ends, out, valid, pa.string())
            return _completed(result, texts, left, rest)

        return kernel

    return factory
