"""The registry of bounded backends. The first plan that needs a backend imports and starts it: none of them
starts with the program.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.settings import Settings
from penstock.engine.api.operator import Services
from penstock.engine.bounded.backend import BoundedBackend, BoundedResult
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import up_to
from penstock.planner.physical.operator_specs import HistorySource, OperatorSpec
from penstock.planner.sql_generator.support import backend_for


class BoundedBackends:
    """The service that returns backends by name; a backend is imported and started on first use."""

    def __init__(self, services: Services, default: str = "spark", settings: Settings | None = None) -> None:
        """``services`` has the registered tables. ``default`` is the backend of ``backend(None)``, from
        ``bounded.backend``.

        ``settings`` of the session are read when a query runs.
        """
        self.default = default
        self._services = services
        self._settings = settings or Settings()
        self._made: dict[str, BoundedBackend] = {}
        self._scratch: Path | None = None
        self._lock = threading.Lock()

    def backend(self, name: str | None = None) -> BoundedBackend:
        """Return a backend, made on first use. BND-5000 for an unknown name."""
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
        from penstock.engine.bounded.passthrough import CopyingBackend, copies

        # imported here because the module imports compiled expressions, which a plain start does not need
        return CopyingBackend() if copies(plan) else self.backend(backend_for(plan, name or self.default))

    def run_history(
        self, spec: OperatorSpec[HistorySource, OperatorFacts], splits: tuple[str, ...], *, time_zone: str
    ) -> BoundedResult:
        """Start the query that computes a history over some of its splits."""
        # the plan over exactly these splits; the streaming part reads the rest
        plan = up_to(spec.node.plan, splits)
        return self.for_plan(plan, spec.node.backend).run(plan, time_zone=time_zone)

    def _make(self, name: str) -> BoundedBackend:
        # imports are local: DuckDB users need no pyspark, and Spark users no duckdb
        if name == "spark":
            from penstock.engine.bounded.spark.backend import SparkBackend

            return SparkBackend(self._services, self._settings)
        if name == "duckdb":
            from penstock.engine.bounded.duckdb import DuckDbBackend

            return DuckDbBackend(self._services)
        raise PenstockError(
            "BND-5000",
            f"there is no bounded backend '{name}'",
            hint=did_you_mean(name, ("spark", "duckdb"), others=True),
        )

    def staging_root(self, state_dir: Path | None, job_id: str, operator_id: str) -> Path:
        """Return the directory of a source's staged rows: beside the job's checkpoints, or a temporary one
        when those are in memory.
        """
        with self._lock:
            # made once per session, removed by close()
            if state_dir is None and self._scratch is None:
                self._scratch = Path(tempfile.mkdtemp(prefix="penstock-staged-"))
            root = state_dir if state_dir is not None else self._scratch
        assert root is not None
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
