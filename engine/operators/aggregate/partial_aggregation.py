"""Reduction: whether aggregating before an exchange makes rows fewer. It only ever decides how fast a
result comes, never what it is.
"""

from __future__ import annotations

_TRIALS = 2
_FEWEST_ROWS = 1024
_REST_BATCHES = 128


class Reduction:
    """Pays while at most half as many rows come out as go in; after two trials that did not it rests for a
    while, and is tried again.
    """

    def __init__(self) -> None:
        self._failed = 0
        self._rest = 0

    def pays(self) -> bool:
        """Return whether to aggregate the next batch."""
        if self._rest == 0:
            return True
        self._rest -= 1
        return False

    def saw(self, rows_in: int, rows_out: int) -> None:
        """Learn from a trial; small ones say nothing."""
        if rows_in < _FEWEST_ROWS:
            return
        self._failed = self._failed + 1 if rows_out * 2 > rows_in else 0
        if self._failed >= _TRIALS:
            self._rest, self._failed = _REST_BATCHES, _TRIALS - 1
