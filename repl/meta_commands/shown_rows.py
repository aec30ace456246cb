"""Rows that were shown, again: those of the last result, and the newest of a table or of a job's output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.connectors.registry import find_connector
from penstock.catalog.errors import PenstockError
from penstock.catalog.persistence.show_create import quoted_path
from penstock.catalog.tables import CatalogTable, MaterializedView, View
from penstock.planner.logical.sink import Sink
from penstock.repl.launch.script_parts import MetaCommand
from penstock.repl.meta_commands.context import MetaContext
from penstock.repl.meta_commands.listings import relation_named

if TYPE_CHECKING:
    from penstock.client.session import Session

_TAIL_ROWS = 10
# A table of files is watched: rows are there when the job has committed them.
_WATCHED = " /*+ OPTIONS('source.monitor-interval' = '1 s', 'source.replay' = 'false') */"


def show_last(context: MetaContext, command: MetaCommand) -> None:
    """Print the rows of the last result again, without a limit."""
    _show_again(context, None)


def show_tail(context: MetaContext, command: MetaCommand) -> None:
    """Print the last rows of the last result, or follow a table or a job's output."""
    name, count = _name_and_count(command.argument)
    if name:
        _follow(context, name, count)
    else:
        _show_again(context, count)


def _name_and_count(argument: str) -> tuple[str, int]:
    *names, last = argument.split() or [""]
    if last.isdecimal():
        return " ".join(names), int(last)
    return argument, _TAIL_ROWS


def _show_again(context: MetaContext, most: int | None) -> None:
    last = context.printer.last
    if last is None:
        raise PenstockError("CLI-6145", "there is no result to show again", hint="run a query first")
    context.printer.table(last.rows(most), last.kinds, whole=True)
    if last.dropped and most is None:
        context.note(f"the newest rows; {last.dropped:,} older ones were not kept")


def _follow(context: MetaContext, name: str, count: int) -> None:
    session = context.session
    table = _table(session, name)
    connector = find_connector(table.connector)
    if connector is not None and not connector.source:
        raise PenstockError(
            "CLI-6149",
            f"the rows of {table.name} cannot be read back: its connector {table.connector} is a sink only",
            hint=r"\dj JOB shows how many rows a job has written",
        )
    (statement,) = session.parse(_reading(table))
    context.printer.show(session.run(statement), tail=count)


def _reading(table: CatalogTable) -> str:
    """Return the statement that reads a table and what comes to it."""
    query = f"SELECT * FROM {quoted_path(table.name)}"
    if isinstance(table, MaterializedView):
        return f"SUBSCRIBE TO {query}"
    return query + (_WATCHED if table.connector == "filesystem" else "")


def _table(session: Session, name: str) -> CatalogTable:
    """Return the table of that name, or the one that the job of that id writes to."""
    # By its id, or the last one of a name.
    job = next((job for job in reversed(session.jobs()) if name in (job.job_id, job.name)), None)
    if job is None:
        relation = relation_named(session, name)
        if isinstance(relation, View):
            hint = f"SELECT * FROM {relation.name} shows them"
            raise PenstockError("CLI-6149", f"{relation.name} is a view, whose rows nobody writes", hint=hint)
        return relation
    if session.is_remote:
        hint = r"\tail TABLE follows the table that it writes to"
        raise PenstockError("CLI-6149", f"{name} is a job of a server, whose plan is not here", hint=hint)
    plan = session.state.jobs.submitted[job.job_id].query.bound
    tables = [node.table for node in plan.walk() if isinstance(node, Sink) and node.table is not None]
    if len(tables) != 1:
        names = ", ".join(table.name for table in tables)
        raise PenstockError(
            "CLI-6149",
            f"job {name} writes to {names}" if tables else f"job {name} writes to no table",
            hint=rf"\tail {tables[0].name}" if tables else None,
        )
    return tables[0]
