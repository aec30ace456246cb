"""What meta commands need of the shell or of a script that runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from penstock.catalog.errors import PenstockError
    from penstock.client.session import Session
    from penstock.client.statements.dispatch import LocatedStatement
    from penstock.repl.launch.config import Config
    from penstock.repl.output.printer import Printer


class MetaContext(Protocol):
    """A session, its printer, and what was run last.

    ``next_input``: text that the next prompt starts with. ``interactive``: whether there is a prompt.
    ``included``: the scripts that are being included, the outermost first. ``last_statement``: the text of
    the statement that ran last.
    """

    config: Config
    last_error: PenstockError | None
    next_input: str
    interactive: bool
    included: list[str]
    last_statement: str

    @property
    def session(self) -> Session:
        """The session; the shell waits until it is loaded."""

    @property
    def printer(self) -> Printer:
        """The printer of results."""

    def run_statement(self, statement: LocatedStatement, params: Sequence[Any] = ()) -> None:
        """Run a statement, its ``?`` being ``params``, and print its result."""

    def run_statements(self, text: str, file: str | None = None) -> bool:
        """Run the parts of a text; return False when one leaves. Raises the first error."""

    def status(self) -> str:
        """Return how many jobs run, in words."""

    def note(self, text: str) -> None:
        """Print a sentence that is no data."""


def jobs_in_words(session: Session | None) -> str:
    """Return how many jobs of a session run, in words; nothing when none does."""
    # those of a server are of others too, and the bar would ask it at every key
    if session is not None and session.is_remote:
        return ""
    running = 0 if session is None else sum(not job.state.terminal for job in session.jobs())
    return f"{running} job{'' if running == 1 else 's'} running" if running else ""
