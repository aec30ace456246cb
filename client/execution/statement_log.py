"""The statements of a session that made names, by which another process can resume its jobs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.catalog.persistence.show_create import create_statement, function_statement, quoted_name
from penstock.catalog.secrets import holds_secrets
from penstock.catalog.settings import Settings
from penstock.catalog.tables import MaterializedView, ObjectPath, View
from penstock.client.execution.session_settings import SessionSettings
from penstock.planner.binder.parameters import Parameters
from penstock.planner.statements import nodes
from penstock.planner.statements.nodes import AlterTable

if TYPE_CHECKING:
    from penstock.catalog.catalog import Catalog
    from penstock.client.execution.session_state import SessionState
    from penstock.engine.api.job_options import JobRecord

# statements without a job: run again, they make the names that the job's own statement uses
MAKES_NAMES = (
    nodes.CreateTable,
    nodes.CreateTableLike,
    nodes.CreateView,
    nodes.AlterView,
    nodes.DropTable,
    nodes.DropView,
    AlterTable,
    nodes.CreateCatalog,
    nodes.DropCatalog,
    nodes.CreateDatabase,
    nodes.DropDatabase,
    nodes.Use,
    nodes.CreateFunction,
    nodes.DropFunction,
)


@dataclass
class StatementLog:
    """The statements of a session that made names, in order, and the one it runs now. ``keeps_names`` False:
    the names are stored elsewhere, and the statements are not kept.
    """

    keeps_names: bool = True
    statements: list[str] = field(default_factory=list)
    current: str = ""
    has_params: bool = False
    holds_secrets: bool = False

    def begin(self, text: str, params: Parameters) -> None:
        """Set the statement that runs now."""
        self.current, self.has_params = text, bool(params)

    def complete(self, node: nodes.Statement, text: str) -> None:
        """Append a statement that has succeeded, if it made a name."""
        if self.keeps_names and isinstance(node, MAKES_NAMES):
            self.statements.append(text)
            self.holds_secrets = self.holds_secrets or holds_secrets(text)

    def record(self, settings: Settings, name: str, catalog: Catalog | None = None) -> JobRecord | None:
        """Return the record of a job that is started now. None where its statement alone does not make it:
        in the Table API, or with parameters. ``catalog``: where permanent names are stored elsewhere; the
        record then has the temporary ones only.
        """
        from penstock.engine.api.job_options import JobRecord  # the engine: not before a job is started

        # the Table API has no text, and parameters are Python values that the record does not store
        if not self.current or self.has_params:
            return None
        statements, has_secrets = self.statements, self.holds_secrets
        if catalog is not None:
            statements = _temporary_names(catalog)
            has_secrets = any(map(holds_secrets, statements))
        chosen = _chosen(settings)
        if (
            # shown differs from the text where a setting is secret
            has_secrets
            or holds_secrets(self.current)
            or any(settings.shown(key) != text for key, text in chosen)
        ):
            # a secret is never written to disk; the record still says that there is a job
            return JobRecord(name, (), "", (), withheld=True)
        return JobRecord(name, tuple(statements), self.current, chosen)


def _chosen(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return what was set: defaults are those of the version that resumes the job, and settings of a server
    those of the server that does.
    """
    if isinstance(settings, SessionSettings):
        return tuple(settings.own().items())
    return tuple((key, text) for key, text in settings.items() if settings.is_set(key))


def _temporary_names(catalog: Catalog) -> list[str]:
    """Return the statements that make the temporary names of a session again, and the one that leads to its
    current database.
    """
    statements = [
        function_statement(entry).replace("CREATE", "CREATE TEMPORARY", 1)
        for entry in catalog.functions.temporary()
        # a function that the program registered has no statement
        if entry.target is not None
    ]
    used = ObjectPath()
    for relation in catalog.temporary():
        # the names of a view's query are looked for where it was created
        wanted = relation.path if isinstance(relation, View | MaterializedView) else used
        statements += _use(wanted, used)
        used = wanted
        # with all three parts, a name is the same wherever it is looked for
        path, bare = ObjectPath.of(relation.name), relation.name.rpartition(".")[2]
        named = replace(relation, name=f"{path.catalog}.{path.database}.{bare}")
        statements.append(create_statement(named, redact=False))
    return [*statements, *_use(catalog.current, used)]


def _use(wanted: ObjectPath, used: ObjectPath) -> list[str]:
    return [] if wanted == used else [f"USE {quoted_name(wanted.catalog)}.{quoted_name(wanted.database)}"]


def job_record(state: SessionState, name: str) -> JobRecord | None:
    """Return the record of a job that a session starts now."""
    # the catalog of a shared engine is made by many sessions, and outlives them all
    return state.statement_log.record(state.settings, name, state.catalog if state.engine.is_shared else None)
