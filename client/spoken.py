"""What a session has said so far, as far as it made names, so that another process can run its jobs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from catalog.connectors import is_secret, redact_url
from catalog.settings import SPARK
from planner import place_nodes
from planner import statement_nodes as nodes
from planner.alteration_nodes import AlterTable

if TYPE_CHECKING:
    from client.session import Session
    from engine.job_record import JobRecord

MAKES_NAMES = (
    nodes.CreateTable,
    nodes.CreateTableLike,
    nodes.CreateView,
    nodes.DropTable,
    nodes.DropView,
    AlterTable,
    place_nodes.CreateCatalog,
    place_nodes.DropCatalog,
    place_nodes.CreateDatabase,
    place_nodes.DropDatabase,
    place_nodes.Use,
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
            self.holds_secrets = self.holds_secrets or _holds_secrets(node)

    def record(self, session: Session, name: str) -> JobRecord | None:
        """Return the record of a job that is started now; None for one no statement alone makes."""
        from engine.job_record import JobRecord  # the engine: not before a job is started

        if not self.current or self.has_params:
            return None
        settings = tuple((key, text) for key, text in session.settings.items() if session.settings.is_set(key))
        if self.holds_secrets or any(key.startswith(SPARK) and is_secret("spark", key) for key, _ in settings):
            return JobRecord(name, (), "", (), withheld=True)
        return JobRecord(name, tuple(self.statements), self.current, settings)


def _holds_secrets(node: nodes.Statement) -> bool:
    options = {option.key: option.value for option in getattr(node, "options", ())}
    connector = options.get("connector", "")
    return any(is_secret(connector, key) or redact_url(str(value)) != str(value) for key, value in options.items())
