"""The stored catalog of a server: its statements, the settings of its views, and what could not be loaded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.persistence.catalog_store import FORMAT, catalog_statements
from penstock.catalog.persistence.show_create import quoted_name
from penstock.catalog.tables import DEFAULT_CATALOG, DEFAULT_DATABASE, ObjectPath
from penstock.client.server.state_lease import StateLease
from penstock.client.session import NAME_IS_TAKEN, Session
from penstock.client.statements.catalogs import database_named
from penstock.client.statements.dispatch import LocatedStatement, parse_statements, run_located
from penstock.client.statements.stored_statements import BrokenStatement, run_stored
from penstock.planner.statements.nodes import CreateMaterializedView, Use

if TYPE_CHECKING:
    from penstock.catalog.catalog import Catalog

CATALOG = "catalog.json"
_USE_DEFAULT = f"USE {quoted_name(DEFAULT_CATALOG)}.{quoted_name(DEFAULT_DATABASE)}"


class ServerCatalog:
    """The permanent names of a server's default catalog, in one file of its state.

    ``view_settings`` returns the settings of the sessions that created the materialized views, by folded
    name. A file that cannot be read raises SQL-1320.
    """

    catalog = DEFAULT_CATALOG

    def __init__(
        self, lease: StateLease, view_settings: Callable[[], Mapping[str, Mapping[str, str]]]
    ) -> None:
        self._lease = lease
        self._view_settings = view_settings
        self._broken: list[tuple[str | None, BrokenStatement]] = []

    def load(self) -> list[str]:
        """Return the stored statements, in order."""
        return [str(text) for text in self._read()["statements"]]

    @property
    def is_stored(self) -> bool:
        """Whether there is a file: a state without one is new."""
        return self._lease.read(CATALOG) is not None

    def fill(self, session: Session, report: Callable[[PenstockError], None]) -> None:
        """Run the stored statements in a session. One that fails is reported and kept; the others run."""
        stored = self._read()
        settings, state = stored.get("settings", {}), session.state
        state.loading = True
        try:
            broken = run_stored(
                stored["statements"],
                _USE_DEFAULT,
                parse_statements,
                lambda statement: self._run(session, statement, settings),
                # made by an earlier statement: this one was kept when it could not be run
                NAME_IS_TAKEN,
            )
            for one in broken:
                name = _created_name(session, one)
                self._broken.append((name, one))
                report(_unloadable(name or one.text, one.error))
        finally:
            state.loading = False
            state.catalog.current = ObjectPath()

    def _run(
        self, session: Session, statement: LocatedStatement, settings: Mapping[str, Mapping[str, str]]
    ) -> None:
        # a USE of one part is one of a database of this catalog, wherever the statement before it led
        if isinstance(statement.node, Use):
            session.catalog.current = ObjectPath()
        # only the job of a view has settings that outlive the session
        if isinstance(statement.node, CreateMaterializedView):
            name = session.catalog.qualified(statement.node.name.text).lower()
            for key, text in settings.get(name, {}).items():
                session.settings.set(key, text)
        try:
            run_located(session.state, session.pipeline, statement)
        finally:
            session.settings.reset()

    def save(self, catalog: Catalog) -> None:
        """Write the permanent names, all or nothing. SQL-1321 when they cannot be written."""
        with catalog.lock:
            statements = catalog_statements(catalog)
            # created again, by a statement that works
            self._broken = [
                (name, one) for name, one in self._broken if name is None or catalog.find(name) is None
            ]
        for _, one in self._broken:
            statements += [one.use, one.text]
        content = {
            "format": FORMAT,
            "statements": statements,
            "settings": {name: dict(own) for name, own in self._view_settings().items() if own},
        }
        try:
            self._lease.write(CATALOG, (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode())
        except OSError as error:
            raise PenstockError(
                "SQL-1321",
                "the catalog cannot be written to the state of the server",
                detail=str(error),
                kind=Kind.EXTERNAL,
                sqlstate="58030",
            ) from error

    def _read(self) -> dict[str, Any]:
        data = self._lease.read(CATALOG)
        if data is None:
            return {"statements": []}
        try:
            content = json.loads(data)
        except ValueError as error:
            raise _unreadable(str(error)) from error
        # a file that was edited by hand is reported, never read in part
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise _unreadable(f"it is not of format {FORMAT}")
        if not isinstance(content.get("statements"), list):
            raise _unreadable("it holds no list of statements")
        return content


def _created_name(session: Session, one: BrokenStatement) -> str | None:
    """Return the full name of what a statement creates; None where it creates nothing that is looked up."""
    try:
        (used,), (statement,) = parse_statements(one.use), parse_statements(one.text)
        session.catalog.current = ObjectPath()
        session.catalog.current = database_named(session.state, used.node.name)  # type: ignore[attr-defined]
        name = getattr(statement.node, "name", None) or statement.node.table.name  # type: ignore[attr-defined]
        return session.catalog.qualified(str(name.text))
    except (PenstockError, AttributeError, ValueError):
        return None


def _unloadable(what: str, error: PenstockError) -> PenstockError:
    return PenstockError(
        "CLI-6207",
        f"{what} of the stored catalog is not there: {error.code}: {error.message}",
        hint="create it again, or mend what the error names and start the server again; it stays stored",
        kind=Kind.EXTERNAL,
        sqlstate="58030",
    )


def _unreadable(why: str) -> PenstockError:
    return PenstockError(
        "SQL-1320",
        "the catalog in the state of the server cannot be read",
        detail=why,
        hint=f"restore {CATALOG} from a copy, or move it away to begin with an empty catalog",
        kind=Kind.EXTERNAL,
        sqlstate="58030",
    )
