"""Loading the engine's modules: the first job of a process imports several hundred of them, numba's too."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the collection of garbage where modules may be imported: they stay, so it would free nothing.

    It took 70 of 350 ms of the first job: dozens of passes over the new objects, then one
    over all. Collection that the program has switched off stays off. The pause is the process's: of two
    threads the first to end ends it.
    """
    if not gc.isenabled():
        yield
        return
    modules = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        # Young objects become old ones without a pass over them. Those that a program has frozen stay frozen.
        if len(sys.modules) > modules and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()
