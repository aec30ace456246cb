"""Histograms of few bins, from maps of values and counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.expressions.datum import Datum, Kernel, aligned
from penstock.engine.expressions.evaluation_errors import bad_argument
from penstock.engine.expressions.kernel_factory import BoundCall
from penstock.engine.expressions.nested.lists import Lists, lists_of, member


def histogram_bins(bound: BoundCall) -> Kernel:
    """Return the kernel of ``histogram_bins(m, n)``, with n constant."""
    bins = bound.constant(1)
    assert isinstance(bins, int), "the binder takes constants only"

    def kernel(histograms: Datum, *_: Datum) -> pa.Array:
        (column,) = aligned(histograms)
        lists = lists_of(column)
        values, counts = (member(lists.flat, i).cast(pa.float64()) for i in range(2))
        if counts.null_count:
            raise bad_argument("a count of a histogram is NULL")
        from penstock.engine.kernels.functions.histogram_bins import merge_bins

        # -0.0 becomes 0.0, as which it was counted
        numbers = values.to_numpy() + 0.0
        order = np.lexsort((numbers, lists.parents))
        merged, weights = np.empty((2, len(order)))
        ends = np.empty(lists.lengths.size, np.int64)
        used = merge_bins(
            lists.starts,
            numbers[order],
            counts.to_numpy()[order],
            bins,
            ends,
            merged,
            weights,
            np.empty(4 * int(lists.lengths.max(initial=0)), np.int64),
        )
        flat = pa.StructArray.from_arrays([pa.array(merged[:used]), pa.array(weights[:used])], ["x", "y"])
        return Lists(flat, np.diff(ends, prepend=0), lists.missing).column()

    return kernel
