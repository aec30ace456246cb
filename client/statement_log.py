"""What a session has said so far, as far as it made names, so that another process can run its jobs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.catalog.secrets import holds_secrets
from penstock.planner.statements import catalog_nodes, nodes
from penstock.planner.statements.alter_table_nodes import AlterTable

if TYPE_CHECKING:
    from penstock.client.session import Session
    from penstock.engine.api.job_record import JobRecord

MAKES_NAMES = (
    nodes.CreateTable,
    nodes.CreateTableLike,
    nodes.CreateView,
    nodes.DropTable,
    nodes.DropView,
    AlterTable,
    catalog_nodes.CreateCatalog,
    catalog_nodes.DropCatalog,
    catalog_nodes.CreateDatabase,
    catalog_nodes.DropDatabase,
    catalog_nodes.Use,
    nodes.CreateFunction,
    nodes.DropFunction,
)


@dataclass
class Spoken:
    """The statements of a session that made names, in order, and the one it runs now."""

    statements: list[str] = field(default_factory=list)
    current: str = ""
    has_params: bool = False
    holds_secrets: bool = False

    def begin(self, text: str, params: Sequence[Any]) -> None:
        """Learn which statement is run now."""
        self.current, self.has_params = text, bool(params)

    def done(self, node: nodes.Statement, text: str) -> None:
        """Learn that a statement has succeeded."""
        if isinstance(node, MAKES_NAMES):
            self.statements.append(text)
            self.holds_secrets = self.holds_secrets or holds_secrets(text)

    def record(self, session: Session, name: str) -> JobRecord | None:
        """Return the record of a job that is started now; None for one no statement alone makes."""
        from penstock.engine.api.job_record import JobRecord  # the engine: not before a job is started

        if not self.current or self.has_params:
            return None
        chosen = session.settings
        settings = tuple((key, text) for key, text in chosen.items() if chosen.is_set(key))
        if (
            self.holds_secrets
            or holds_secrets(self.current)
            or any(chosen.shown(key) != text for key, text in settings)
        ):
            return JobRecord(name, (), "", (), withheld=True)
        return JobRecord(name, tuple(self.statements), self.current, settings)
