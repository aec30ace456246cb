"""Every kind of statement and its executor: one match, a line each. Executors take the session's state and
the query pipeline, as far as they need them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.object_path import ObjectPath
from penstock.client.results.result import Result
from penstock.client.statements import (
    catalogs,
    explain,
    explain_job,
    functions,
    jobs,
    materialized_views,
    metrics,
    settings,
    show,
    subscribe,
    tables,
    verify,
)
from penstock.client.statements.located_statements import LocatedStatement, parse_statements
from penstock.planner.statements import catalog_nodes, nodes
from penstock.planner.statements.alter_table_nodes import AlterTable

if TYPE_CHECKING:
    from penstock.catalog.persistence.catalog_store import CatalogStore
    from penstock.client.execution.query_pipeline import QueryPipeline
    from penstock.client.execution.session_state import SessionState


def run_located(
    state: SessionState, pipeline: QueryPipeline, statement: LocatedStatement, params: Sequence[Any] = ()
) -> Result:
    """Run one statement of a text and log it; every error, also of its rows, has its position in the text."""
    try:
        with state.lock:
            state.statement_log.begin(statement.text, params)
            result = run_statement(state, pipeline, statement.node, params)
            state.statement_log.complete(statement.node, statement.text)
    except PenstockError as error:
        raise statement.locate(error) from error
    result.locate = statement.locate
    return result


def load_catalog(state: SessionState, pipeline: QueryPipeline, store: CatalogStore) -> None:
    """Fill a catalog by the statements of its store; from now on its changes are saved there."""
    namespace, was_loading = state.catalog.current, state.loading
    state.catalog.current, state.loading = ObjectPath(store.catalog), True
    try:
        for text in store.load():
            for statement in parse_statements(text):
                run_located(state, pipeline, statement)
    finally:
        state.catalog.current, state.loading = namespace, was_loading
    state.stores[store.catalog] = store


def run_statement(
    state: SessionState, pipeline: QueryPipeline, node: nodes.Statement, params: Sequence[Any] = ()
) -> Result:
    """Run one statement; only queries and inserts take parameters."""
    if params and not isinstance(
        node, nodes.Query | nodes.Subscribe | nodes.Insert | nodes.ExecuteStatementSet | nodes.Explain
    ):
        raise PenstockError(
            "CLI-6006", "this statement takes no parameters", hint="only SELECT and INSERT do"
        )
    match node:
        case nodes.Query() | nodes.Insert() | nodes.ExecuteStatementSet():
            return pipeline.run(node, params)
        case nodes.Subscribe():
            return subscribe.subscribe(pipeline, node, params)
        case nodes.Verify():
            return verify.verify(pipeline, node)
        case nodes.Explain():
            return explain.explain_statement(state, pipeline, node, params)
        case nodes.CreateTableAs():
            return tables.create_table_as(state, pipeline, node)
        case (
            nodes.CreateTable()
            | nodes.CreateTableLike()
            | nodes.CreateView()
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
            catalog_nodes.CreateCatalog()
            | catalog_nodes.DropCatalog()
            | catalog_nodes.CreateDatabase()
            | catalog_nodes.DropDatabase()
            | catalog_nodes.Use()
        ):
            return catalogs.change_namespaces(state, node, partial(load_catalog, state, pipeline))
        case nodes.CreateFunction() | nodes.DropFunction():
            return functions.change_functions(state, node)
        case nodes.Set() | nodes.Reset():
            return settings.change_settings(state, node)
        case nodes.Show() | nodes.ShowCreate() | nodes.Describe() | nodes.Help():
            return show.show(state, node)
        case nodes.DescribeJob() | nodes.StopJob() | nodes.CancelJob() | nodes.AlterJob():
            return jobs.control_job(state, node)
        case nodes.ShowMetrics():
            return metrics.show_metrics(state, node)
        case nodes.ExplainJob():
            return explain_job.explain_job(state, node)
        case nodes.Quit():
            raise PenstockError(
                "CLI-6007",
                "QUIT leaves the shell, and this is not the shell",
                hint="close the connection instead",
                sqlstate="0A000",
            )
    raise PenstockError(
        "INT-9040", f"no runner for statement {type(node).__name__}", kind=Kind.INTERNAL, sqlstate="XX000"
    )
