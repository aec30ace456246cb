"""CREATE, DROP and ALTER: statements that change the catalog."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.catalog.catalog import Catalog
from penstock.catalog.connectors.registry import left_behind
from penstock.catalog.errors import PenstockError
from penstock.catalog.namespaces import WritableCatalog
from penstock.catalog.tables import CatalogTable, ObjectPath
from penstock.client.execution.access_control import check_table
from penstock.client.execution.binder_notes import log_notes
from penstock.client.results.result import Result, note_result
from penstock.planner.binder.binder import Binder
from penstock.planner.binder.parameters import Parameters
from penstock.planner.logical.sink import Sink
from penstock.planner.parser.syntax_nodes import OptionEntry
from penstock.planner.statements import nodes
from penstock.planner.statements.nodes import AlterTable, Name, RenameTable

if TYPE_CHECKING:
    from penstock.client.execution.planned_query import PlannedQuery
    from penstock.client.execution.query_pipeline import QueryPipeline
    from penstock.client.execution.session_state import SessionState
    from penstock.engine.job.job import Job

CatalogChange = (
    nodes.CreateTable
    | nodes.CreateTableLike
    | nodes.CreateView
    | nodes.AlterView
    | nodes.DropTable
    | nodes.DropView
    | AlterTable
)


def change_catalog(state: SessionState, node: CatalogChange) -> Result:
    """Apply a change to the catalog, save the catalog, and report the change."""
    result = _apply(state, node)
    state.save_catalogs()
    return result


def create_table_as(
    state: SessionState, pipeline: QueryPipeline, node: nodes.CreateTableAs, params: Parameters = ()
) -> Result:
    """Create the table of a query and start the job that fills it. A query that cannot be planned or
    started creates nothing.
    """
    name = node.table.name
    if node.table.if_not_exists and state.catalog.find(name.text) is not None:
        return note_result(f"table {name} exists already")
    planned = declare_table_as(state, pipeline, node, params)
    assert isinstance(planned.bound, Sink) and planned.bound.table is not None
    table = planned.bound.table
    # the directories that are missing now are those that the job will have made
    undo = partial(drop_uncommitted, state, table, _missing_directories(table))
    state.save_catalogs()
    try:
        return replace(pipeline.start(planned), undo=undo)
    except BaseException as error:
        undo(error, None)
        raise


def drop_uncommitted(
    state: SessionState, table: CatalogTable, created: tuple[Path, ...], error: BaseException, job: Job | None
) -> None:
    """Drop the table of a query that failed before anything was committed, with the directories it made, and
    let the error say so.

    Without a checkpoint nothing is committed. Only directories without files are removed: another job may
    write there.
    """
    # it still runs, or has committed rows: the table is of use
    if job is not None and (not job.state.terminal or _has_checkpoint(job)):
        return
    with state.catalog.lock:
        if state.catalog.find(table.name) is not table:  # somebody has dropped it, or made another
            return
        state.catalog.drop_table(table.name)
    state.bad_records.forget(table.name)
    state.save_catalogs()
    _remove_empty(created)
    sentence = (
        f"table {table.name} is dropped again: "
        f"{'nothing fills it' if job is None else 'no row of it was committed'}"
    )
    if isinstance(error, PenstockError):
        error.detail = sentence if error.detail is None else f"{error.detail}\n{sentence}"
    else:
        state.report(sentence)


def _has_checkpoint(job: Job) -> bool:
    """Return whether a job has completed a checkpoint, in this process or, as its state says, before."""
    if job.metrics().last_checkpoint is not None or job.checkpoint_storage is None:
        return job.metrics().last_checkpoint is not None
    from penstock.engine.checkpoint.reader import CheckpointReader  # only where a job with state has failed

    try:
        return bool(CheckpointReader(job.checkpoint_storage).lines())
    except (PenstockError, OSError):  # a state nobody can read: perhaps that is what the job failed of
        return True


def _missing_directories(table: CatalogTable) -> tuple[Path, ...]:
    """Return the missing directories of a table, the innermost first."""
    text = table.options.get("path", "").removeprefix("file://")
    # of another connector or another filesystem: there is no local directory to remove
    if table.connector != "filesystem" or not text or "://" in text:
        return ()
    try:
        path = Path(text).expanduser().absolute()
        return tuple(each for each in (path, *path.parents) if not each.exists())
    except (OSError, RuntimeError):  # not ours to look at, or no home: the sink says what is wrong with it
        return ()


def _remove_empty(directories: tuple[Path, ...]) -> None:
    """Remove directories, and those below the first, as far as no file is in them."""
    # partition directories of an attempt, the deepest first
    below = [Path(each) for each, _, _ in os.walk(directories[0], topdown=False)][:-1] if directories else []
    for directory in (*below, *directories):
        with contextlib.suppress(OSError):  # not empty, or gone
            directory.rmdir()


def declare_table_as(
    state: SessionState, pipeline: QueryPipeline, node: nodes.CreateTableAs, params: Parameters = ()
) -> PlannedQuery:
    """Create the table of a query and return the planned query that fills it."""
    _refuse_there(state.catalog, node.table.name)
    sink = Binder(state.catalog, state.settings).bind_create_table_as(node, params)
    planned = pipeline.plan(sink)
    assert sink.table is not None
    check_table(state.access, sink.table)
    state.catalog.create_table(sink.table, False, node.table.name.span)
    state.warm_backend_for(sink.table)
    return planned


def _refuse_there(catalog: Catalog, name: nodes.Name) -> None:
    """Raise SQL-1358 for a table of a query in a catalog of another system."""
    if catalog.databases.writable(ObjectPath.of(catalog.qualified(name.text))) is None:
        catalog.refuse_external(name.text, name.span)
        return
    raise PenstockError(
        "SQL-1358",
        f"{name.text} cannot be created from a query: its catalog belongs to another system",
        hint=f"write CREATE TABLE {name.text} (..) with its columns, then INSERT INTO {name.text} SELECT ..",
        span=name.span,
        sqlstate="0A000",
    )


def _create_there(state: SessionState, node: nodes.CreateTable, there: WritableCatalog) -> Result:
    """Create a table in a catalog of another system, which keeps columns, key and partitions."""
    catalog, binder = state.catalog, Binder(state.catalog, state.settings)
    full_name = catalog.qualified(node.name.text)
    if catalog.find(node.name.text) is not None:
        raise PenstockError(
            "SQL-1302",
            f'table "{full_name}" exists already',
            hint=f"drop it first with DROP TABLE {full_name}, or write CREATE TABLE IF NOT EXISTS",
            span=node.name.span,
            sqlstate="42P07",
        )
    path = ObjectPath.of(full_name)
    if node.options or node.watermark is not None or node.temporary:
        what = "WITH" if node.options else "a watermark" if node.watermark is not None else "TEMPORARY"
        raise PenstockError(
            "SQL-1358",
            f"{what} cannot be kept by catalog {path.catalog}, which belongs to {there.system}",
            hint="leave it out; or create the table outside the catalog, with 'connector' = "
            f"'{there.system.lower()}' and 'table-name' = '{path.database}.{full_name.rpartition('.')[2]}'",
            span=node.name.span,
            sqlstate="0A000",
        )
    options = there.options_of(path.database, full_name.rpartition(".")[2])
    entries = tuple(OptionEntry(key, value) for key, value in options.items())
    table = binder.bind_create_table(replace(node, options=entries))
    there.create_table(table)
    return note_result(f"table {node.name} created in {there.system}")


def _apply(state: SessionState, node: CatalogChange) -> Result:
    catalog, binder = state.catalog, Binder(state.catalog, state.settings)
    match node:
        # CREATE TABLE: a new declaration
        case nodes.CreateTable():
            if node.if_not_exists and catalog.find(node.name.text) is not None:
                return note_result(f"table {node.name} exists already")
            there = catalog.databases.writable(ObjectPath.of(catalog.qualified(node.name.text)))
            if there is not None:
                return _create_there(state, node, there)
            catalog.refuse_external(node.name.text, node.name.span)
            completed = binder.complete_create_table(node)
            table = binder.bind_create_table(completed.statement)
            check_table(state.access, table)
            catalog.create_table(table, node.if_not_exists, node.name.span)
            state.warm_backend_for(table)
            basis = completed.basis and f" ({len(table.schema)} columns: {completed.basis})"
            return note_result(f"table {node.name} created{basis}")
        # CREATE TABLE .. LIKE: a copy of a declaration
        case nodes.CreateTableLike(table=declared):
            if declared.if_not_exists and catalog.find(declared.name.text) is not None:
                return note_result(f"table {declared.name} exists already")
            catalog.refuse_external(declared.name.text, declared.name.span)
            table = binder.bind_create_table_like(node)
            check_table(state.access, table)
            catalog.create_table(table, declared.if_not_exists, declared.name.span)
            state.warm_backend_for(table)
            return note_result(f"table {table.name} created")
        case nodes.CreateView():
            if node.if_not_exists and catalog.find(node.name.text) is not None:
                return note_result(f"view {node.name} exists already")
            view = binder.bind_create_view(node)
            log_notes(binder.notes)
            catalog.create_view(
                view, or_replace=node.or_replace, if_not_exists=node.if_not_exists, span=node.name.span
            )
            return note_result(f"view {node.name} created")
        case nodes.AlterView():
            return _alter_view(catalog, binder, node)
        case nodes.DropTable():
            there = catalog.databases.writable(ObjectPath.of(catalog.qualified(node.name.text)))
            # a name that is not there has its sentence from the catalog
            if there is not None and catalog.find(node.name.text) is not None:
                path = ObjectPath.of(catalog.qualified(node.name.text))
                there.drop_table(path.database, node.name.text.rpartition(".")[2])
                return note_result(f"table {node.name} dropped")
            known = catalog.find(node.name.text)
            dropped = catalog.drop_table(node.name.text, node.if_exists, node.name.span)
            if not dropped:
                return note_result(f"there is no table {node.name}")
            state.bad_records.forget(catalog.qualified(node.name.text))
            left = left_behind(known) if isinstance(known, CatalogTable) else ""
            return note_result(f"table {node.name} dropped{f'; {left}' if left else ''}")
        case nodes.DropView():
            dropped = catalog.drop_view(node.name.text, node.if_exists, node.name.span)
            return note_result(f"view {node.name} dropped" if dropped else f"there is no view {node.name}")
        # ALTER TABLE: the changed declaration is bound as a new one; its bad records had the old columns
        case AlterTable():
            catalog.refuse_external(node.name.text, node.name.span)
            # bound and replaced in one step: two sessions that add a column each add both
            with catalog.lock:
                table = binder.bind_alter_table(node)
                check_table(state.access, table, catalog.find(node.name.text))
                catalog.replace_table(
                    table,
                    node.name.text,
                    node.change.new.span if isinstance(node.change, RenameTable) else None,
                )
            state.bad_records.forget(catalog.qualified(node.name.text))
            return note_result(f"table {node.name} altered")


def _alter_view(catalog: Catalog, binder: Binder, node: nodes.AlterView) -> Result:
    """Give a view another name, or another query. Views that read it by the old name do not follow."""
    with catalog.lock:
        view = catalog.view(node.name.text, node.name.span)
        if isinstance(new := node.change, Name):
            renamed = replace(view, name=catalog.qualified(new.text, new.span))
            catalog.create_view(renamed, span=new.span)
            catalog.drop_view(node.name.text, span=node.name.span)
            return note_result(f"view {node.name} is {new} now")
        changed = nodes.CreateView(node.name, new, or_replace=True, temporary=view.temporary, span=node.span)
        catalog.create_view(binder.bind_create_view(changed), or_replace=True, span=node.name.span)
        log_notes(binder.notes)
    return note_result(f"view {node.name} altered")
