"""Which state of the table each range of keys was read in, and so which changes of a key are still to come.

The rows are read in the order of their key. When reading is interrupted, the rest is read in a later
state. A change of a key counts if it was committed after the state in which the key's range was read. So no
row is lost or read twice, however often reading began again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.schema import Field
from penstock.engine.api.arrow_numpy import is_true
from penstock.engine.connectors.postgres_cdc.columns import converted


class KeyRanges:
    """Ranges of keys in ascending order. ``items`` are JSON-ready: the greatest key of a range as texts, and
    the position in the log of the state it was read in. The last range has no greatest key.
    """

    def __init__(self, items: Sequence[Sequence[Any]] = ()) -> None:
        self.items: list[list[Any]] = [list(item) for item in items]

    @property
    def first(self) -> int:
        """The position of the oldest state."""
        return int(min(at for _, at in self.items))

    @property
    def last(self) -> int:
        """The position of the newest state: from there on every change counts."""
        return int(max((at for _, at in self.items), default=0))

    def resume(self, reached: list[str] | None, at: int) -> None:
        """Read the keys after ``reached`` in the state at a position, all keys for ``None``."""
        # a range of which nothing was read is read anew
        if self.items and self.items[-1][0] is None:
            before = self.items[-2][0] if len(self.items) > 1 else None
            if reached is None or reached == before:
                self.items.pop()
            else:
                self.items[-1][0] = reached
        self.items.append([None, at])

    def counts(self, keys: list[pa.Array], fields: Sequence[Field], commits: np.ndarray) -> np.ndarray:
        """Return for each change whether it is still to come, by its key and the position of its commit."""
        needed = np.full(len(commits), self.items[-1][1], np.int64)
        # from the last range to the first: a lower bound overrides
        for greatest, at in reversed(self.items[:-1]):
            needed[_at_most(keys, fields, greatest)] = at
        return commits >= needed


def _at_most(keys: list[pa.Array], fields: Sequence[Field], greatest: list[str]) -> np.ndarray:
    """Return which keys are at most a key: column by column, the last one first."""
    result = np.ones(len(keys[0]), np.bool_)
    for column, field, text in reversed(list(zip(keys, fields, greatest, strict=True))):
        bound = converted(pa.array([text], pa.string()), field, "")[0]
        # Arrow does not order booleans
        values = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
        bound = bound.cast(values.type)
        less, equal = is_true(pc.less(values, bound)), is_true(pc.equal(values, bound))
        result = less | (equal & result)
    return result
