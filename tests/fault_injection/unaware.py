"""The command line of a process that does not learn that another one has its job, unless a table's target says
so: the lock is not looked at after the start, nor before a restart.
"""

from __future__ import annotations

import sys

from penstock.engine.checkpoint.store import CheckpointStore
from penstock.repl.cli import main


def _renew(_store: CheckpointStore) -> None:
    """Whose lock it is is not asked."""


def forget_the_lock() -> None:
    """Plant it."""
    CheckpointStore.renew = CheckpointStore.check_owner = _renew  # type: ignore[method-assign]


if __name__ == "__main__":
    forget_the_lock()
    sys.exit(main())
