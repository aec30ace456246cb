"""Access control: what the statements of a session may do. A session in the user's own process may do all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from penstock.catalog.catalog import Catalog, Relation
from penstock.catalog.state_reference import StateColumns, StateLookup, StateReference
from penstock.catalog.tables import CatalogTable, FileColumns, InferredFiles
from penstock.planner.statements.nodes import Statement

if TYPE_CHECKING:
    from penstock.planner.logical.plan import LogicalPlan


class AccessControl(Protocol):
    """Is asked before anything is read, written or started. Each method raises PenstockError to refuse."""

    def check_statement(self, node: Statement, text: str) -> None:
        """Refuse a statement that the session's user may not run."""

    def check_options(self, connector: str, options: Mapping[str, str]) -> None:
        """Refuse options of a table that reach a file or a host the user may not reach."""

    def check_path(self, key: str, path: str) -> None:
        """Refuse a directory or URL that the user may not reach; ``key`` is the word of the error."""


class FullAccess:
    """Allows everything: the user's own process."""

    def check_statement(self, node: Statement, text: str) -> None:
        """Allow it."""

    def check_options(self, connector: str, options: Mapping[str, str]) -> None:
        """Allow them."""

    def check_path(self, key: str, path: str) -> None:
        """Allow it."""


class CheckedFiles:
    """Infers the columns of files that the user may read."""

    def __init__(self, files: FileColumns, access: AccessControl) -> None:
        self._files = files
        self._access = access

    def format(self, path: str) -> str:
        """Return the format of the files of a path."""
        self._access.check_path("path", path)
        return self._files.format(path)

    def columns(self, options: Mapping[str, str]) -> InferredFiles:
        """Return the columns of a filesystem table with these options."""
        self._access.check_options("filesystem", options)
        return self._files.columns(options)


class CheckedStates:
    """Finds states of jobs, and of savepoints in directories that the user may read."""

    def __init__(self, states: StateLookup, access: AccessControl) -> None:
        self._states = states
        self._access = access

    def state_columns(self, reference: StateReference) -> StateColumns:
        """Return the columns of a state."""
        if reference.savepoint is not None:
            self._access.check_path("savepoint", reference.savepoint)
        return self._states.state_columns(reference)

    def view_rows(self, view: str, checkpoint: int | None, until_us: int | None) -> StateReference | None:
        """Return the state that has the rows of a materialized view at a checkpoint."""
        return self._states.view_rows(view, checkpoint, until_us)

    def rows_read(self, view: str) -> Mapping[str, list[tuple[str, int]]]:
        """Return what the job of a materialized view has read at its newest checkpoint."""
        return self._states.rows_read(view)


def check_table(access: AccessControl, table: CatalogTable, declared: Relation | None = None) -> None:
    """Refuse what a table reaches. ``declared`` is what the catalog has by its name. Whoever declared that
    was allowed to, so only the options that differ from it are checked.
    """
    if declared is table:
        return
    known = declared.options if isinstance(declared, CatalogTable) else {}
    changed = {key: value for key, value in table.options.items() if known.get(key) != value}
    if changed:
        access.check_options(table.connector, changed)


def check_plan(access: AccessControl, catalog: Catalog, plan: LogicalPlan) -> None:
    """Refuse a bound plan that reads or writes what the user may not reach."""
    # the user's own process: no catalog of another system is asked for names
    if isinstance(access, FullAccess):
        return
    for node in plan.walk():
        table = getattr(node, "table", None)
        if isinstance(table, CatalogTable):
            check_table(access, table, catalog.find(table.name))
