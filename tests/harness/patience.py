"""How tests wait: for what must happen, never for how long it takes.

A limit only ends a test that has failed already, so it is long: a machine whose one core is shared by ten
programs must not turn a test red.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 300.0
_LOOK_S = 0.005


def await_that(
    holds: Callable[[], object], what: str | Callable[[], object] = "it", each_s: float = _LOOK_S
) -> None:
    """Return as soon as ``holds()`` is true, which is asked every ``each_s``; AssertionError after
    ``PATIENCE_S``.

    ``what``: names it, or returns what to say at the end, such as how the job is by then.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, (
            f"{what if isinstance(what, str) else what()} has not happened within {PATIENCE_S:.0f} s"
        )
        time.sleep(each_s)
