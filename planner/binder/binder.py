"""The binder's entry point: binds statements to typed plans and catalog objects. Every error
carries a span.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.catalog import Catalog
from penstock.catalog.connectors.database import DATABASES
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.schema import Schema
from penstock.catalog.settings import Settings
from penstock.catalog.state_reference import STATE
from penstock.catalog.system_tables import SYSTEM
from penstock.catalog.tables import CatalogTable, MaterializedView, ObjectPath, View
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.ddl.alter_table import altered_declaration
from penstock.planner.binder.ddl.changeable_tables import check_changeable
from penstock.planner.binder.ddl.create_table import bind_table, copied_table, table_of_query
from penstock.planner.binder.ddl.database_changes import database_sink
from penstock.planner.binder.ddl.inferred_columns import CompletedTable, with_inferred_columns
from penstock.planner.binder.ddl.insert import sink_for
from penstock.planner.binder.ddl.merge_into import merging_sink
from penstock.planner.binder.ddl.row_changes import changing_sink
from penstock.planner.binder.expressions.current_watermark import resolve_current_watermarks
from penstock.planner.binder.history_clause import (
    refuse_history,
    reject_mixed_history,
    resolve_history_option,
)
from penstock.planner.binder.late_rows_clause import refuse_late_rows, with_late_rows
from penstock.planner.binder.parameters import (
    Parameters,
    check_parameters,
    positional_count,
    refuse_parameters,
    values_of,
)
from penstock.planner.binder.query import bind_query, refuse_endless_order
from penstock.planner.binder.relations.asof_join import bind_asof
from penstock.planner.binder.relations.files import FileSource, path_source
from penstock.planner.binder.relations.lateral import bind_lateral
from penstock.planner.binder.relations.tables import with_hinted_options
from penstock.planner.binder.scope import FromClause, JoinSides, Relation
from penstock.planner.binder.subqueries.on_clause import join_with_subqueries
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.scan import Scan, bounded
from penstock.planner.logical.sink import Sink, StatementSet
from penstock.planner.logical.sort import TemporalSort, is_time_order, last_sort
from penstock.planner.parser.scanner import allow_depth
from penstock.planner.parser.syntax_nodes import LateralQuery, span_of
from penstock.planner.statements.nodes import (
    AlterTable,
    ChangeRows,
    CreateMaterializedView,
    CreateTable,
    CreateTableAs,
    CreateTableLike,
    CreateView,
    ExecuteStatementSet,
    FilePath,
    Insert,
    Query,
    RenameTable,
)


class _NestedQueries:
    """Binds nested queries, lateral joins and joins on subqueries. Every bind context carries one."""

    def query(self, tree: exp.Expr, context: BindContext) -> Relation:
        return bind_query(tree, context)

    def lateral(
        self,
        left: FromClause,
        tree: LateralQuery,
        kind: JoinKind,
        context: BindContext,
        condition: Expression | None = None,
    ) -> FromClause:
        return bind_lateral(left, tree, kind, context, condition)

    def join_with_subqueries(
        self,
        left: FromClause,
        right: FromClause,
        kind: JoinKind,
        tree: exp.Expr,
        join: JoinSides,
        context: BindContext,
    ) -> FromClause:
        return join_with_subqueries(left, right, kind, tree, join, context)

    def asof(
        self,
        left: FromClause,
        right: FromClause,
        kind: JoinKind,
        join: exp.Expr,
        context: BindContext,
        parts: tuple[Expression, ...],
    ) -> FromClause:
        return bind_asof(left, right, kind, join, context, parts)


_NESTED = _NestedQueries()


class Binder:
    """Binds statements against a catalog and the session's settings. Spans in errors are relative to the
    statement's text.
    """

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self.catalog = catalog
        self.settings = settings
        # what is said of clauses without effect; the session passes it on
        self.notes: list[str] = []

    def context(self, parameters: Parameters = (), query: Query | None = None) -> BindContext:
        """Return the context a statement is bound in."""
        # the parser limits nesting; binding one level takes several Python frames
        allow_depth()
        context = BindContext(self.catalog, self.settings, _NESTED, parameters, notes=self.notes)
        return context if query is None else replace(context, text=query.text, text_start=query.span.start)

    def bind_query(self, query: Query, parameters: Parameters = (), *, follows: bool = False) -> LogicalPlan:
        """Return the plan of a query; its root is not a Sink yet. ``parameters`` are the values of its
        placeholders.

        ``follows``: materialized views are read as changelogs, with every later change.
        """
        refuse_late_rows(query.tree)
        refuse_history(query.tree)
        return self._top_level(query, parameters, follows).plan

    def bind_insert(self, statement: Insert, parameters: Parameters = ()) -> Sink | StatementSet:
        """Return the Sink of an INSERT, its input cast to the table's columns. With LATE ROWS INTO the plan
        is a StatementSet of two Sinks. Raises SQL-1703 for ORDER BY over an endless stream, unless by time.
        """
        table = self.catalog.table(statement.target.text, statement.target.span)
        if isinstance(statement, ChangeRows):
            return self._bind_row_changes(statement, table, parameters)
        if statement.options:
            table = with_hinted_options(table, statement.options)
        relation = self._top_level(statement.query, parameters)
        relation = Relation(self._written_order(relation, statement.query), relation.fields)
        sink = replace(
            sink_for(statement, table, relation), history=resolve_history_option(statement.query.tree)
        )
        # INSERT INTO t SELECT .. LATE ROWS INTO late: a second sink of the same job
        clause = statement.query.tree.args.get("late_rows")
        if clause is not None and statement.overwrite:
            raise _overwrite_alone("LATE ROWS INTO in an INSERT OVERWRITE", span_of(clause))
        return (
            sink
            if clause is None
            else with_late_rows(sink, self.catalog.table(clause.name, span_of(clause)), clause)
        )

    def _bind_row_changes(self, statement: ChangeRows, table: CatalogTable, parameters: Parameters) -> Sink:
        query = statement.query
        check_parameters([query.tree], parameters, query.span)
        context = self.context(parameters, query)
        if options := query.tree.this.meta.get("options"):
            table = with_hinted_options(table, options)
        kind = query.tree.args["kind"]
        check_changeable(table, statement.target.span, "MERGE INTO" if kind == "MERGE" else kind)
        if kind == "MERGE":
            return merging_sink(statement, table, context)
        bind = database_sink if table.connector in DATABASES else changing_sink
        return bind(statement, table, context)

    def _written_order(self, relation: Relation, query: Query) -> LogicalPlan:
        """Return the plan of rows that are written to a table. Over a stream that ends an order by time sorts
        them; any other order is dropped with a note, since rows are written as they come. That of an endless
        one is refused.
        """
        plan, sort = relation.plan, last_sort(relation.plan)
        if sort is None or bounded(sort):
            return plan
        refuse_endless_order(sort, query.tree)
        # the fields of a Project are fewer than those of its input, whose roles say what is time
        fields = sort.schema.fields if isinstance(plan, Project) else relation.fields
        if is_time_order(sort.keys, fields):
            below: LogicalPlan = TemporalSort(sort.input, sort.keys)
        else:
            self.notes.append("ORDER BY has no effect here: rows of a stream are written as they come")
            below = sort.input
        return replace(plan, input=below) if isinstance(plan, Project) else below

    def bind_statement_set(self, statement: ExecuteStatementSet, parameters: Parameters = ()) -> StatementSet:
        """Return the plan of several INSERTs that run as one job. Parameters are numbered through all of them
        in order.
        """
        queries = [insert.query for insert in statement.inserts]
        check_parameters([query.tree for query in queries], parameters, queries[-1].span)
        sinks: list[Sink] = []
        used = 0
        for insert in statement.inserts:
            if insert.overwrite:
                raise _overwrite_alone("INSERT OVERWRITE in a statement set", insert.target.span)
            # each INSERT takes the values of its own placeholders, ? in the order of the text
            count = positional_count(insert.query.tree)
            own: Parameters = (
                values_of(insert.query.tree, parameters)
                if isinstance(parameters, Mapping)
                else parameters[used : used + count]
            )
            bound = self.bind_insert(insert, own)
            # an INSERT with LATE ROWS INTO is a statement set itself: its two sinks become sinks of this one
            sinks += bound.sinks if isinstance(bound, StatementSet) else [bound]
            used += count
        # The sinks run as one job, which reads its sources from one point.
        reject_mixed_history([sink.history for sink in sinks])
        return StatementSet(tuple(sinks))

    def complete_create_table(self, statement: CreateTable) -> CompletedTable:
        """Return a CREATE TABLE with the columns of its files, if it is over files and declares none."""
        return with_inferred_columns(statement, self.context())

    def bind_create_table(self, statement: CreateTable) -> CatalogTable:
        """Return the table of CREATE TABLE; its connector checks the options."""
        return bind_table(self.complete_create_table(statement).statement, self.context())

    def describe_path(self, path: FilePath) -> FileSource:
        """Return the table of a path, and what its columns were inferred from."""
        return path_source(path.text, path.span, self.context())

    def bind_create_table_like(self, statement: CreateTableLike) -> CatalogTable:
        """Return the table of CREATE TABLE .. LIKE: a copy of another with more columns and other options."""
        source = self.catalog.table(statement.source.text, statement.source.span)
        return bind_table(copied_table(statement, source), self.context())

    def bind_create_table_as(self, statement: CreateTableAs, parameters: Parameters = ()) -> Sink:
        """Return the Sink of a CREATE TABLE .. AS. The query's columns declare its table, which is not in the
        catalog yet.
        """
        refuse_late_rows(statement.query.tree)
        refuse_history(statement.query.tree)
        relation = self._top_level(statement.query, parameters)
        relation = Relation(self._written_order(relation, statement.query), relation.fields)
        table = bind_table(table_of_query(statement, relation), self.context())
        # from here it is INSERT INTO the new table
        return sink_for(Insert(statement.table.name, statement.query), table, relation)

    def bind_create_view(self, statement: CreateView) -> View:
        """Return the view of CREATE VIEW. Its query is bound once to derive the columns."""
        query, name = statement.query, self.catalog.qualified(statement.name.text, statement.name.span)
        refuse_parameters(query.tree)
        context = self.context((), query)
        # CREATE OR REPLACE VIEW v AS SELECT .. FROM v would read itself: v counts as open already.
        relation = bind_query(
            query.tree, replace(context, views=(name.lower(),)) if statement.or_replace else context
        )
        names = _view_names(statement, relation)
        _refuse_repeated(names, statement)
        return View(
            name,
            query.text,
            Schema(relation.renamed(names).fields),
            statement.temporary,
            self.catalog.current,
        )

    def bind_create_materialized_view(self, statement: CreateMaterializedView) -> Sink:
        """Return the Sink of a materialized view: its query and the table that stores its rows. The query
        reads other materialized views as changelogs. Raises SQL-1703 for a query with ORDER BY and no LIMIT.
        """
        query, name = statement.query, self.catalog.qualified(statement.name.text, statement.name.span)
        refuse_late_rows(query.tree)
        refuse_history(query.tree)
        refuse_parameters(query.tree)
        relation = self._top_level(query, (), follows=True)
        _refuse_system_tables(relation.plan, span_of(query.tree))
        # A view is a set of rows: ORDER BY matters only with LIMIT, and then the root is a Top-N.
        if last_sort(relation.plan) is not None:
            hint = (
                "leave the order out and order what you select from the view, or add LIMIT n to keep "
                "the first n rows"
            )
            span = span_of(query.tree.args["order"])
            raise PenstockError(
                "SQL-1703", "a materialized view has no order", span=span, hint=hint, sqlstate="0A000"
            )
        names = _view_names(statement, relation)
        _refuse_repeated(names, statement)
        schema = Schema(relation.renamed(names).fields).without_roles()
        options = {"connector": "materialized", "name": name}
        return Sink(
            relation.plan,
            MaterializedView(
                name,
                schema,
                schema,
                options,
                comment=statement.comment,
                query=query.text,
                path=self.catalog.current,
            ),
        )

    def bind_alter_table(self, statement: AlterTable) -> CatalogTable:
        """Return the table that ALTER TABLE declares, checked as CREATE TABLE checks it. Errors carry the
        span of the table's name, because the rest of the declaration is not in the statement.
        """
        table = self.catalog.stored_table(statement.name.text, statement.name.span)
        if isinstance(change := statement.change, RenameTable):
            # RENAME TO without a namespace stays in the current one.
            full = self.catalog.qualified(change.new.text, change.new.span)
            statement = replace(statement, change=RenameTable(replace(change.new, text=full)))
        try:
            # the declaration has whole names, so they resolve from the root instead of the current namespace
            return bind_table(
                altered_declaration(statement, table),
                replace(self.context(), catalog=self.catalog.at(ObjectPath())),
            )
        except PenstockError as error:
            raise error.with_span(statement.name.span) from None

    def _top_level(self, query: Query, parameters: Parameters, follows: bool = False) -> Relation:
        check_parameters([query.tree], parameters, query.span)
        context = replace(self.context(parameters, query), follows=follows)
        relation = bind_query(query.tree, context, nested=False)
        if not context.watermark_calls:
            return relation
        return Relation(resolve_current_watermarks(relation.plan), relation.fields)


def _overwrite_alone(what: str, span: Span | None) -> PenstockError:
    return PenstockError(
        "SQL-1601",
        f"{what} is not supported",
        span=span,
        hint="write INSERT OVERWRITE as a statement of its own, with one query",
        sqlstate="0A000",
    )


def _view_names(statement: CreateView | CreateMaterializedView, relation: Relation) -> list[str]:
    if not statement.columns:
        return list(relation.names)
    if len(statement.columns) != len(relation.fields):
        message = (
            f'view "{statement.name.text}" names {len(statement.columns)} columns, its query returns '
            f"{len(relation.fields)}"
        )
        hint = f"the query returns {', '.join(relation.names)}"
        raise PenstockError("SQL-1046", message, span=statement.columns[0].span, hint=hint, sqlstate="42P10")
    return [name.text for name in statement.columns]


def _refuse_repeated(names: Sequence[str], statement: CreateView | CreateMaterializedView) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            span = statement.columns[0].span if statement.columns else statement.query.span
            raise PenstockError(
                "SQL-1301",
                f'view column "{name}" is given twice',
                span=span,
                hint="rename one with AS",
                sqlstate="42701",
            )
        seen.add(name.lower())


def _refuse_system_tables(plan: LogicalPlan, span: Span | None) -> None:
    """Refuse a materialized view of what runs in this process, or of states: another process could not
    continue it.
    """
    scans = (node.table for node in plan.walk() if isinstance(node, Scan))
    read = next((table for table in scans if table.connector in (SYSTEM, STATE)), None)
    if read is not None:
        raise PenstockError(
            "SQL-1360",
            f"a materialized view cannot read {read.name}",
            span=span,
            hint="write the SELECT where it is needed, or SUBSCRIBE to it",
            sqlstate="0A000",
        )
