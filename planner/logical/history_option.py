"""The wish to have the past of a query's sources computed by a bounded backend before the query goes live."""

from __future__ import annotations

from penstock.catalog.errors import Span
from penstock.catalog.frozen_dataclass import dataclass


@dataclass(frozen=True)
class HistoryWish:
    """WITH HISTORY, or the hint BACKFILL; ``backend`` is None where the setting ``bounded.backend`` names
    it. ``span``: where it is written.
    """

    backend: str | None
    span: Span
