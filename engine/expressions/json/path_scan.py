"""Values at a constant path of JSON texts, by a compiled loop; texts that are not plain by another kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.expressions.datum import Kernel, aligned
from penstock.engine.kernels import arrow_views

Step = str | int
"""The name of a field, or the position of an element."""
# kinds of engine.kernels.functions.json_paths, which is imported where numba is needed
LEFT, ABSENT, TEXT, ESCAPED, NUMBER, TRUTH, JSON_NULL, ARRAY, OBJECT = range(-1, 8)
SCALARS = (TEXT, ESCAPED, NUMBER, TRUTH)
PARTS = (ARRAY, OBJECT)
_GREATEST_INDEX = 1 << 40


@dataclass(frozen=True)
class PathValues:
    """The values at a path in texts: a kind, the bounds in ``data`` and the number of elements of each."""

    data: np.ndarray
    kinds: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    counts: np.ndarray

    def is_any_of(self, kinds: Sequence[int]) -> np.ndarray:
        """Return the mask of the values of these kinds."""
        mask = self.kinds == kinds[0]
        for kind in kinds[1:]:
            mask |= self.kinds == kind
        return mask

    def texts(self, wanted: np.ndarray) -> pa.Array:
        """Return the wanted values as texts, without quotes, escapes and blanks; the others are NULL."""
        from penstock.engine.kernels.functions import json_paths

        kinds = np.where(wanted, self.kinds, ABSENT)
        offsets = np.empty(len(kinds) + 1, np.int64)
        out = np.empty(int((self.ends - self.starts)[wanted].sum()), np.uint8)
        used = json_paths.write_values(self.data, kinds, self.starts, self.ends, offsets, out)
        return arrow_views.array_of_strings(offsets, out[:used], wanted.view(np.uint8), pa.string())


def is_scanned(steps: Sequence[Step]) -> bool:
    """Return whether the loop takes a path: names that need no quoting, and positions of a usual size."""
    return all(
        step < _GREATEST_INDEX if isinstance(step, int) else step and '"' not in step and "\\" not in step
        for step in steps
    )


def scan(texts: pa.Array, steps: Sequence[Step], canonical: bool = False) -> PathValues:
    """Return what is at a path of each text. A NULL has undefined values.

    ``canonical``: the texts are values of VARIANT, and names are written as they are there.
    """
    from penstock.engine.kernels.functions import json_paths

    names, words = bytearray(), []
    for step in steps:
        begin = len(names)
        names += b"" if isinstance(step, int) else step.encode()
        words += [step, 0, 0] if isinstance(step, int) else [-1, begin, len(names)]
    offsets, data = arrow_views.string_parts(texts)
    found = PathValues(data, *(np.empty(len(texts), np.int64) for _ in range(4)))
    json_paths.locate(
        offsets,
        data,
        np.frombuffer(bytes(names) or b"\0", np.uint8),
        np.array(words, np.int64),
        int(canonical),
        found.kinds,
        found.starts,
        found.ends,
        found.counts,
    )
    return found


def scanning(steps: Sequence[Step], answer: Callable[[PathValues], pa.Array], general: Kernel) -> Kernel:
    """Return the kernel of a function of texts: ``answer`` where the loop reads a text, ``general`` for the
    others. NULL for NULL.
    """

    def kernel(text: pa.Array | pa.Scalar, *_: pa.Array | pa.Scalar) -> pa.Array:
        (texts,) = aligned(text)
        found = scan(texts, steps)
        missing = arrow_views.validity(texts) == 0 if texts.null_count else None
        left = found.kinds == LEFT
        if missing is not None:
            left &= ~missing
        result = answer(found)
        if missing is not None:
            result = pc.if_else(array_of(missing), pa.scalar(None, result.type), result)
        if not left.any():
            return result
        mask = array_of(left)
        return pc.replace_with_mask(result, mask, general(texts.filter(mask)))

    return kernel
