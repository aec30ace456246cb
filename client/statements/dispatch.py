"""Every kind of statement and who runs it: one match, a line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.result import Result
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
from penstock.planner.statements import catalog_nodes, nodes
from penstock.planner.statements.alter_table_nodes import AlterTable

if TYPE_CHECKING:
    from penstock.client.session import Session


def run_statement(session: Session, node: nodes.Statement, params: Sequence[Any] = ()) -> Result:
    """Run one statement in a session; only queries and inserts take parameters."""
    if params and not isinstance(
        node, nodes.Query | nodes.Subscribe | nodes.Insert | nodes.ExecuteStatementSet | nodes.Explain
    ):
        raise PenstockError(
            "CLI-6006", "this statement takes no parameters", hint="only SELECT and INSERT do"
        )
    match node:
        case nodes.Query():
            return jobs.query(session, node, params)
        case nodes.Subscribe():
            return subscribe.subscribe(session, node, params)
        case nodes.Verify():
            return verify.verify(session, node)
        case nodes.Insert() | nodes.ExecuteStatementSet():
            return jobs.insert(session, node, params)
        case nodes.Explain():
            return explain.explain_statement(session, node, params)
        case nodes.CreateTableAs():
            return tables.create_filled(session, node)
        case (
            nodes.CreateTable()
            | nodes.CreateTableLike()
            | nodes.CreateView()
            | nodes.DropTable()
            | nodes.DropView()
            | AlterTable()
        ):
            return tables.change_catalog(session, node)
        case nodes.CreateMaterializedView():
            return materialized_views.create_view(session, node)
        case nodes.DropMaterializedView():
            return materialized_views.drop_view(session, node)
        case (
            catalog_nodes.CreateCatalog()
            | catalog_nodes.DropCatalog()
            | catalog_nodes.CreateDatabase()
            | catalog_nodes.DropDatabase()
            | catalog_nodes.Use()
        ):
            return catalogs.change_places(session, node)
        case nodes.CreateFunction() | nodes.DropFunction():
            return functions.change_functions(session, node)
        case nodes.Set() | nodes.Reset():
            return settings.change_settings(session, node)
        case nodes.Show() | nodes.ShowCreate() | nodes.Describe() | nodes.Help():
            return show.show(session, node)
        case nodes.DescribeJob() | nodes.StopJob() | nodes.CancelJob() | nodes.AlterJob():
            return jobs.control(session, node)
        case nodes.ShowMetrics():
            return metrics.show_metrics(session, node)
        case nodes.ExplainJob():
            return explain_job.explain_job(session, node)
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
