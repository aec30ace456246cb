"""The registry of bounded backends. The first plan that needs a backend imports and starts it: none of them
starts with the program.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.catalog.connectors.spark import SPARK
from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.settings import Settings
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.locations import Location
from penstock.engine.api.operator import Services
from penstock.engine.bounded.backend import BoundedBackend, BoundedResult
from penstock.engine.bounded.backend_choice import BackendChoice, choose_backend, tables_of
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import up_to
from penstock.planner.physical.operator_specs import HistorySource, OperatorSpec
from penstock.planner.sql_generator.support import AUTO, DUCKDB, backend_for, speaks


class BoundedBackends:
    """The service that returns backends by name; a backend is imported and started on first use."""

    def __init__(
        self,
        services: Services,
        default: str = SPARK,
        settings: Settings | None = None,
        on_small: Callable[[], None] = lambda: None,
    ) -> None:
        """``services`` has the registered tables. ``default`` is the backend of plans without another, from
        ``bounded.backend``.

        ``settings`` of the session are read when a query runs. ``on_small`` is called before DuckDB runs a
        plan because its inputs are small.
        """
        self._on_small = on_small
        self.default = default
        self._services = services
        self._settings = settings or Settings()
        self._made: dict[str, BoundedBackend] = {}
        self._scratch: Path | None = None
        self._lock = threading.Lock()

    def backend(self, name: str | None = None) -> BoundedBackend:
        """Return a backend by its own name, made on first use. BND-5000 for an unknown one."""
        wanted = name or self.default
        # two queries of one program may be the first at the same time
        with self._lock:
            if wanted not in self._made:
                self._made[wanted] = self._make(wanted)
            return self._made[wanted]

    def for_plan(self, plan: LogicalPlan, name: str | None = None) -> BoundedBackend:
        """Return the backend that runs a plan. A plain read of a database table is copied, Spark runs plans
        over its own tables, and the named backend all others.
        """
        if (copying := self._copying(plan)) is not None:
            return copying
        choice = self.choose(plan, name)
        if choice.is_small:
            self._on_small()
        return self.backend(choice.name)

    def explain(self, plan: LogicalPlan, name: str | None = None) -> str:
        """Return who would run a plan, with the reason where its setting is ``auto``, and the query text."""
        choice = self.choose(plan, name)
        copying = self._copying(plan)
        backend = copying or self.backend(choice.name)
        # a copy of a database's rows is nobody's choice
        why = f" (auto: {choice.reason})" if choice.reason and copying is None else ""
        return f"{backend.name}{why}:\n{backend.explain(plan)}"

    def choose(self, plan: LogicalPlan, name: str | None = None) -> BackendChoice:
        """Return which backend would run a plan, and why where its setting is ``auto``."""
        wanted = name or self.default
        if wanted != AUTO:
            return BackendChoice(backend_for(plan, wanted))
        return self.choose_for(tables_of(plan), lambda backend: speaks(plan, backend))

    def choose_for(
        self, tables: Sequence[CatalogTable], supports: Callable[[str], bool] = lambda backend: True
    ) -> BackendChoice:
        """Return the backend that ``auto`` chooses for some tables."""
        return choose_backend(tables, self._settings, self._services, supports)

    def _copying(self, plan: LogicalPlan) -> BoundedBackend | None:
        # imported here because the module imports compiled expressions, which a plain start does not need
        from penstock.engine.bounded.passthrough import CopyingBackend, copies

        return CopyingBackend() if copies(plan) else None

    def run_history(
        self, spec: OperatorSpec[HistorySource, OperatorFacts], splits: tuple[str, ...], *, time_zone: str
    ) -> BoundedResult:
        """Start the query that computes a history over some of its splits."""
        # the plan over exactly these splits; the streaming part reads the rest
        plan = up_to(spec.node.plan, splits)
        return self.for_plan(plan, spec.node.backend).run(plan, time_zone=time_zone)

    def _make(self, name: str) -> BoundedBackend:
        # imports are local: DuckDB users need no pyspark, and Spark users no duckdb
        if name == SPARK:
            from penstock.engine.bounded.spark.backend import SparkBackend

            return SparkBackend(self._services, self._settings)
        if name == DUCKDB:
            from penstock.engine.bounded.duckdb import DuckDbBackend

            return DuckDbBackend(self._services)
        raise PenstockError(
            "BND-5000",
            f"there is no bounded backend '{name}'",
            hint=did_you_mean(name, (SPARK, DUCKDB), others=True),
        )

    def staging_root(self, state_dir: Location | None, job_id: str, operator_id: str) -> Path:
        """Return the directory of a source's staged rows: beside the job's checkpoints, or a temporary one
        when those are in memory.
        """
        with self._lock:
            # made once per session, removed by close()
            if state_dir is None and self._scratch is None:
                self._scratch = Path(tempfile.mkdtemp(prefix="penstock-staged-"))
            root = state_dir if state_dir is not None else self._scratch
        # a job with its state in an object store and such a source is refused (DAT-5513)
        assert isinstance(root, Path)
        return root / job_id / "staged" / operator_id

    def close(self) -> None:
        """Close every backend that was made."""
        with self._lock:
            # taken out under the lock and closed outside: a backend may take long to close
            made, self._made = list(self._made.values()), {}
            scratch, self._scratch = self._scratch, None
        for backend in made:
            backend.close()
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
