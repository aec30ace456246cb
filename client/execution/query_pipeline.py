"""The query pipeline: from a parsed query to its rows or its job. ``run`` names the stages in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from penstock.client.execution.access_control import check_plan as check_access
from penstock.client.execution.binder_notes import log_notes
from penstock.client.execution.job_submission import start_on_backend, submit_job
from penstock.client.execution.planned_query import OptimizedQuery, PlannedQuery, PlannerOptions
from penstock.client.execution.point_query import PointArguments, PointQuery, is_small, point_plan
from penstock.client.execution.session_state import SessionState
from penstock.client.results.result import Result
from penstock.engine.api.module_loading import collection_paused
from penstock.optimizer.bounded_subplans import choose_runtime, optimize_sharing
from penstock.optimizer.exchange_placement import lay_edges
from penstock.optimizer.history_subplans import history_option, no_stream
from penstock.optimizer.optimizer import NEWER_THAN_STATE, Observer, optimize
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.optimizer.rules.nearest_rows import nearest_rows, nearest_values
from penstock.optimizer.rules.prune_columns import drop_unread_watermarks
from penstock.optimizer.scan_validation import check_alignment
from penstock.optimizer.sink_validation import check_order, check_sinks
from penstock.optimizer.unheeded_hints import has_hints, unheeded_hints
from penstock.planner.binder.binder import Binder
from penstock.planner.binder.parameters import Parameters
from penstock.planner.binder.size_limits import check_plan
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.sink import Sink
from penstock.planner.physical.physical_planner import plan_job
from penstock.planner.sql_generator.support import AUTO, speaks
from penstock.planner.statements.nodes import ExecuteStatementSet, Insert, Query, Subscribe

ParsedQuery = Query | Subscribe | Insert | ExecuteStatementSet


class QueryPipeline:
    """Runs parsed queries of a session. Each stage can be called alone; only ``start`` starts something."""

    def __init__(self, state: SessionState) -> None:
        self._state = state

    def run(self, statement: ParsedQuery, params: Parameters = ()) -> Result:
        """Run a parsed query or INSERT (``Session.parse`` made it) through all stages."""
        if isinstance(statement, Query):
            # a materialized view WHERE key = value: from an index, without a backend
            resolved = self.resolve(statement, params)
            point = self.point_query(resolved)
            if point is not None:
                return self.run_point(point, point.arguments({}))
            return self.run_bound(resolved)
        bound = self.bind(statement, params)
        optimized = self.optimize(bound)
        planned = self.plan_physical(optimized)
        return self.start(planned)

    def bind(self, statement: ParsedQuery, params: Parameters = ()) -> LogicalPlan:
        """Resolve names and types. A query's plan ends in the client, an INSERT's in its table. The plan
        reads one state of each materialized view.
        """
        # once for the whole statement: a view that is named twice is read in one state
        return self._pinned(self.resolve(statement, params))

    def _pinned(self, bound: LogicalPlan) -> LogicalPlan:
        return self._state.views.pin(bound, self._state.is_abandoned)

    def resolve(self, statement: ParsedQuery, params: Parameters = ()) -> LogicalPlan:
        """Bind a statement without a state of the materialized views it reads."""
        binder = Binder(self._state.catalog, self._state.settings)
        bound = self._resolved(binder, statement, params)
        log_notes(binder.notes)
        return bound

    @staticmethod
    def _resolved(binder: Binder, statement: ParsedQuery, params: Parameters) -> LogicalPlan:
        match statement:
            # SELECT: the sink without a table is the client
            case Query():
                plan: LogicalPlan = Sink(binder.bind_query(statement, params), None)
            case Subscribe(query=query):
                # follows: a materialized view is read as its changes, not as one state
                plan = Sink(binder.bind_query(query, params, follows=True), None)
            case Insert():
                plan = binder.bind_insert(statement, params)
            case ExecuteStatementSet():
                plan = binder.bind_statement_set(statement, params)
        return plan

    def plan(
        self,
        bound: LogicalPlan,
        observer: Observer | None = None,
        *,
        mode: str | None = None,
        backend: str | None = None,
    ) -> PlannedQuery:
        """Optimize a bound plan and make it physical. ``mode`` and ``backend`` overrule the settings."""
        return self.plan_physical(self.optimize(bound, observer, mode=mode, backend=backend))

    def optimize(
        self,
        bound: LogicalPlan,
        observer: Observer | None = None,
        *,
        mode: str | None = None,
        backend: str | None = None,
        without: tuple[str, ...] = (),
    ) -> OptimizedQuery:
        """Apply the rules for all runtimes, choose the runtime, and apply the rules for that one, but none of
        ``without``. SQL-1715 for WITH HISTORY in a query that reads no stream.
        """
        check_access(self._state.access, self._state.catalog, bound)
        # before the rules: views expand, so a short text can make a plan too large for them
        check_plan(bound, self._state.settings)
        # UPDATE, DELETE and MERGE read tables that end, in every mode
        if isinstance(bound, Sink) and bound.changes is not None:
            if bound.changes.in_database:
                return self._in_database(bound, backend)
            mode = "batch"
        options = PlannerOptions.from_settings(self._state.settings, mode, backend)
        is_supported = partial(_is_supported, backends=_candidates(options.backend))
        history, disabled = history_option(bound), (*options.disabled_rules, *without)
        # before a runtime is chosen: a bounded subplan that several readers share is one BoundedInput
        shared = optimize_sharing(
            bound, options.mode, disabled=disabled, observer=observer, speaks=is_supported
        )
        # batch: the backend runs the whole plan; streaming: its largest bounded subplans become sources
        runtime, chosen = choose_runtime(shared, options.mode, speaks=is_supported)
        parallelism = options.parallelism
        if self._state.has_durable_jobs or history is not None or has_hints(bound):
            # the plan has one shape at every parallelism, so that its state can be restored at another
            parallelism = max(2, parallelism)
        if history is not None:
            # a loaded history has no scans to prune, and is cut off by event time; a backend has its joins
            without_history = (nearest_rows, nearest_values, drop_unread_watermarks)
            disabled = (*disabled, "runtime_filters", *(rule.__name__ for rule in without_history))
        plan = optimize(
            chosen, disabled=disabled, runtime=runtime, parallelism=parallelism, observer=observer
        )
        # WITH HISTORY loads the past of a stream; a batch query reads all rows anyway
        if runtime == "batch" and history is not None:
            raise no_stream(history)
        return OptimizedQuery(bound, plan, runtime, options, history)

    def _in_database(self, bound: Sink, backend: str | None) -> OptimizedQuery:
        """Return a change that a database carries out: no rule sees it. SQL-1601 for what it cannot say."""
        from penstock.engine.connectors.database.row_changes import check_change

        check_change(bound)
        options = PlannerOptions.from_settings(self._state.settings, "batch", backend)
        return OptimizedQuery(bound, bound, "batch", options, None)

    def plan_physical(self, query: OptimizedQuery) -> PlannedQuery:
        """Place exchanges, chain operators and make the job graph; a batch query is left as it is.
        SQL-1715 where a history could differ from a replay.
        """
        plan, options, settings = query.plan, query.options, self._state.settings
        # the backend has its own physical plan
        if query.runtime == "batch":
            log_notes(unheeded_hints(query.bound, plan))
            return PlannedQuery(query.bound, plan, options)
        facts = PlanFacts(state_ttl_ms=int(settings.get("table.exec.state.ttl")))
        # INSERT INTO: does the table take the changes of this query?
        check_sinks(plan, facts)
        with_exchanges = lay_edges(plan, options.parallelism, facts=facts)
        # an upsert table at parallelism > 1: do the changes of a key stay in order?
        check_order(with_exchanges, facts, options.parallelism)
        check_alignment(with_exchanges, options.parallelism, str(settings.get("deployment")))
        log_notes(unheeded_hints(query.bound, plan, with_exchanges))
        graph = plan_job(
            with_exchanges,
            facts,
            parallelism=options.parallelism,
            max_parallelism=options.max_parallelism,
            settings=settings,
        )
        history = None
        if query.history is not None:
            # imports the connectors, which list files: only for WITH HISTORY
            from penstock.client.execution.history_planning import plan_history

            history = plan_history(
                query.history, with_exchanges, graph, facts, settings, self._state.backends.choose_for
            )
        former = partial(self._plan_as_before, query)
        return PlannedQuery(query.bound, plan, options, facts, with_exchanges, graph, history, former)

    def _plan_as_before(self, query: OptimizedQuery) -> Iterator[PlannedQuery]:
        """Plan a query without the rules that older checkpoints do not know: their state is another one."""
        mode, backend = query.options.mode, query.options.backend
        for rules in NEWER_THAN_STATE:
            optimized = self.optimize(query.bound, mode=mode, backend=backend, without=rules)
            yield self.plan_physical(optimized)

    def run_bound(self, bound: LogicalPlan) -> Result:
        """Run a plan of ``resolve`` through the stages after it."""
        return self.start(self.plan(self._pinned(bound)))

    def point_query(self, bound: LogicalPlan) -> PointQuery | None:
        """Return the point query of a plan of ``resolve``; None for other plans, and in streaming mode."""
        found = point_plan(bound)
        settings = self._state.settings
        if found is None or settings.get("execution.runtime-mode") == "streaming":
            return None
        check_access(self._state.access, self._state.catalog, bound)
        check_plan(bound, settings)
        return PointQuery(found, settings.text("table.local-time-zone"))

    def run_point(self, point: PointQuery, arguments: PointArguments) -> Result:
        """Run a point query with the values of its parameters."""
        views = self._state.views
        found = views.lookup(point.plan.view, self._state.is_abandoned, point.key_columns, arguments.key)
        return point.result(found, arguments)

    def point_now(self, point: PointQuery, arguments: PointArguments) -> Callable[[], Result] | None:
        """Return what makes the result of a point query whose rows were found without waiting. None where
        ``run_point`` has to wait for them, or they are too many to be handled in between.
        """
        found = self._state.views.lookup_now(point.plan.view, point.key_columns, arguments.key)
        return partial(point.result, found, arguments) if found is not None and is_small(found) else None

    def backend_name(self, query: PlannedQuery) -> str:
        """Return the backend that would run a query without a job."""
        return self._state.backends.choose(query.plan.inputs[0], query.options.backend).name

    def start(self, query: PlannedQuery) -> Result:
        """Start a planned query: on the bounded backend, or as a job of our own runtime."""
        # no graph: the backend runs the whole plan
        if query.graph is None:
            return start_on_backend(query, self._state)
        # the first job of a process imports the engine
        with collection_paused():
            return submit_job(query, self._state)


def _candidates(backend: str) -> tuple[str, ...]:
    """Return the backends that may compute bounded parts of a plan: several where the setting is ``auto``."""
    if backend != AUTO:
        return (backend,)
    # the engine: only where there is a choice
    from penstock.engine.bounded.backend_choice import candidates

    return candidates(backend)


def _is_supported(plan: LogicalPlan, backends: tuple[str, ...]) -> bool:
    return any(speaks(plan, backend) for backend in backends)
