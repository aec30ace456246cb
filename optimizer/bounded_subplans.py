"""The frontier between what is bounded and what streams: who runs which part of a plan."""

from __future__ import annotations

from collections.abc import Callable, Collection

from penstock.catalog.connectors.registry import is_in_database
from penstock.catalog.connectors.spark import is_in_spark
from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BOOLEAN
from penstock.optimizer.clock_columns import stamp_clock
from penstock.optimizer.emit_strategy import settle_emission
from penstock.optimizer.optimizer import Observer, optimize
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.optimizer.result_order import with_order_columns
from penstock.optimizer.shared_subplans import RULE, SharedInputs, reads_a_table_twice
from penstock.optimizer.streaming_validation import check_streamable
from penstock.planner.binder.relations.join_conditions import join_time
from penstock.planner.expressions.nodes import Call, Column, Literal, conjuncts
from penstock.planner.logical.joins.interval_join import TIME_ROLES, as_interval_join
from penstock.planner.logical.joins.join import Join
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import BoundedInput, Scan
from penstock.planner.logical.sink import Sink, StatementSet
from penstock.planner.logical.time_attributes import CurrentWatermark, ProcessingTime, WatermarkAssign


def optimize_sharing(
    plan: LogicalPlan,
    mode: str,
    *,
    disabled: Collection[str] = frozenset(),
    observer: Observer | None = None,
    speaks: Callable[[LogicalPlan], bool] = lambda plan: True,
) -> LogicalPlan:
    """Optimize a bound plan by the rules for all runtimes, bounded parts that several of its parts read being
    BoundedInput nodes of several readers.

    What the backend computes whole is left to it. The rule ``share_bounded``, when ``disabled``, shares
    nothing.
    """
    shared = SharedInputs(disabled)
    # A plan that reads each table once has nothing to share: the cheap test first.
    if RULE not in disabled and reads_a_table_twice(plan):
        plan = shared.marked(plan, _Frontier(PlanFacts(), mode, disabled, speaks).largest(plan))
    return shared.settled(optimize(plan, disabled=disabled, observer=observer))


def choose_runtime(
    plan: LogicalPlan,
    mode: str,
    facts: PlanFacts | None = None,
    *,
    disabled: Collection[str] = frozenset(),
    speaks: Callable[[LogicalPlan], bool] = lambda plan: True,
) -> tuple[str, LogicalPlan]:
    """Decide who runs an optimized plan: ``("batch", plan)`` goes to the bounded backend whole,
    ``("streaming", plan)`` to our own runtime.

    ``automatic``: batch when every source is a bounded table, else streaming with the largest bounded
    subplans as BoundedInput nodes. ``streaming``: everything on our runtime. A database is still queried as a
    BoundedInput, in every mode, because its rows have no order. ``batch``: the same with recordings as
    bounded tables; SQL-1311 for a source that never ends. Our runtime always writes the rows of a table. An
    INSERT that the backend can compute whole is a streaming plan of BoundedInput under Sink. Plans of literal
    rows only need no backend. A node that no backend can express (``LogicalPlan.only_ours``) runs on our
    runtime in every mode, over the largest subplans below it without such nodes. So does a node with
    expressions that the backend cannot express: ``speaks`` answers for a subplan. Rows for a table of Spark
    are written by Spark: such an INSERT is a batch plan under its Sink, or SQL-1313. What our runtime cannot
    run is refused (``streamable.check_streamable``). Bounded subplans are optimized for the backend without
    the ``disabled`` rules; the plan returned is to be optimized for its runtime by the caller.
    """
    known = facts or PlanFacts()
    # Bounded tables are streams in this mode, so their joins may free rows by time.
    if mode == "streaming":
        plan = _joined_by_time(plan, known)
    if mode == "batch":
        _refuse_endless(plan, known)
    frontier = _Frontier(known, mode, disabled, speaks)
    written = [
        node
        for node in plan.walk()
        if isinstance(node, Sink) and node.table is not None and is_in_spark(node.table)
    ]
    # Spark writes its own tables, so it must compute the whole statement.
    if written:
        return "batch", settle_emission(_for_spark(plan, written[0], known, speaks), False, known)
    # A SELECT over bounded tables: the client reads the backend's rows.
    if frontier.runs_whole(plan):
        return "batch", settle_emission(plan, False, known)
    plan = settle_emission(plan, True, known)
    # The clock is stamped in what our runtime runs only: a backend reads it once for the whole query.
    ours = with_order_columns(stamp_clock(frontier.cut(plan)))
    check_streamable(ours, known)
    return "streaming", ours


def _joined_by_time(plan: LogicalPlan, facts: PlanFacts, timed: bool = False) -> LogicalPlan:
    """Return the plan with joins of bounded tables, which are read as streams here, settled by time where
    their conditions bound it.

    ``timed``: some node above goes by event time; then a join that would end a time attribute stays as it is.
    """
    inputs = tuple(_joined_by_time(child, facts, timed or plan.goes_by_time) for child in plan.inputs)
    node = (
        plan
        if all(new is old for new, old in zip(inputs, plan.inputs, strict=True))
        else plan.with_inputs(inputs)
    )
    # Plain joins of a bounded side, with a watermark on both sides.
    if (
        type(node) is not Join
        or not any(map(facts.bounded, node.inputs))
        or not all(map(facts.tells_time, node.inputs))
    ):
        return node
    # The keys are equalities of time columns, too, so they are tested for bounds as the residual is.
    width = len(node.left.schema)
    equal = [
        Call(
            BOOLEAN,
            True,
            function="equal",
            args=(_column(node.left, left, 0), _column(node.right, right, width)),
        )
        for left, right in zip(node.left_keys, node.right_keys, strict=True)
    ]
    parts = [*equal, *(() if node.residual is None else conjuncts(node.residual))]
    roles = [
        {i: field.role for i, field in enumerate(side.schema) if field.role in TIME_ROLES}
        for side in node.inputs
    ]
    time = join_time(parts, width, roles[0], roles[1], node.kind)
    if time is None:
        return node
    settled = as_interval_join(node, time)
    return node if timed and facts.time_attributes(settled) != facts.time_attributes(node) else settled


def _column(side: LogicalPlan, index: int, offset: int) -> Column:
    field = side.schema[index]
    return Column(field.type, field.nullable, index=index + offset, name=field.name)


def _refuse_endless(plan: LogicalPlan, facts: PlanFacts) -> None:
    for node in plan.walk():
        if isinstance(node, Scan) and not facts.finite(node):
            raise PenstockError(
                "SQL-1311",
                f"table {node.table.name} never ends, and execution.runtime-mode is batch",
                hint="SET 'execution.runtime-mode' = 'automatic', or give the table an end",
            )


def _for_spark(
    plan: LogicalPlan, sink: Sink, facts: PlanFacts, speaks: Callable[[LogicalPlan], bool]
) -> LogicalPlan:
    """Return a plan that Spark runs whole, its table's rows included. SQL-1313 for any other that writes
    to a table of Spark.
    """
    assert sink.table is not None
    # One INSERT and no statement set, over nodes and expressions that Spark has.
    if plan is sink and facts.bounded(sink.input) and not _only_ours(sink.input) and speaks(sink):
        return plan
    raise PenstockError(
        "SQL-1313",
        f"rows get into {sink.table.name}, a table of Spark, only by one INSERT of a bounded query "
        "that Spark computes whole",
        hint="write the rows to files first ('connector' = 'filesystem', 'format' = 'parquet'), then "
        "INSERT the rows of the files",
        span=sink.span,
        sqlstate="0A000",
    )


def _only_ours(plan: LogicalPlan) -> bool:
    return any(node.only_ours for node in plan.walk())


def _in_database(plan: LogicalPlan) -> bool:
    """Whether a backend alone can read a table of a plan."""
    tables = [node.table for node in plan.walk() if isinstance(node, Scan)]
    return any(is_in_database(table) or is_in_spark(table) for table in tables)


def _reads_tables(plan: LogicalPlan) -> bool:
    return any(isinstance(node, Scan) for node in plan.walk())


def _copied(plan: LogicalPlan) -> bool:
    """Whether rows are those a database gave, with columns computed and rows left out."""
    while isinstance(plan, Project | Filter):
        plan = plan.input
    return isinstance(plan, BoundedInput)


class _Frontier:
    """Replaces the largest subplans the backend can compute. Literal rows alone are no reason to start it."""

    def __init__(
        self, facts: PlanFacts, mode: str, disabled: Collection[str], speaks: Callable[[LogicalPlan], bool]
    ) -> None:
        self.facts = facts
        self.mode = mode
        self.disabled = disabled
        self.speaks = speaks

    def cut(self, node: LogicalPlan, timed: bool = False) -> LogicalPlan:
        """Return the plan with BoundedInput nodes.

        ``timed``: some node above goes by event time. Then a subplan with event time is cut below its
        watermark, so that the watermark still reaches that node. It comes at the end of the rows only: a
        backend returns them in no order, and none of them is late. CURRENT_WATERMARK needs the order of the
        files, so our own sources read them.
        """
        if isinstance(node, CurrentWatermark) and not _in_database(node):
            return node
        # The largest such subplan: its inputs are not tried.
        if self._is_cut(node, timed):
            return BoundedInput(optimize(node, runtime="batch", disabled=self.disabled))
        cut = tuple(
            self.cut(child, (timed and not isinstance(node, ProcessingTime)) or node.goes_by_time)
            for child in node.inputs
        )
        # The rows of a backend are in no order: a watermark of NULL advances at their end only.
        if isinstance(node, WatermarkAssign) and (isinstance(cut[0], BoundedInput) or _copied(cut[0])):
            return WatermarkAssign(cut[0], node.time_column, Literal(node.watermark.type, True, value=None))
        return (
            node
            if all(new is old for new, old in zip(cut, node.inputs, strict=True))
            else node.with_inputs(cut)
        )

    def largest(self, node: LogicalPlan, timed: bool = False) -> list[LogicalPlan]:
        """Return the bounded subplans ``cut`` would replace: none of a plan the backend runs whole, none
        beneath a watermark with its own source.
        """
        if isinstance(node, Sink) and (
            self.runs_whole(node) or (node.table is not None and is_in_spark(node.table))
        ):
            return []
        if isinstance(node, CurrentWatermark) and not _in_database(node):
            return []
        if self._is_cut(node, timed):
            return [node]
        if isinstance(node, WatermarkAssign):
            return []
        above = timed and not isinstance(node, ProcessingTime)
        return [part for child in node.inputs for part in self.largest(child, above or node.goes_by_time)]

    def _is_cut(self, node: LogicalPlan, timed: bool) -> bool:
        return (
            not isinstance(node, Sink | StatementSet)
            and self.is_bounded(node)
            and not (timed and self.facts.time_attributes(node))
        )

    def runs_whole(self, plan: LogicalPlan) -> bool:
        """Return whether the backend gives the client its rows without us."""
        return (
            isinstance(plan, Sink)
            and plan.table is None
            and self.mode != "streaming"
            and self.is_bounded(plan)
        )

    def is_bounded(self, node: LogicalPlan) -> bool:
        """Return whether the backend can compute a node whole."""
        # Databases and Spark's tables have no other reader.
        if self.mode == "streaming":
            return isinstance(node, Scan) and (is_in_database(node.table) or is_in_spark(node.table))
        # Starting a backend for literal rows costs more than it computes.
        if not _reads_tables(node) or _only_ours(node):
            return False
        # Mode batch reads recordings as bounded tables; whether the backend has the words is asked last.
        return (self.mode == "batch" or self.facts.bounded(node)) and self.speaks(node)
