"""Who is told that a kernel is compiled: a third of a second each, once on a machine, as what comes of it
is kept.
"""

from __future__ import annotations

from collections.abc import Callable

_LISTENERS: list[Callable[[], None]] = []


def notify_on_compile(tell: Callable[[], None]) -> None:
    """Have ``tell`` called when the first kernel is compiled in this process; it may be called from any
    thread.
    """
    _LISTENERS.append(tell)


def compiling() -> None:
    """A kernel is about to be compiled, for its machine code is not in the cache."""
    while _LISTENERS:
        _LISTENERS.pop()()
