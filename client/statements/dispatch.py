"""Statements of a text: parsed with their positions, each executed by the function of its kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from penstock.catalog.errors import Kind, PenstockError, SourceText, Span, out_of_memory
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.persistence.show_create import quoted_name
from penstock.catalog.tables import DEFAULT_DATABASE, ObjectPath
from penstock.client.results.result import Result
from penstock.client.statements import (
    catalogs,
    explain,
    explain_job,
    explain_why_not,
    functions,
    jobs,
    materialized_views,
    settings,
    show,
    subscribe,
    tables,
    verify,
)
from penstock.client.statements.stored_statements import run_stored
from penstock.planner.binder.parameters import Parameters
from penstock.planner.statements import nodes
from penstock.planner.statements.nodes import AlterTable, Statement
from penstock.planner.statements.script import parse_script

if TYPE_CHECKING:
    from penstock.catalog.persistence.catalog_store import CatalogStore
    from penstock.client.execution.query_pipeline import QueryPipeline
    from penstock.client.execution.session_state import SessionState


def run_located(
    state: SessionState,
    pipeline: QueryPipeline,
    statement: LocatedStatement,
    params: Parameters = (),
    run: Callable[[], Result] | None = None,
) -> Result:
    """Run one statement of a text and log it; every error, also of its rows, has its position in the text.
    ``run`` runs it in place of ``run_statement``: a prepared statement has its plan.
    """
    try:
        with state.executing(statement.node):
            state.access.check_statement(statement.node, statement.text)
            # before the run: a job that the statement starts records this text, from which it can be resumed
            state.statement_log.begin(statement.text, params)
            result = run_statement(state, pipeline, statement.node, params) if run is None else run()
            # only after success: the statements of a record must run again without an error
            state.statement_log.complete(statement.node, statement.text)
    except PenstockError as error:
        raise statement.locate(error) from error
    except MemoryError as error:
        raise statement.locate(out_of_memory(error, "run this statement")) from error
    # rows are computed after this function returns: their errors are located when they are fetched
    result.locate = statement.locate
    return result


def load_catalog(state: SessionState, pipeline: QueryPipeline, store: CatalogStore) -> None:
    """Fill a catalog by the statements of its store. From now on its changes are saved there. A statement
    that can no longer be run is reported and stays stored: what it reads may be gone, and DROP cannot run in
    a catalog that is not open. Raises SQL-1320, and what a text raises that is no statement.
    """
    namespace, was_loading = state.catalog.current, state.loading
    # stored names are relative to their catalog; loading imports no Python module and saves nothing
    state.catalog.current, state.loading = ObjectPath(store.catalog), True
    try:
        texts = store.load()
        for text in texts:
            parse_statements(text)
        use = f"USE {quoted_name(store.catalog)}.{quoted_name(DEFAULT_DATABASE)}"
        for broken in run_stored(
            texts, use, parse_statements, lambda statement: _run_stored(state, pipeline, store, statement)
        ):
            begins = broken.text.partition("\n")[0].rstrip(" (")
            why = f"{broken.error.code}: {broken.error.message}"
            state.report(f"a statement of {store.path} is left out, and stays there: {begins}: {why}")
    finally:
        state.catalog.current, state.loading = namespace, was_loading
    # only after success: a file that cannot be read is not overwritten by the next save
    store.begin(state.catalog)
    state.engine.stores[store.catalog] = store


def _run_stored(
    state: SessionState, pipeline: QueryPipeline, store: CatalogStore, statement: LocatedStatement
) -> None:
    # a USE of one part is one of a database of this catalog, wherever the statement before it led
    if isinstance(statement.node, nodes.Use):
        state.catalog.current = ObjectPath(store.catalog)
    run_located(state, pipeline, statement)


def run_statement(
    state: SessionState, pipeline: QueryPipeline, node: nodes.Statement, params: Parameters = ()
) -> Result:
    """Run one statement; only queries and statements that write their rows take parameters."""
    if params and not isinstance(node, _TAKE_PARAMETERS):
        # a view is stored as text
        if isinstance(node, nodes.CreateView | nodes.CreateMaterializedView):
            hint = "write the value into the view, or give it to the SELECT that reads the view"
        else:
            hint = "write the value into the statement; SELECT, INSERT and CREATE TABLE .. AS take parameters"
        raise PenstockError("CLI-6006", "this statement takes no parameters", hint=hint)
    match node:
        # SELECT, INSERT INTO, EXECUTE STATEMENT SET: bind, optimize, plan, start
        case nodes.Query() | nodes.Insert() | nodes.ExecuteStatementSet():
            return pipeline.run(node, params)
        case nodes.Subscribe():
            return subscribe.subscribe(pipeline, node, params)
        case nodes.Verify():
            return verify.verify(pipeline, node)
        case nodes.ExplainWhy():
            return explain_why_not.explain_row(state, pipeline, node)
        case nodes.Explain():
            return explain.explain_statement(state, pipeline, node, params)
        # CREATE TABLE .. AS SELECT: a declaration and a job
        case nodes.CreateTableAs():
            return tables.create_table_as(state, pipeline, node, params)
        case (
            nodes.CreateTable()
            | nodes.CreateTableLike()
            | nodes.CreateView()
            | nodes.AlterView()
            | nodes.DropTable()
            | nodes.DropView()
            | AlterTable()
        ):
            return tables.change_catalog(state, node)
        case nodes.CreateMaterializedView():
            return materialized_views.create_view(state, pipeline, node)
        case nodes.DropMaterializedView():
            return materialized_views.drop_view(state, node)
        case (
            nodes.CreateCatalog()
            | nodes.DropCatalog()
            | nodes.CreateDatabase()
            | nodes.DropDatabase()
            | nodes.Use()
        ):
            # a parameter: CREATE CATALOG runs stored statements, but catalogs cannot import this module
            return catalogs.change_namespaces(state, node, partial(load_catalog, state, pipeline))
        case nodes.CreateFunction() | nodes.DropFunction():
            return functions.change_functions(state, node)
        case nodes.Set() | nodes.Reset():
            return settings.change_settings(state, node)
        case nodes.Show() | nodes.ShowCreate() | nodes.Describe() | nodes.Help():
            return show.show(state, node)
        case _ if isinstance(node, nodes.JobControl):
            return jobs.control_job(state, node)
        case nodes.ShowMetrics():
            return show.show_metrics(state, node)
        case nodes.ExplainJob():
            return explain_job.explain_job(state, node)
        # the shell handles QUIT itself
        case nodes.Quit():
            raise _no_shell()
    raise PenstockError(
        "INT-9040", f"no runner for statement {type(node).__name__}", kind=Kind.INTERNAL, sqlstate="XX000"
    )


def _no_shell() -> PenstockError:
    return PenstockError(
        "CLI-6007",
        "QUIT leaves the shell, and this is not the shell",
        hint="close the connection instead",
        sqlstate="0A000",
    )


_TAKE_PARAMETERS = (
    nodes.Query,
    nodes.Subscribe,
    nodes.Insert,
    nodes.ExecuteStatementSet,
    nodes.Explain,
    nodes.CreateTableAs,
)
_BACKEND_ERRORS = ("BND-5003", "BND-5012")
"""Codes of errors that a backend raises about a query in its own words, without a position."""


@dataclass(frozen=True)
class LocatedStatement:
    """One parsed statement of a text: ``offset`` is where it starts in ``source``."""

    node: Statement
    text: str
    source: SourceText
    offset: int

    def locate(self, error: PenstockError) -> PenstockError:
        """Return an error of this statement with its position in the submitted text: the whole statement
        when it is about no one part of it.
        """
        # an error of the statement without a position of its own: the caret marks the whole statement
        if error.source is None and (error.code.startswith("SQL-") or error.code in _BACKEND_ERRORS):
            error.with_span(Span(0, len(self.text)))
        return error.with_source(self.source, self.offset)

    @property
    def ordinal(self) -> int:
        """The statement's number in the text, from 1."""
        return self.source.statement or 1


def parse_statements(
    text: str, file: str | None = None, *, errors: list[PenstockError] | None = None
) -> list[LocatedStatement]:
    """Return the statements of a text; raise the first syntax error, or collect them in ``errors``."""
    parsed = parse_script(text, file, errors=errors)
    return [
        LocatedStatement(one.node, one.text, SourceText(text, file, one.ordinal), one.offset)
        for one in parsed
    ]
