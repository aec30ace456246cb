"""The notice that a kernel is being compiled. Compilation takes a third of a second per kernel, once per
machine, since machine code is cached.

This is a separate file because the command line imports it at every start and must not import numba.
"""

from __future__ import annotations

from collections.abc import Callable

_LISTENERS: list[Callable[[], None]] = []


def notify_on_compile(notify: Callable[[], None]) -> None:
    """Call ``notify`` when the first kernel is compiled in this process. Any thread may call it."""
    _LISTENERS.append(notify)


def compiling() -> None:
    """Report that a kernel is about to be compiled, because its machine code is not in the cache."""
    while _LISTENERS:
        # Each listener is called once: the notice is about the first kernel.
        _LISTENERS.pop()()
