"""HeldBatches: full batches held back for a moment, to be taken together with those that are ready behind them."""

from __future__ import annotations

from engine.elements import Batch

BATCHES_AT_ONCE = 4
_SMALL = 8


class HeldBatches:
    """Batches up to ``BATCHES_AT_ONCE`` full ones of ``batch_max_rows``. A small batch says that nothing waits behind it, so it holds up nothing."""

    def __init__(self, batch_max_rows: int) -> None:
        self._rows_max = BATCHES_AT_ONCE * batch_max_rows
        self._small = batch_max_rows // _SMALL
        self._batches: list[Batch] = []
        self._rows = 0

    def add(self, batch: Batch) -> bool:
        """Hold a batch; return whether it is time to take what is held."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        return self._rows >= self._rows_max or batch.num_rows < self._small

    def take(self) -> list[Batch]:
        """Return what is held, and hold it no longer."""
        batches, self._batches, self._rows = self._batches, [], 0
        return batches
