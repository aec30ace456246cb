"""Notes of the binder, such as that a clause has no effect. They are logged, and the shell prints them."""

from __future__ import annotations

import logging

from penstock.planner.binder.binder import Binder

NEWS = logging.getLogger("penstock.planner")


def log_notes(binder: Binder) -> None:
    """Tell the user of the clauses that have no effect."""
    for note in binder.notes:
        NEWS.info("note: %s", note)
