"""Completion of what stands behind a meta command: tables, files, jobs, named queries, words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.repl.launch.arguments import FORMATS

if TYPE_CHECKING:
    from penstock.client.session import Session

_FILES = (r"\i", r"\ir", r"\o", r"\g", r"\gx", r"\e")
_TABLES = (r"\d", r"\d+", r"\dt", r"\dv", r"\tail")
_JOBS = (r"\dj", r"\dj+", r"\tail")
_WORDS = {
    r"\mode": ("auto", "table", "changelog", *FORMATS),
    r"\x": ("on", "off", "auto"),
    r"\t": ("on", "off"),
    r"\timing": ("on", "off"),
    r"\pset": ("null", "max_rows", "pager"),
}
# A directory of a million files must not stop the typing.
_MOST_FILES = 200


class ArgumentCompletion:
    """Knows the arguments of meta commands. ``named_queries`` returns the names that are saved."""

    def __init__(self, session: Callable[[], Session | None], named_queries: Callable[[], list[str]]) -> None:
        self._session = session
        self._named_queries = named_queries

    def arguments(self, command: str, typed: str) -> Iterator[tuple[str, str]]:
        """Yield (argument, what it is) for a command and the beginning of its argument."""
        session = self._session()
        if command in _FILES:
            yield from _files(typed)
        if command in (r"\n", r"\nd"):
            yield from ((name, "query") for name in self._named_queries())
        yield from ((word, "") for word in _WORDS.get(command, ()))
        if session is None:
            return
        if command in _TABLES:
            yield from ((name, "table") for name in session.catalog.names())
        if command in _JOBS:
            yield from ((job.job_id, f"job, {str(job.state).lower()}") for job in session.jobs())
        if command == r"\df":
            # The lists of functions and connectors: not before they are asked for.
            from penstock.catalog.functions.registry import function_kinds

            yield from function_kinds()
        if command == r"\dc":
            from penstock.catalog.connectors.registry import CONNECTORS

            yield from ((one.name, one.help) for one in CONNECTORS.values() if not one.internal)


def _files(typed: str) -> Iterator[tuple[str, str]]:
    folder = Path(typed) if typed.endswith("/") else Path(typed).parent
    try:
        entries = sorted(folder.iterdir())[:_MOST_FILES]
    except OSError:
        return
    prefix = typed[: typed.rfind("/") + 1]
    for entry in entries:
        if not entry.name.startswith("."):
            is_directory = entry.is_dir()
            yield f"{prefix}{entry.name}{'/' * is_directory}", "directory" if is_directory else "file"
