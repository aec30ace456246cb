"""When windows give their rows, and the node that says when a query gives its own."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass


@dataclass(frozen=True)
class Emission:
    """When the windows of an aggregate give rows; microseconds.

    ``early``: also while they are open, every change of a result, ``every_us`` apart. ``lateness_us``: they
    take rows until the watermark is that far past their end, each changing the result given at their close.
    Without either a window gives its rows once.
    """

    early: bool = False
    every_us: int = 0
    lateness_us: int = 0

    @property
    def corrects(self) -> bool:
        """Whether rows that were given may be taken back."""
        return self.early or self.lateness_us > 0


ON_CLOSE = Emission()
