"""The jobs that fill materialized views, and the state of a view that a query reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import MaterializedView
from penstock.client.execution.pending_statement import statement_cancelled
from penstock.engine.connectors.in_process.materialized_views import (
    FIRST_STATE_S,
    MaterializedContents,
    MaterializedTables,
)
from penstock.engine.job.job_state import JobState
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.engine.job.job import Job


_SLICE_S = 0.25
_NOT_UPDATED = (JobState.CANCELED, JobState.FAILED)


@dataclass(frozen=True)
class ViewJob:
    """The job that fills a view, and the views it reads (folded names). ``settings``: those of its session,
    with which the job is started again.
    """

    job: Job
    follows: frozenset[str]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass
class MaterializedViewJobs:
    """The materialized views of an engine. ``by_name``: their jobs by folded name. ``tables``: their rows."""

    tables: MaterializedTables = field(default_factory=MaterializedTables)
    by_name: dict[str, ViewJob] = field(default_factory=dict)
    _dropping: set[str] = field(default_factory=set)

    def begin_drop(self, name: str) -> bool:
        """Return whether the caller drops a view, and no other session; ``end_drop`` follows. Called with the
        lock of the catalog.
        """
        if name.lower() in self._dropping:
            return False
        self._dropping.add(name.lower())
        return True

    def end_drop(self, name: str) -> None:
        """Let another session drop a view of that name again."""
        self._dropping.discard(name.lower())

    def job(self, name: str) -> Job | None:
        """Return the job that fills a view."""
        view = self.by_name.get(name.lower())
        return None if view is None else view.job

    def pin(self, plan: LogicalPlan, is_abandoned: Callable[[], bool] = lambda: False) -> LogicalPlan:
        """Return a bound plan that reads one state of each view, however often the plan names it. Waits
        for the first state of a new view, unless nobody will read the result (``is_abandoned``).
        """
        # by folded name: the second scan of a view gets the version of the first
        versions: dict[str, int | None] = {}

        def pin_scan(node: LogicalPlan) -> LogicalPlan:
            if (
                # "follow": the scan reads the view's changes, which have no single version
                not isinstance(node, Scan)
                or not isinstance(node.table, MaterializedView)
                or "follow" in node.table.options
            ):
                return node
            contents = self.tables.find(node.table.name)
            # pinned already, or a view without rows in this process (a script that is only checked)
            if contents is None or "snapshot" in node.table.options:
                return node
            name = node.table.name.lower()
            if name not in versions:
                versions[name] = self._current_version(contents, is_abandoned)
            return replace(
                node,
                table=replace(node.table, options={**node.table.options, "snapshot": str(versions[name])}),
            )

        return plan.transform(pin_scan)

    def _current_version(self, contents: MaterializedContents, is_abandoned: Callable[[], bool]) -> int:
        version = None
        if self._await_first(contents, is_abandoned):
            version = contents.pin(_SLICE_S)
        self._check(contents, version is not None)
        assert version is not None
        return version

    def lookup(
        self, name: str, is_abandoned: Callable[[], bool], columns: tuple[int, ...], key: list[pa.Array]
    ) -> pa.RecordBatch:
        """Return the present rows of a view whose columns hash like a key. Waits for the first state of a new
        view.
        """
        contents = self.tables.contents(name)
        self._check(contents, self._await_first(contents, is_abandoned))
        return contents.index(columns).lookup(key)

    def lookup_now(self, name: str, columns: tuple[int, ...], key: list[pa.Array]) -> pa.RecordBatch | None:
        """Return the same where it has to wait for nothing and the view is in order; else None."""
        contents, job = self.tables.find(name), self.job(name)
        if contents is None or (job is not None and job.state in _NOT_UPDATED):
            return None
        return contents.lookup_now(columns, key)

    def _await_first(self, contents: MaterializedContents, is_abandoned: Callable[[], bool]) -> bool:
        # in slices: a session that is closed meanwhile does not wait for the rest
        for _ in range(round(FIRST_STATE_S / _SLICE_S)):
            if contents.await_first(_SLICE_S):
                return True
            if is_abandoned():
                raise statement_cancelled()
        return False

    def _check(self, contents: MaterializedContents, has_state: bool) -> None:
        """Refuse a view without a first state, and one whose job no longer updates it."""
        job = self.job(contents.name)
        if not has_state:
            message = f"materialized view {contents.name} is still being filled for the first time"
            raise PenstockError("RUN-2920", message, hint="run the query again", sqlstate="55000")
        # its last state would be read as if it were the present one
        if job is not None and job.state in _NOT_UPDATED:
            message = (
                f"materialized view {contents.name} is no longer updated: its job is {job.state.lower()}"
            )
            raise PenstockError(
                "RUN-2920", message, hint="DROP MATERIALIZED VIEW and create it again", sqlstate="55000"
            )
