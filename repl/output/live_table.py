"""The live table of a changing result: redrawn in place, at most ten times a second, with a status line."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TextIO

import pyarrow as pa

from penstock.client.monitoring.event_time import moment_text
from penstock.client.results.result import Result
from penstock.repl.output.printer import Style, kinds_of
from penstock.repl.output.status_reports import StatusReports
from penstock.repl.output.table_rendering import BOLD, RESET, table_lines

# more often is no smoother for the eye, and drawing takes time from the job in the same process
FRAME_S = 0.1
_CHROME_LINES = 8  # heading, types, rule, three elision lines, status, the line the cursor stands on
_LONGEST_LAG_S = 86_400  # further behind is a replay, whose lag says nothing
_CLEAR_BELOW = "\x1b[J"


class LiveTable:
    """Draws each frame over the last one. ``frame`` takes the time as an argument, so that a test can
    choose it.
    """

    def __init__(self, result: Result, out: TextIO, style: Style, started: float) -> None:
        self._result = result
        self._out = out
        self._style = style
        self._started = started
        self._fold = result.new_fold()
        self._changes = 0
        self._changes_before = 0
        self._drawn_at = started
        self._drawn_lines = 0
        self._body_before: set[str] = set()

    @property
    def rows(self) -> pa.Table:
        """The rows as they are now, in the asked order."""
        return self._result.in_order(self._fold.rows())

    def take(self, timeout_s: float) -> bool:
        """Read the next batch within a time; return whether one came."""
        batch = self._result.next_to_fold(timeout_s)
        if batch is None:
            return False
        # +I and +U add a row, -U and -D remove one: the table shows the rows as they are now
        self._fold.add(batch)
        self._changes += batch.num_rows
        return True

    def frame(self, now: float, size: tuple[int, int]) -> None:
        """Draw the rows over the last frame; rows that are new since then are bold."""
        width, height = size
        rows = self.rows
        # a frame must fit the screen: what has scrolled out of it cannot be erased
        look = replace(self._style.look, width=width, max_rows=max(2, height - _CHROME_LINES))
        lines = table_lines(rows, kinds_of(self._result), look)
        heading, body = lines[:3], lines[3:]
        marked = [
            f"{BOLD}{line}{RESET}"
            if look.color and self._body_before and line not in self._body_before
            else line
            for line in body
        ]
        # compared as text: a row that only moved is not new
        self._body_before = set(body)
        # a wrapped status line would take a second line that _erase does not count
        status = self._status(rows.num_rows, now)[: width - 1]
        self._erase()
        self._out.write("\n".join([*heading, *marked, status]) + "\n")
        self._out.flush()
        self._drawn_lines = len(heading) + len(body) + 1
        self._drawn_at, self._changes_before = now, self._changes

    def print_above(self, lines: list[str]) -> None:
        """Erase the last frame and print lines in its place; the next frame comes below them."""
        self._erase()
        self._out.write("\n".join(lines) + "\n")
        self._out.flush()

    def finish(self) -> None:
        """Erase the last frame; the caller prints the final rows."""
        self._erase()
        self._out.flush()

    def _erase(self) -> None:
        if self._drawn_lines:
            # cursor up to the first line of the last frame, then clear to the end of the screen
            self._out.write(f"\x1b[{self._drawn_lines}F{_CLEAR_BELOW}")
            self._drawn_lines = 0

    def _status(self, count: int, now: float) -> str:
        # two frames in one millisecond: no division by zero
        passed = max(now - self._drawn_at, 1e-3)
        rate = (self._changes - self._changes_before) / passed
        parts = [
            f"{count:,} row{'' if count == 1 else 's'}",
            f"{rate:,.0f} changes/s",
            f"{now - self._started:.1f} s",
        ]
        if (watermark := _watermark_text(self._result)) is not None:
            parts.insert(2, watermark)
        if (trouble := _trouble(self._result)) is not None:
            parts.insert(0, trouble)
        return "-- " + ", ".join(parts) + " (Ctrl-C stops)"


def _trouble(result: Result) -> str | None:
    """Return why the job is being restarted, while it is."""
    job = result.job
    failure = None if job is None or job.state != "RESTARTING" else job.last_failure
    return None if failure is None else f"restarting after {failure.code}: {failure.message}"


def _watermark_text(result: Result) -> str | None:
    """Return the job's watermark and how far it is behind the clock, when both are known."""
    watermark_us = None if result.job is None else result.job.metrics().watermark_us
    moment = moment_text(watermark_us)
    if watermark_us is None or moment is None:
        return None
    # event time against the wall clock: an idea of the delay, meaningless in a replay
    lag_s = time.time() - watermark_us / 1e6
    return f"watermark {moment}" + (f", {lag_s:.1f} s behind" if 0 <= lag_s < _LONGEST_LAG_S else "")


def show_live(
    result: Result, out: TextIO, style: Style, status: StatusReports, keep: Callable[[pa.Table], None]
) -> int:
    """Show a changing result until it ends, then its final rows as a table; return their number. Its status
    comes above the table. KeyboardInterrupt stops the result and leaves its current rows on the screen.
    ``keep`` gets the last rows.
    """
    table = LiveTable(result, out, style, time.monotonic())
    next_frame = time.monotonic() + FRAME_S
    try:
        while not result.ended:
            # wait for rows at most until the next frame is due
            if table.take(max(0.0, next_frame - time.monotonic())):
                status.rows_came()
            if lines := status.due():
                table.print_above(lines)
            if (now := time.monotonic()) >= next_frame:
                table.frame(now, _terminal_size())
                next_frame = time.monotonic() + FRAME_S
    except KeyboardInterrupt:
        # the last frame stays on the screen as the result so far
        result.cancel()
        table.frame(time.monotonic(), _terminal_size())
        keep(table.rows)
        raise
    result.next(0)  # raises what it ended with, if that was an error
    # the frame is erased, and the final rows are printed whole, without the cut to the screen
    table.finish()
    rows = table.rows
    keep(rows)
    out.write("\n".join(table_lines(rows, kinds_of(result), style.look)) + "\n")
    out.flush()
    return rows.num_rows


def _terminal_size() -> tuple[int, int]:
    size = shutil.get_terminal_size()
    return size.columns, size.lines
