"""Arrays as sets: union, intersection, difference, overlap."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api import arrow_numpy
from penstock.engine.expressions.call_site import Factory, plain
from penstock.engine.expressions.datum import columnwise, nulls_of, nulls_of_any
from penstock.engine.expressions.nested.lists import (
    Lists,
    codes_of,
    common_codes,
    firsts,
    interleaved,
    lists_of,
)


def _union(a: pa.Array, b: pa.Array) -> pa.Array:
    joined = interleaved([lists_of(a), lists_of(b)])
    return joined.kept(firsts(joined.parents, codes_of(joined.flat))).column()


def _shared(mine: Lists, theirs: Lists) -> tuple[np.ndarray, np.ndarray]:
    """Which elements of the one list are in the other of the same row, and the numbers of the elements."""
    first, second = common_codes(mine.flat, theirs.flat)
    width = max(int(first.max(initial=0)), int(second.max(initial=0))) + 1
    return np.isin(mine.parents * width + first, theirs.parents * width + second), first


def _selected(a: pa.Array, b: pa.Array, wanted: bool) -> pa.Array:
    mine, theirs = lists_of(a), lists_of(b)
    missing = nulls_of_any(a, b)
    shared, codes = _shared(mine, theirs)
    keep = (shared == wanted) & firsts(mine.parents, codes)
    if missing is not None:
        keep &= ~missing[mine.parents]
    kept = mine.kept(keep)
    return Lists(kept.flat, kept.lengths, missing).column()


def _overlap(a: pa.Array, b: pa.Array) -> pa.Array:
    mine, theirs = lists_of(a), lists_of(b)
    shared, _ = _shared(mine, theirs)
    unknown, others = nulls_of(mine.flat), nulls_of(theirs.flat)
    if unknown is not None:
        shared &= ~unknown
    found = mine.any(shared)
    missing = nulls_of_any(a, b)
    has_null = np.zeros(len(a), np.bool_)
    for lists, nulls in ((mine, unknown), (theirs, others)):
        if nulls is not None:
            has_null |= lists.any(nulls)
    left_open = has_null & ~found & (mine.lengths > 0) & (theirs.lengths > 0)
    if left_open.any():
        missing = left_open if missing is None else missing | left_open
    return arrow_numpy.array_of(found, missing)


ARRAY_SETS: dict[str, Factory] = {
    "array_union": plain(columnwise(_union)),
    "array_intersect": plain(columnwise(lambda a, b: _selected(a, b, True))),
    "array_except": plain(columnwise(lambda a, b: _selected(a, b, False))),
    "arrays_overlap": plain(columnwise(_overlap)),
}
