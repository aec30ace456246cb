"""Notes of the binder, such as that a clause has no effect. They are logged, and the shell prints them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

NEWS = logging.getLogger("penstock.planner")


def log_notes(notes: Iterable[str]) -> None:
    """Tell the user of the clauses that have no effect."""
    for note in notes:
        NEWS.info("note: %s", note)
