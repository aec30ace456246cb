"""FROM: tables, views, common table expressions, subqueries and VALUES as relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.coercion import common_type_of
from penstock.catalog.connectors.filesystem import pipe_fault, split_suffixes
from penstock.catalog.connectors.registry import (
    ERRORS_SUFFIX,
    check_options,
    connector_of,
    emits_upserts,
    errors_table,
    options_of,
    written_changes,
)
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field, Schema
from penstock.catalog.system_tables import SYSTEM
from penstock.catalog.tables import CatalogTable, MaterializedView, View
from penstock.catalog.types import INT
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.match_recognize import bind_matches
from penstock.planner.binder.relations.files import file_source
from penstock.planner.binder.relations.pivot import bind_pivot, bind_unpivot
from penstock.planner.binder.relations.process_tables import bind_process_table
from penstock.planner.binder.relations.sample import bind_sample
from penstock.planner.binder.relations.states import state_table
from penstock.planner.binder.relations.summary import bind_summary
from penstock.planner.binder.relations.upserted_table import marked, upserted
from penstock.planner.binder.relations.view_versions import version_difference, view_version
from penstock.planner.binder.scope import Relation, Scope
from penstock.planner.binder.windows.count_windows import count_window_query, is_count_window
from penstock.planner.binder.windows.window_functions import bind_window
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import Column, Expression, Literal, expression_of
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.parser.syntax_nodes import (
    AsOf,
    FileTable,
    OptionEntry,
    PivotedTable,
    ProcessTableCall,
    RowMatches,
    SampledTable,
    SnapshotTable,
    StateTable,
    SummarizedTable,
    UnpivotedTable,
    VersionDifference,
    ViewVersion,
    WindowTableFunction,
    consume,
    moved,
    span_of,
)
from penstock.planner.statements.script import parse_view_query

# views over views, each bound recursively
MAX_VIEW_DEPTH = 50


@dataclass(frozen=True)
class Source:
    """One table reference of FROM: its relation, its visible name, and the parts written before that name.
    ``joined`` is the scope of a join in parentheses.
    """

    relation: Relation
    name: str | None
    qualifier: tuple[str, ...] = ()
    joined: Scope | None = None

    @property
    def scope(self) -> Scope:
        """The columns it makes visible."""
        if self.joined is not None:
            return self.joined
        return Scope.of(self.relation, self.name, self.qualifier)


def bind_source(tree: exp.Expr, context: BindContext) -> Source:
    """Return the relation of a table reference, its columns renamed by its alias."""
    alias = tree.args.get("alias")
    name = (
        alias.this.name
        if alias is not None
        else tree.this.name.rpartition(".")[2]
        if isinstance(tree, exp.Table)
        else None
    )
    relation = _relation(tree, context)
    columns = alias.args.get("columns") if alias is not None else None
    # an alias hides the name of the table, and its database with it
    qualifier = tree.this.name.split(".")[:-1] if alias is None and isinstance(tree, exp.Table) else ()
    shown = renamed(relation, columns, span_of(alias)) if columns else relation
    return Source(shown, name, tuple(qualifier))


def renamed(relation: Relation, columns: Sequence[exp.Identifier], span: Span | None) -> Relation:
    """Return a relation under the column names of an alias or WITH. Raises SQL-1046 for a wrong number,
    SQL-1045 for repeated names.
    """
    # FROM t AS u (a, b) of a table of three columns
    if len(columns) != len(relation.fields):
        message = (
            f"{len(columns)} column name{'s are' if len(columns) != 1 else ' is'} given for "
            f"{len(relation.fields)} columns"
        )
        raise PenstockError(
            "SQL-1046",
            message,
            span=span,
            hint=f"the columns are {', '.join(relation.names)}",
            sqlstate="42P10",
        )
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            raise PenstockError(
                "SQL-1045",
                f'column name "{column.name}" is given twice',
                span=span_of(column),
                sqlstate="42701",
            )
        seen.add(column.name.lower())
    return relation.renamed([column.name for column in columns])


def _relation(tree: exp.Expr, context: BindContext) -> Relation:
    match tree:
        # TABLE(TUMBLE(TABLE t, ..)); over a number of rows it is short for a query
        case WindowTableFunction():
            consume(tree, "this", "expressions", "alias")
            if is_count_window(tree):
                return bind_source(count_window_query(tree), context).relation
            return bind_window(tree, context, bind_source)
        # f(input => TABLE t PARTITION BY k, ..)
        case ProcessTableCall():
            return bind_process_table(tree, context, bind_source)
        # FOR SYSTEM_TIME AS OF needs a left side; ``joins`` binds it there.
        case AsOf():
            hint = "write .. JOIN t FOR SYSTEM_TIME AS OF a time attribute of the table before JOIN"
            raise PenstockError(
                "SQL-1721",
                "FOR SYSTEM_TIME AS OF is allowed after JOIN only",
                span=span_of(tree),
                hint=hint,
                sqlstate="0A000",
            )
        case SnapshotTable():
            hint = "write FROM a JOIN LATERAL SNAPSHOT(input => TABLE t, ..) AS s ON a.k = s.k"
            raise PenstockError(
                "SQL-1729",
                "SNAPSHOT is allowed after JOIN LATERAL only",
                span=span_of(tree),
                hint=hint,
                sqlstate="0A000",
            )
        # t PIVOT (..), t UNPIVOT (..), SUMMARIZE t
        case PivotedTable() | UnpivotedTable() | SummarizedTable():
            return _bind_reshaped(tree, context)
        # t TABLESAMPLE (..)
        case SampledTable():
            return bind_sample(tree, bind_source(tree.this, context).relation, context)
        # t MATCH_RECOGNIZE (..)
        case RowMatches():
            return bind_matches(tree, context, bind_source)
        # (SELECT ..) AS s
        case exp.Subquery():
            consume(tree, "this", "alias")
            return context.query(tree.this)
        # (VALUES (..), (..)) AS v
        case exp.Values():
            consume(tree, "expressions", "alias")
            return bind_values(tree, context)
        # 'orders.csv', READ_CSV('orders.csv', ..)
        case FileTable():
            source = file_source(tree, context)
            return read_table(source.table, span_of(tree), context)
        # STATE OF JOB 'id' OPERATOR 'name'
        case StateTable():
            return read_table(state_table(tree, context), span_of(tree), context)
        # view AS OF CHECKPOINT n, DIFF(.., ..)
        case ViewVersion():
            return view_version(tree, context)
        case VersionDifference():
            return version_difference(tree, context)
    consume(tree, "this", "alias")
    # t /*+ OPTIONS('key' = 'value') */
    options = tree.meta.get("options", ())
    return (
        _with_options(tree, options, context)
        if options
        else named_relation(tree.this.name, span_of(tree), context)
    )


def _bind_reshaped(tree: PivotedTable | UnpivotedTable | SummarizedTable, context: BindContext) -> Relation:
    inner = bind_source(tree.this, context)
    match tree:
        case SummarizedTable():
            return bind_summary(tree, inner.relation, context)
        case UnpivotedTable():
            return bind_unpivot(tree, inner.relation, inner.name, context)
    return bind_pivot(tree, inner.relation, inner.name, context)


def _with_options(tree: exp.Expr, options: tuple[OptionEntry, ...], context: BindContext) -> Relation:
    """Return the rows of a table with the options of its hint. Raises SQL-1603 for a relation without
    options, SQL-15xx for options that its connector refuses.
    """
    name, span = tree.this.name, span_of(tree)
    relation = None if name.lower() in context.common_tables else context.catalog.resolve(name, span)
    return read_table(with_hinted_options(relation, options, name), span, context)


def with_hinted_options(
    relation: CatalogTable | View | None, options: tuple[OptionEntry, ...], name: str | None = None
) -> CatalogTable:
    """Return a table with the options of a hint, for one reference only. Raises SQL-1603 for a relation
    without options, SQL-15xx for options that its connector refuses.
    """
    fixed = next((option for option in options if option.key == "connector"), None)
    if (
        not isinstance(relation, CatalogTable)
        or isinstance(relation, MaterializedView)
        or connector_of(relation).internal
        or fixed is not None
    ):
        key_span = options[0].key_span if fixed is None else fixed.key_span
        message = (
            f'"{name or getattr(relation, "name", "")}" has no options'
            if fixed is None
            else "a hint does not change a table's connector"
        )
        hint = (
            "give the hint to the tables it reads"
            if fixed is None
            else "declare another table: CREATE TABLE .. LIKE .."
        )
        raise PenstockError("SQL-1603", message, span=key_span, hint=hint, sqlstate="42809")
    # for this reference only; the declared table stays as it is
    changed = {**relation.options, **{option.key: option.value for option in options}}
    check_options(changed, {o.key: o.key_span for o in options}, {o.key: o.value_span for o in options})
    return replace(relation, options=changed)


def named_relation(name: str, span: Span | None, context: BindContext) -> Relation:
    """Return the relation of a plain name in FROM: a common table expression, a view, or a table."""
    # WITH t AS (..): it hides a table of that name
    known = context.common_tables.get(name.lower())
    if known is not None:
        return known
    # The errors table of t has no entry in the catalog: it is derived from t.
    if name.lower().endswith(ERRORS_SUFFIX) and context.catalog.find(name) is None:
        try:
            return scanned(errors_table(context.catalog.table(name[: -len(ERRORS_SUFFIX)], span)))
        except PenstockError as error:
            raise error.with_span(span) from None
    # A table or view of the catalog; a view is expanded here.
    relation = _resolve(name, span, context)
    if isinstance(relation, View):
        return _opened(relation, span, context)
    return read_table(relation, span, context)


def read_table(relation: CatalogTable, span: Span | None, context: BindContext) -> Relation:
    """Return the relation of a catalog table. Raises SQL-1047 for a table that is only written."""
    if not connector_of(relation).source:
        message = f'table "{relation.name}" cannot be read: connector {relation.connector} is a sink only'
        raise PenstockError(
            "SQL-1047", message, span=span, hint="read the tables its rows come from", sqlstate="42809"
        )
    if relation.connector == "filesystem":
        fault = pipe_fault(options_of(relation), partitioned=bool(relation.partitioned_by), reads=True)
        if fault is not None:
            raise PenstockError("SQL-1047", fault[0], span=span, hint=fault[1], sqlstate="0A000")
    if relation.connector == "filesystem" and written_changes(relation) != "append":
        message = f'table "{relation.name}" cannot be read: its files hold changes, one with its op a line'
        hint = "write 'format' = 'debezium-json' to have changes that can be read again"
        raise PenstockError("SQL-1047", message, span=span, hint=hint, sqlstate="42809")
    # CREATE MATERIALIZED VIEW b AS .. FROM a reads a's changes; SELECT .. FROM a its rows as they are
    has_changes = isinstance(relation, MaterializedView) or relation.connector == SYSTEM
    follows = has_changes and context.follows
    return scanned(replace(relation, options={**relation.options, "follow": "true"}) if follows else relation)


def _resolve(name: str, span: Span | None, context: BindContext) -> CatalogTable | View:
    relation = context.catalog.find(name)
    if relation is not None:
        return relation
    try:
        return context.catalog.resolve(name, span)
    except PenstockError as error:
        # FROM orders.csv, FROM "data/orders.csv"
        if split_suffixes(name)[0] is not None:
            error.hint = f"a file is written in single quotes: FROM '{name}'"
        elif context.common_tables:
            error.hint = did_you_mean(name, [*context.common_tables, *context.catalog.names()], others=True)
        raise


def _opened(view: View, span: Span | None, context: BindContext) -> Relation:
    # A view that is open already reads itself; the depth limit stops long chains of views.
    if view.name.lower() in context.views:
        raise PenstockError("SQL-1048", f'view "{view.name}" reads itself', span=span, sqlstate="42P17")
    if len(context.views) >= MAX_VIEW_DEPTH:
        raise PenstockError(
            "SQL-1048", f"views are opened more than {MAX_VIEW_DEPTH} deep", span=span, sqlstate="54001"
        )
    try:
        # A view is expanded at each reference; every span in it becomes the reference's.
        relation = context.inside_view(view).query(moved(parse_view_query(view.query).tree, span))
    except PenstockError as error:
        # Spans inside a view are spans of its text: the error points to the reference and quotes the view.
        if error.code != "SQL-1048":
            error.detail = "\n".join(filter(None, [f'in view "{view.name}": {view.query}', error.detail]))
        error.span = span
        raise
    if len(relation.fields) != len(view.schema):
        hint = "create the view again with CREATE OR REPLACE VIEW"
        raise PenstockError(
            "SQL-1049",
            f'view "{view.name}" no longer has the columns it was created with',
            span=span,
            hint=hint,
        )
    return relation.renamed(view.schema.names)


def scanned(table: CatalogTable) -> Relation:
    """Return a table as queries read it: scan, computed columns in declared order, watermark."""
    read = marked(table)
    source = read.source_schema
    plan: LogicalPlan = Scan(read, tuple(range(len(source))))
    # marks of the connector that are no column of the table
    hidden = source.fields[len(table.source_schema) :]
    # computed columns, or another order than the connector's
    if table.schema.names != table.source_schema.names:
        computed = {column.name.lower(): expression_of(column.expression) for column in table.computed}
        expressions = []
        for field in (*table.schema, *hidden):
            index = source.index_of(field.name)
            expressions.append(
                computed[field.name.lower()] if index is None else _column(source.fields, index)
            )
        plan = Project(plan, tuple(expressions), (*table.schema.names, *(field.name for field in hidden)))
    if table.watermark is not None:
        index = table.schema.index_of(table.watermark.column)
        assert index is not None
        plan = WatermarkAssign(plan, index, expression_of(table.watermark.expression))
    # behind the watermark: it is made split by split, upserts are stored by key
    if emits_upserts(table):
        plan = upserted(plan, table)
    return Relation(plan, plan.schema.fields)


def _column(fields: Sequence[Field], index: int) -> Column:
    field = fields[index]
    return Column(field.type, field.nullable, index=index, name=field.name)


# VALUES


def one_row() -> LogicalPlan:
    """Return a single row with an unused column, the input of a SELECT without FROM."""
    return Values(((Literal(INT, False, value=0),),), Schema((Field("nothing", INT, False),)))


def bind_values(tree: exp.Expr, context: BindContext) -> Relation:
    """Return the rows of VALUES, columns named col1, col2, .. Raises SQL-1081 for rows of unequal width,
    SQL-1082 for columns without a common type.
    """
    binder = ExpressionBinder(Scope(), context, "VALUES")
    # cells may be expressions, but read no column
    rows = [[binder.bind(cell) for cell in row.expressions] for row in tree.expressions]
    width = len(rows[0])
    for row, node in zip(rows, tree.expressions, strict=True):
        if len(row) != width:
            message = f"the rows of VALUES differ in width: {width} and {len(row)}"
            raise PenstockError(
                "SQL-1081",
                message,
                span=span_of(node),
                hint="write NULL for a missing value",
                sqlstate="42601",
            )
    # VALUES (1), (2.5): each column has the common type of its cells.
    kinds = [common_type_of([row[i].type for row in rows]) for i in range(width)]
    for i, kind in enumerate(kinds):
        if kind is None:
            listed = ", ".join(dict.fromkeys(str(row[i].type) for row in rows))
            span = span_of(tree.expressions[0].expressions[i])
            raise PenstockError(
                "SQL-1082",
                f"column {i + 1} of VALUES has no common type: {listed}",
                span=span,
                hint="CAST the values to one type",
            )
    cells = [
        tuple(coerced(cell, kind) for cell, kind in zip(row, kinds, strict=True) if kind is not None)
        for row in rows
    ]
    names = tuple(f"col{i + 1}" for i in range(width))
    plan = literal_rows(cells, names)
    return Relation(plan, plan.schema.fields)


def literal_rows(cells: Sequence[tuple[Expression, ...]], names: tuple[str, ...]) -> LogicalPlan:
    """Return rows of constant expressions: VALUES where all are literals, else a union of one-row
    projections.
    """
    fields = tuple(
        Field(name, cell.type, any(row[i].nullable for row in cells))
        for i, (name, cell) in enumerate(zip(names, cells[0], strict=True))
    )
    if all(isinstance(cell, Literal) for row in cells for cell in row):
        rows = tuple(
            tuple(replace(cell, span=cell.span) for cell in row if isinstance(cell, Literal)) for row in cells
        )
        return Values(rows, Schema(fields))
    # VALUES (1 + 1), (2): expressions are computed when the query runs
    branches = tuple(Project(one_row(), row, names) for row in cells)
    return branches[0] if len(branches) == 1 else Union(branches)
