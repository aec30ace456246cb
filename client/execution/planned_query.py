"""The values between the stages of the query pipeline: options, optimized query, planned query, submitted
job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.settings import Settings
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.sink import HistoryOption
from penstock.planner.physical.operator_specs import JobGraph

if TYPE_CHECKING:
    from penstock.client.execution.history_planning import History


@dataclass(frozen=True)
class PlannerOptions:
    """The settings that the planner reads."""

    disabled_rules: tuple[str, ...]
    mode: str
    parallelism: int
    max_parallelism: int
    backend: str
    time_zone: str

    @classmethod
    def from_settings(
        cls, settings: Settings, mode: str | None = None, backend: str | None = None
    ) -> PlannerOptions:
        """Read them from a session's settings; ``mode`` and ``backend`` overrule those of that name."""
        names = str(settings.get("optimizer.disabled-rules")).split(",")
        disabled = [name.strip() for name in names if name.strip()]
        # the switch of a rule is the same as its name in the list
        if not settings.get("optimizer.split-aggregates"):
            disabled.append("split_aggregates")
        if not settings.get("optimizer.runtime-filters"):
            disabled.append("runtime_filters")
        return cls(
            tuple(disabled),
            mode or str(settings.get("execution.runtime-mode")),
            int(settings.get("parallelism.default")),
            int(settings.get("pipeline.max-parallelism")),
            backend or str(settings.get("bounded.backend")),
            str(settings.get("table.local-time-zone")),
        )


@dataclass(frozen=True)
class OptimizedQuery:
    """A query after the optimizer. ``runtime`` is ``batch``, where the bounded backend runs all of
    ``plan``, or ``streaming``, where a job of our own runtime does. ``history``: the WITH HISTORY option
    of its INSERT, if it has one.
    """

    bound: LogicalPlan
    plan: LogicalPlan
    runtime: str
    options: PlannerOptions
    history: HistoryOption | None = None


@dataclass(frozen=True)
class PlannedQuery:
    """A query that can be started. Without ``graph`` the bounded backend runs ``plan`` whole. Else
    ``with_exchanges`` is the plan with its exchanges and ``graph`` has its operator chains. ``history``:
    the state that is loaded before ``graph`` runs. ``former`` plans the query as versions did that wrote
    older checkpoints, newest first; None for such a plan. ``statement_ms``: the current time of all rows of a
    bounded statement that has been submitted, from 1970; None where the clock is read for each batch.
    """

    bound: LogicalPlan
    plan: LogicalPlan
    options: PlannerOptions
    facts: PlanFacts = field(default_factory=PlanFacts)
    with_exchanges: LogicalPlan | None = None
    graph: JobGraph | None = None
    history: History | None = None
    former: Callable[[], Iterator[PlannedQuery]] | None = field(default=None, compare=False)
    statement_ms: int | None = None


@dataclass(frozen=True)
class SubmittedJob:
    """The planned query behind a job. ``sink_number``: the number of a query's collect sink. ``durable``:
    the job's state outlives this process. ``statement`` and ``settings``: its text and what was set when it
    was submitted, both without secrets. ``session``: the number of the session that submitted it.
    """

    query: PlannedQuery
    sink_number: int | None = None
    durable: bool = False
    statement: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    session: int = 0

    @property
    def is_finite(self) -> bool:
        """Whether all its sources end by themselves."""
        return self.query.facts.finite(self.query.plan)
