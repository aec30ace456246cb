"""Every kind of statement and who runs it: one match, a line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.client import (
    catalog_statements,
    explain_statements,
    function_statements,
    job_explanations,
    job_statements,
    materialized_views,
    metrics_statements,
    place_statements,
    settings_statements,
    show_statements,
    subscription,
    verification,
)
from penstock.client.results import Result
from penstock.planner import place_nodes
from penstock.planner import statement_nodes as nodes
from penstock.planner.alteration_nodes import AlterTable

if TYPE_CHECKING:
    from penstock.client.session import Session


def run_statement(session: Session, node: nodes.Statement, params: Sequence[Any] = ()) -> Result:
    """Run one statement in a session; only queries and inserts take parameters."""
    if params and not isinstance(node, nodes.Query | nodes.Subscribe | nodes.Insert | nodes.StatementSet | nodes.Explain):
        raise PenstockError("CLI-6006", "this statement takes no parameters", hint="only SELECT and INSERT do")
    match node:
        case nodes.Query():
            return job_statements.query(session, node, params)
        case nodes.Subscribe():
            return subscription.subscribe(session, node, params)
        case nodes.Verify():
            return verification.verify(session, node)
        case nodes.Insert() | nodes.StatementSet():
            return job_statements.insert(session, node, params)
        case nodes.Explain():
            return explain_statements.explain_statement(session, node, params)
        case nodes.CreateTableAs():
            return catalog_statements.create_filled(session, node)
        case nodes.CreateTable() | nodes.CreateTableLike() | nodes.CreateView() | nodes.DropTable() | nodes.DropView() | AlterTable():
            return catalog_statements.change_catalog(session, node)
        case nodes.CreateMaterializedView():
            return materialized_views.create_view(session, node)
        case nodes.DropMaterializedView():
            return materialized_views.drop_view(session, node)
        case place_nodes.CreateCatalog() | place_nodes.DropCatalog() | place_nodes.CreateDatabase() | place_nodes.DropDatabase() | place_nodes.Use():
            return place_statements.change_places(session, node)
        case nodes.CreateFunction() | nodes.DropFunction():
            return function_statements.change_functions(session, node)
        case nodes.Set() | nodes.Reset():
            return settings_statements.change_settings(session, node)
        case nodes.Show() | nodes.ShowCreate() | nodes.Describe() | nodes.Help():
            return show_statements.show(session, node)
        case nodes.DescribeJob() | nodes.StopJob() | nodes.CancelJob() | nodes.AlterJob():
            return job_statements.control(session, node)
        case nodes.ShowMetrics():
            return metrics_statements.show_metrics(session, node)
        case nodes.ExplainJob():
            return job_explanations.explain_job(session, node)
        case nodes.Quit():
            raise PenstockError("CLI-6007", "QUIT leaves the shell, and this is not the shell", hint="close the connection instead", sqlstate="0A000")
    raise PenstockError("INT-9040", f"no runner for statement {type(node).__name__}", kind=Kind.INTERNAL, sqlstate="XX000")
