"""MatchRows: the buffer of MATCH_RECOGNIZE. Rows of unfinished matches remember the transition that took
them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import numbers_of
from penstock.engine.api.operator import KeyGroups
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.rows.partitioned_event_time_buffer import TimedRows
from penstock.engine.state.time_to_live import LastWrites

BEFORE = -1
"""The mark of a row that is stored only because later matches may look back at it."""


class MatchRows(TimedRows):
    """Rows with a mark each. The mark of a row of an unfinished match is its number in the match times
    ``transitions`` plus the transition that matched it. Other rows have BEFORE.
    """

    def __init__(
        self,
        schema: pa.Schema,
        partition: Sequence[int],
        time_column: int,
        keys: KeyIndex,
        groups: KeyGroups,
        transitions: int,
        writes: LastWrites | None = None,
        *,
        numbered: bool = False,
    ) -> None:
        # One value by row id, grown with the store.
        super().__init__(schema, partition, time_column, keys, groups, writes, numbered=numbered)
        self._transitions = transitions
        self._marks = np.zeros(0, np.int64)

    def marks(self, ids: np.ndarray) -> np.ndarray:
        """Return the marks of rows."""
        self._reserve()
        return self._marks[ids]

    def mark(self, ids: np.ndarray, marks: np.ndarray) -> None:
        """Set the marks of rows."""
        self._reserve()
        # Only marks that changed: an incremental snapshot writes no row whose mark stayed.
        self.changes.mark(ids[self._marks[ids] != marks], self.store.capacity)
        self.store.save(ids)
        self._marks[ids] = marks

    def _reserve(self) -> None:
        if self.store.capacity > self._marks.size:
            self._marks = grown(self._marks, self.store.capacity)

    def begun(self) -> np.ndarray:
        """Return the ids of the first rows of unfinished matches."""
        ids = self.linked_ids()
        marks = self.marks(ids)
        # Number 0 in its match: marks are number * transitions + transition.
        return ids[(marks >= 0) & (marks < self._transitions)]

    def _beside(self) -> tuple[list[str], dict[str, np.ndarray]]:
        self._reserve()
        names, beside = super()._beside()
        return ["mark", *names], beside | {"mark": self._marks}

    def restore(self, part: pa.Table) -> None:
        ids = self._restored(part)
        self.mark(ids, numbers_of(part.column("mark"))[: ids.size])
