"""Prepared statements: parameters and result columns before anything runs, and a plan that is bound once."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import STRING, DataType
from penstock.client.execution.pending_statement import HoldJob, hold_no_job
from penstock.client.execution.planned_query import PlannerOptions
from penstock.client.execution.point_query import PointArguments, PointQuery
from penstock.client.results.result import Result
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.binder.binder import Binder
from penstock.planner.binder.expressions.host_values import host_literal
from penstock.planner.binder.parameters import Parameters
from penstock.planner.binder.prepare import (
    infer_types,
    open_parameters,
    open_values,
    parameters_of,
    substitute,
    typed_values,
)
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import Expression, Literal
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.joins.join import Join
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Limit, Sort, last_sort
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.execution.query_pipeline import QueryPipeline
    from penstock.client.execution.session_state import SessionState

OP_FIELD = Field("op", STRING, False)
_SUBSTITUTED = (Sink, Project, Filter, Scan, Values, Aggregate, Join, Sort, Limit)
"""Nodes whose expressions ``map_expressions`` visits all, and whose other fields come from names alone."""
_READ_ONLY = (
    nodes.Show,
    nodes.ShowCreate,
    nodes.ShowMetrics,
    nodes.Describe,
    nodes.DescribeJob,
    nodes.ExplainJob,
    nodes.Help,
)
"""Statements that return rows about the session and change nothing: their columns are those of a run."""


class PreparedText(Protocol):
    """A parsed statement, which gives errors their position in its text."""

    @property
    def node(self) -> nodes.Statement: ...

    def locate(self, error: PenstockError) -> PenstockError:
        """Return an error of the statement with its position."""


class RunStatement(Protocol):
    """Runs the statement with values, as ``Session.run`` does; ``run`` starts its plan."""

    def __call__(
        self, params: Parameters = (), hold: HoldJob = hold_no_job, run: Callable[[], Result] | None = None
    ) -> Result: ...


_TEXTS_KEPT, _LONGEST_TEXT = 64, 10_000
"""Texts that a session remembers, and the length of the longest."""


@dataclass(frozen=True)
class BoundStatement:
    """A statement that was bound before its values: its plan, the version of names and settings it was bound
    by, and whether values may be put into the plan.
    """

    plan: LogicalPlan
    version: tuple[object, ...]
    reusable: bool
    point: PointQuery | None = None


class PreparedStatement:
    """One statement of a session, prepared. Nothing starts before ``execute``; it may be called repeatedly.

    ``parameters`` are the types of its values in order, STRING where nothing says more. ``schema`` has its
    result columns, None where it returns no rows. ``kind`` is the word of its command tag. A statement whose
    tables, functions and settings have not changed is not bound again.
    """

    def __init__(
        self,
        state: SessionState,
        pipeline: QueryPipeline,
        statement: PreparedText,
        run: RunStatement,
        types: Sequence[DataType | None] = (),
        otherwise: Sequence[DataType | None] = (),
    ) -> None:
        self._state = state
        self._pipeline = pipeline
        self._statement = statement
        self._run_statement = run
        self._names = parameters_of(statement.node)
        self._bound: BoundStatement | None = None
        self.kind = _kind(statement.node)
        try:
            with state.lock:
                bind = partial(self._resolve, statement.node)
                self.parameters = (
                    infer_types(self._names, bind, types, otherwise) if self._names.names else ()
                )
                self.schema = self._result_schema()
        except PenstockError as error:
            raise statement.locate(error) from error

    @property
    def change_mode(self) -> str:
        """``append``, ``upsert`` or ``retract``: whether rows of its result may be retracted."""
        query, facts = self._query_facts()
        # a bounded result is returned with its final rows, whatever computes it
        if query is None or facts.insert_only(query) or self._returns_final_rows(query, facts):
            return "append"
        return "retract" if facts.upsert_key(query) is None else "upsert"

    @property
    def emits_changes(self) -> bool:
        """Whether its result never ends and has rows that are updated, or get other places by an ORDER BY:
        only as changes do they mean something.
        """
        query, facts = self._query_facts()
        if query is None or facts.finite(query):
            return False
        return last_sort(query) is not None or not facts.insert_only(query)

    def execute(self, params: Parameters = (), hold: HoldJob = hold_no_job) -> Result:
        """Execute the statement with the values of its parameters; see ``Session.run``."""
        values = self._names.ordered(params)
        # a wrong number of values, or wrong names: the binder says what is wrong
        if values is None:
            return self._run_statement(params, hold)
        run = partial(self._run, values) if isinstance(self._statement.node, nodes.Query) else None
        # $1 and $2: their values may come in a sequence
        return self._run_statement(self._names.bound(values), hold, run)

    def execute_now(self, values: list[object]) -> Result | None:
        """Execute a point query whose index answers without waiting for anything. None where ``execute`` has
        to be called: nothing has happened then.
        """
        # not while another thread runs a statement of the session
        if len(values) != len(self._names.names) or not self._state.lock.acquire(blocking=False):
            return None
        try:
            run = self._lookup_now(values)
            return None if run is None else self._run_statement(self._names.bound(values), hold_no_job, run)
        finally:
            self._state.lock.release()

    @property
    def is_point_query(self) -> bool:
        """Whether it looks rows of a view up by its parameters, and uses them for nothing else."""
        return self._bound is not None and self._bound.point is not None and self._bound.point.only_compares

    @property
    def is_current(self) -> bool:
        """Whether nothing that its columns and parameters depend on has changed since it was bound."""
        return self._bound is not None and self._bound.version == self._version

    # -- inside

    @property
    def _version(self) -> tuple[object, ...]:
        return self._state.catalog.version, self._state.settings.version

    def _query_facts(self) -> tuple[LogicalPlan | None, PlanFacts]:
        """Return the plan of a query's rows, None for other statements, and what is known of it."""
        facts = PlanFacts(state_ttl_ms=int(self._state.settings.get("table.exec.state.ttl")))
        if not isinstance(self._statement.node, nodes.Query):
            return None, facts
        with self._state.lock:
            return self._current().plan.inputs[0], facts

    def _returns_final_rows(self, query: LogicalPlan, facts: PlanFacts) -> bool:
        mode = PlannerOptions.from_settings(self._state.settings).mode
        return mode != "streaming" and facts.bounded(query)

    def _run(self, values: list[object]) -> Result:
        pipeline, bound = self._pipeline, self._current()
        if bound.point is not None and (arguments := self._arguments(bound.point, values)) is not None:
            return pipeline.run_point(bound.point, arguments)
        constants = self._constants(values)
        if bound.reusable and constants is not None:
            plan = substitute(bound.plan, constants) if constants else bound.plan
        else:
            plan = self._bound_with(values, exact=constants is not None)
        return pipeline.run_bound(plan)

    def _lookup_now(self, values: list[object]) -> Callable[[], Result] | None:
        bound = self._bound
        if bound is None or bound.point is None or bound.version != self._version:
            return None
        try:
            arguments = self._arguments(bound.point, values)
        # a value without an SQL type: execute reports it with its position
        except PenstockError:
            return None
        return None if arguments is None else self._pipeline.point_now(bound.point, arguments)

    def _arguments(self, point: PointQuery, values: list[object]) -> PointArguments | None:
        """Return the values of a point query; None where one does not fit its type exactly."""
        plain = point.plain_arguments(dict(zip(self._names.names, values, strict=True)))
        if plain is not None:
            return plain
        constants = self._constants(values)
        return None if constants is None else point.arguments(constants)

    def _constants(self, values: list[object]) -> dict[str, Expression] | None:
        """Return the values as literals of their parameters' types; None where one does not fit exactly."""
        constants: dict[str, Expression] = {}
        for name, kind, value in zip(self._names.names, self.parameters, values, strict=True):
            literal = host_literal(value)
            constant = None if literal is None else coerced(literal, kind)
            if not isinstance(constant, Literal):
                return None
            constants[name] = constant
        return constants

    def _bound_with(self, values: list[object], exact: bool) -> LogicalPlan:
        """Bind with values. One that its parameter's type does not hold exactly, such as 1.5 of a BIGINT, is
        compared as it is, like a value that is written into the statement.
        """
        node = self._statement.node
        typed = typed_values(self._names, self.parameters, values)
        if not exact:
            plan = self._resolve(node, self._names.bound(values))
            # the announced columns stay what they are
            if self.schema is not None and _types(plan.inputs[0].schema) == _types(self.schema):
                return plan
        return self._resolve(node, typed)

    def _current(self) -> BoundStatement:
        """Return the bound statement, bound again if what it depends on has changed."""
        version = self._version
        if self._bound is None or self._bound.version != version:
            names = open_values(self._names, self.parameters)
            plan = self._resolve(self._statement.node, names)
            reusable = self._is_reusable(plan)
            point = self._pipeline.point_query(plan) if reusable else None
            self._bound = BoundStatement(plan, version, reusable, point)
        return self._bound if self._bound.reusable else self._rebound(version)

    def _rebound(self, version: tuple[object, ...]) -> BoundStatement:
        """Bind a statement whose plan depends on more than names, such as on files that are there now."""
        plan = self._resolve(self._statement.node, open_values(self._names, self.parameters))
        return BoundStatement(plan, version, False)

    def _is_reusable(self, plan: LogicalPlan) -> bool:
        catalog = self._state.catalog
        return open_parameters(plan) == frozenset(self._names.names) and all(
            isinstance(node, _SUBSTITUTED)
            # files named by a path, and tables of other systems, may have other columns tomorrow
            and (not isinstance(node, Scan) or catalog.owns(node.table))
            for node in plan.walk()
        )

    def _resolve(self, node: nodes.Statement, values: Parameters) -> LogicalPlan:
        match node:
            case nodes.Query() | nodes.Subscribe() | nodes.Insert() | nodes.ExecuteStatementSet():
                return self._pipeline.resolve(node, values)
            case nodes.Explain(statement=inner):
                return self._resolve(inner, values)
            case nodes.CreateTableAs():
                return Binder(self._state.catalog, self._state.settings).bind_create_table_as(node, values)
        raise AssertionError(node)

    def _result_schema(self) -> Schema | None:
        node = self._statement.node
        match node:
            case nodes.Query():
                return self._current().plan.inputs[0].schema
            case nodes.Subscribe():
                rows = self._current().plan.inputs[0].schema
                return Schema((OP_FIELD, *rows.without_roles()))
            case nodes.Explain():
                # bound, so that a wrong statement is refused now
                self._current()
                return Schema((Field("plan", STRING, False),))
            # a wrong INSERT is refused when it is prepared, as a wrong SELECT is
            case nodes.Insert() | nodes.ExecuteStatementSet() | nodes.CreateTableAs():
                self._current()
                return None
            case nodes.StopJob(savepoint=nodes.Savepoint()) | nodes.CreateSavepoint():
                return Schema((Field("savepoint", STRING, False),))
        if isinstance(node, _READ_ONLY) or (isinstance(node, nodes.Set) and node.value is None):
            return self._run_statement().schema
        return None


class RepeatedQueries:
    """Point queries by their texts, which are executed with other values each time: from the second execution
    on, such a text is neither parsed nor bound. Other texts are only remembered as none.
    """

    def __init__(self, prepare: Callable[[str], PreparedStatement], state: SessionState) -> None:
        self._prepare = prepare
        self._state = state
        # by text: the version it was looked at, and what it is; None where it was executed once
        self._texts: OrderedDict[str, tuple[object, PreparedStatement | None]] = OrderedDict()

    def find(self, sql: str) -> PreparedStatement | None:
        """Return the prepared statement of a text that is a point query and was executed before."""
        if len(sql) > _LONGEST_TEXT:
            return None
        with self._state.lock:
            version = self._state.catalog.version, self._state.settings.version
            known = self._texts.get(sql)
            if known is not None and known[0] == version:
                self._texts.move_to_end(sql)
                return known[1]
            # the first execution of most texts is their last one
            found = None if known is None else (version, self._point_query(sql))
            self._texts[sql] = (None, None) if found is None else found
            while len(self._texts) > _TEXTS_KEPT:
                self._texts.popitem(last=False)
            return None if found is None else found[1]

    def _point_query(self, sql: str) -> PreparedStatement | None:
        try:
            prepared = self._prepare(sql)
        except PenstockError:
            # its execution reports the error, with the values
            return None
        return prepared if prepared.is_point_query else None


def _types(schema: Schema) -> list[DataType]:
    return [field.type for field in schema]


def _kind(node: nodes.Statement) -> str:
    """Return the words of a statement's command tag: SELECT, CREATE MATERIALIZED VIEW."""
    if isinstance(node, nodes.Query):
        return "SELECT"
    # UPDATE, DELETE or MERGE
    if isinstance(node, nodes.ChangeRows):
        return str(node.query.tree.args["kind"])
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
