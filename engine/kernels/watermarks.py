"""The watermark of a split over a batch, where no row is behind it."""

from __future__ import annotations

from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I64, kernel


@kernel(I64(IN_I64, IN_I64, I64, OUT_I64), interpreted_by=(0,))
def advance(times, watermarks, reached, highest):
    """Write the greatest watermark, at least ``reached``, and the greatest time. Return how many rows are
    behind: below the greatest watermark before them. There is at least one row.
    """
    behind, latest = 0, times[0]
    for i in range(times.size):
        behind += times[i] < reached
        reached = max(reached, watermarks[i])
        latest = max(latest, times[i])
    highest[0], highest[1] = reached, latest
    return behind
