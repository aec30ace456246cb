"""The statements of a session that made names, by which another process can resume its jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.catalog.secrets import holds_secrets
from penstock.catalog.settings import Settings
from penstock.planner.binder.parameters import Parameters
from penstock.planner.statements import nodes
from penstock.planner.statements.nodes import AlterTable

if TYPE_CHECKING:
    from penstock.engine.api.job_options import JobRecord

# statements without a job: run again, they make the names that the job's own statement uses
MAKES_NAMES = (
    nodes.CreateTable,
    nodes.CreateTableLike,
    nodes.CreateView,
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
    """The statements of a session that made names, in order, and the one it runs now."""

    statements: list[str] = field(default_factory=list)
    current: str = ""
    has_params: bool = False
    holds_secrets: bool = False

    def begin(self, text: str, params: Parameters) -> None:
        """Set the statement that runs now."""
        self.current, self.has_params = text, bool(params)

    def complete(self, node: nodes.Statement, text: str) -> None:
        """Append a statement that has succeeded, if it made a name."""
        if isinstance(node, MAKES_NAMES):
            self.statements.append(text)
            self.holds_secrets = self.holds_secrets or holds_secrets(text)

    def record(self, settings: Settings, name: str) -> JobRecord | None:
        """Return the record of a job that is started now. None where its statement alone does not make it:
        in the Table API, or with parameters.
        """
        from penstock.engine.api.job_options import JobRecord  # the engine: not before a job is started

        # the Table API has no text, and parameters are Python values that the record does not store
        if not self.current or self.has_params:
            return None
        # only what was set: defaults are those of the version that resumes the job
        chosen = tuple((key, text) for key, text in settings.items() if settings.is_set(key))
        if (
            # shown differs from the text where a setting is secret
            self.holds_secrets
            or holds_secrets(self.current)
            or any(settings.shown(key) != text for key, text in chosen)
        ):
            # a secret is never written to disk; the record still says that there is a job
            return JobRecord(name, (), "", (), withheld=True)
        return JobRecord(name, tuple(self.statements), self.current, chosen)
