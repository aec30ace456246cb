"""A costly function of one text, computed once for each distinct text: columns of texts often repeat few
values, in a batch and from batch to batch.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

# so many texts and bytes are remembered at most
_MOST_TEXTS, _MOST_BYTES = 1 << 16, 8 << 20
# Finding a text among the remembered ones takes 50 ns. Where more than half of a batch is new that does not
# pay, and so many batches pass until it is tried again.
_PASSED = 15


class RememberedTexts:
    """Computes a function whose result depends on the text alone, and is NULL for NULL. It remembers the
    texts of earlier batches.

    The function sees a text of the batch at hand only, so it fails where it would fail for the rows. One
    thread calls it.
    """

    def __init__(self, compute: Callable[[pa.Array], pa.Array]) -> None:
        self._compute = compute
        self._texts: pa.Array | None = None
        self._results: pa.Array | None = None
        self._pass = 0

    def __call__(self, column: pa.Array) -> pa.Array:
        """Return the results of a column's texts."""
        if self._pass:
            self._pass -= 1
            return self._compute(column)
        # no array of a list: pyarrow imports pandas to look at that
        known = column.slice(0, 0) if self._texts is None else self._texts
        places = pc.index_in(column, value_set=known)
        # all are NULL or known
        if places.null_count == column.null_count and self._results is not None:
            return self._results.take(places)
        new = column.filter(pc.and_not(places.is_null(), column.is_null())).unique()
        if 2 * len(new) > len(column):
            self._texts = self._results = None
            self._pass = _PASSED
            return self._compute(column)
        self._texts, self._results = self._with(new)
        result = self._results.take(pc.index_in(column, value_set=self._texts))
        if len(self._texts) > _MOST_TEXTS or self._texts.nbytes > _MOST_BYTES:
            self._texts = self._results = None
        return result

    def _with(self, new: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return the remembered texts and those, and their results."""
        results = self._compute(new)
        if self._texts is None or self._results is None:
            return new, results
        return pa.concat_arrays([self._texts, new]), pa.concat_arrays([self._results, results])
