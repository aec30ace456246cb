"""When the status of a query is reported: while it gives no row, ever less often, and whenever it is asked
for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.client.results.result import Result

if TYPE_CHECKING:
    from penstock.engine.job.job import Job

# the time between two reports doubles up to a hundred times the first: 3 s grow to 5 minutes
_LONGEST = 100


class StatusReports:
    """The status reports of one result, timed by the result's clock.

    ``heading``: the lines that name its columns. They come with the first report, and so does ``how_to_ask``.
    ``ask`` may be called from any thread, ``due`` from one.
    """

    def __init__(self, result: Result, every_s: float, how_to_ask: str = "") -> None:
        self.heading: Callable[[], list[str]] = list
        self._result = result
        self._how_to_ask = how_to_ask
        self._every_s = every_s
        self._wait_s = self._next_s = every_s
        self._asked = False
        self._has_rows = False
        self._last: list[str] | None = None

    @property
    def job(self) -> Job | None:
        """The job of the result."""
        return self._result.job

    def ask(self) -> None:
        """Have the next ``due`` report, whatever was reported before."""
        self._asked = True

    def rows_came(self) -> None:
        """Take note that a row was printed: from now on only an asked status is reported."""
        self._has_rows = True

    def due(self) -> list[str]:
        """Return the lines to report now; none while nothing is due or nothing has changed."""
        asked, self._asked = self._asked, False
        elapsed_s = self._result.elapsed_s
        silent = bool(self._every_s) and not self._has_rows and elapsed_s >= self._next_s
        if silent:
            self._wait_s = min(2 * self._wait_s, _LONGEST * self._every_s)
            self._next_s = elapsed_s + self._wait_s
        if not asked and not silent:
            return []
        # the engine's reports: not before a query takes long
        from penstock.client.statements.job_status import query_status

        first, status = self._last is None, query_status(self._result)
        # asked for: also what is the same as before
        if not asked and status == self._last:
            return []
        self._last = status
        since = f"{'' if self._has_rows else 'no row yet '}after {elapsed_s:.0f} s"
        lines = [f"{since}: {status[0]}" if status else since, *(f"  {line}" for line in status[1:])]
        before = self.heading() if first and not self._has_rows else []
        return [*before, *lines, *([f"  {self._how_to_ask}"] if first and self._how_to_ask else [])]
