"""The catalog on disk: the statements that make its permanent tables and views, as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from penstock.catalog.catalog import Catalog
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.persistence.durable_file import replace_file
from penstock.catalog.persistence.show_create import (
    create_statement,
    function_statement,
    quoted_name,
    quoted_text,
)
from penstock.catalog.tables import DEFAULT_CATALOG, DEFAULT_DATABASE, MaterializedView, ObjectPath, View

# Of catalog.json: {"format": 1, "statements": [..]}.
# Another number is refused: statements of a later format may mean something else.
FORMAT = 1


class CatalogStore:
    """One file ``catalog.json`` in a directory; the session runs its statements to fill a catalog.
    Temporary tables and views are not stored.
    """

    def __init__(self, directory: Path, catalog: str = DEFAULT_CATALOG) -> None:
        self.catalog = catalog
        self.path = directory / "catalog.json"

    def load(self) -> list[str]:
        """Return the stored statements in the order they must be run, none when there is no file. Raises
        SQL-1320 for a file that is no catalog.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            # strerror alone: str() of an OSError repeats the path that the message has already.
            raise self._unreadable(getattr(error, "strerror", None) or str(error)) from error
        try:
            content = json.loads(text)
        except ValueError as error:
            raise self._unreadable(str(error)) from error
        # A file that was edited by hand is reported, never read in part.
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise self._unreadable(f"it is not of format {FORMAT}")
        statements = content.get("statements")
        if not isinstance(statements, list) or not all(
            isinstance(statement, str) for statement in statements
        ):
            raise self._unreadable("it holds no list of statements")
        return statements

    def save(self, catalog: Catalog) -> None:
        """Write the permanent tables and views, whole or not at all: a new file beside the old one,
        synced, then renamed over it.
        """
        # one moment of the catalog, whatever other sessions change
        with catalog.lock:
            statements = catalog_statements(catalog, self.catalog)
        text = json.dumps({"format": FORMAT, "statements": statements}, ensure_ascii=False, indent=1) + "\n"
        try:
            replace_file(self.path, text)
        except OSError as error:
            message = f"the catalog cannot be written to {self.path}"
            raise PenstockError(
                "SQL-1321", message, detail=str(error), kind=Kind.EXTERNAL, sqlstate="58030"
            ) from error

    def _unreadable(self, why: str) -> PenstockError:
        message = f"the catalog file {self.path} cannot be read"
        hint = "restore it from a copy, or move it away to begin with an empty catalog"
        return PenstockError("SQL-1320", message, detail=why, hint=hint, kind=Kind.EXTERNAL, sqlstate="58030")


def catalog_statements(catalog: Catalog, name_of_catalog: str = DEFAULT_CATALOG) -> list[str]:
    """Return the statements that make a catalog again when names are looked for in its default database.
    They have secrets.
    """
    databases = catalog.databases
    # Databases before the tables in them; the default one exists from the start.
    statements = [
        f"CREATE DATABASE {quoted_name(name)}"
        for name in databases.by_catalog[name_of_catalog]
        if name != DEFAULT_DATABASE
    ]
    # The default catalog's file also has what belongs to no catalog: other catalogs and functions.
    if name_of_catalog == DEFAULT_CATALOG:
        others = [name for name in databases.by_catalog if name != DEFAULT_CATALOG]
        # Other catalogs come first: a view of this one may read their tables.
        statements = [
            f"CREATE CATALOG {quoted_name(name)} WITH ({_options(databases.options[name])})"
            for name in others
        ] + statements
        statements += map(function_statement, catalog.functions.permanent())
    # The current database while the statements run; USE changes it.
    used = ObjectPath(name_of_catalog)
    # In the order of creation: a view comes after the tables it reads.
    for relation in catalog.permanent():
        path = ObjectPath.of(relation.name)
        if path.catalog != name_of_catalog:
            continue
        # The names in a view's text are looked up from the database it was created in.
        wanted = relation.path if isinstance(relation, View | MaterializedView) else path
        if wanted != used:
            statements.append(f"USE {_written(wanted, name_of_catalog)}")
            used = wanted
        # As seen from the database in use: a view may be created in one and belong to another.
        bare = relation.name.rpartition(".")[2]
        where = (
            "" if wanted == path else f"{path.database}." if wanted.catalog == name_of_catalog else f"{path}."
        )
        # With its secrets: a masked password could not connect after a restart.
        statements.append(create_statement(replace(relation, name=where + bare), redact=False))
    return statements


def _written(path: ObjectPath, name_of_catalog: str) -> str:
    # USE database, or USE catalog.database for a view whose query was written in another catalog.
    inside = path.catalog == name_of_catalog
    return (
        quoted_name(path.database) if inside else f"{quoted_name(path.catalog)}.{quoted_name(path.database)}"
    )


def _options(options: dict[str, str]) -> str:
    return ", ".join(f"{quoted_text(key)} = {quoted_text(value)}" for key, value in options.items())
