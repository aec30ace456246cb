"""One line that says how far a query is while somebody waits for its rows; drawn over itself, gone when
they come.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from penstock.client.results.result import Result

FIRST_S = 0.5
EVERY_S = 0.2
_CLEAR = "\r\x1b[K"


@contextmanager
def progress_line(
    result: Result, out: TextIO, first_s: float = FIRST_S, every_s: float = EVERY_S
) -> Iterator[None]:
    """Show a result's progress on a terminal, after ``first_s`` seconds and then every ``every_s``;
    elsewhere show nothing.
    """
    if not out.isatty():
        yield
        return
    done = threading.Event()
    drawing = threading.Thread(
        target=_draw, args=(result, out, done, first_s, every_s), name="penstock-progress", daemon=True
    )
    drawing.start()
    try:
        yield
    finally:
        done.set()
        drawing.join(timeout=1)


def _draw(result: Result, out: TextIO, done: threading.Event, first_s: float, every_s: float) -> None:
    shown, wait_s = "", first_s
    while not done.wait(wait_s):
        said, wait_s = result.progress() or "", every_s
        if said != shown and not done.is_set():
            out.write(f"{_CLEAR}{said}")
            out.flush()
            shown = said
    if shown:
        out.write(_CLEAR)
        out.flush()
