"""Catalogs and their databases, compared without case; and the interface of a catalog of another system."""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import Protocol, cast

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.system_tables import SYSTEM
from penstock.catalog.tables import DEFAULT_CATALOG, DEFAULT_DATABASE, CatalogTable, ObjectPath


class ExternalCatalog(Protocol):
    """A catalog whose databases and tables are of another system. Names are compared without case."""

    system: str
    name: str  # of the catalog in that system
    default_database: str

    def databases(self) -> list[str]:
        """Return the names of its databases."""

    def tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database, none for one that is not there."""

    def table(self, full_name: str, database: str, name: str) -> CatalogTable | None:
        """Return a table under its full name here, ``None`` when there is none."""


class WritableCatalog(ExternalCatalog, Protocol):
    """An external catalog in which tables are created and dropped from here."""

    def options_of(self, database: str, name: str) -> dict[str, str]:
        """Return the options of a table that it has or will have."""

    def create_table(self, table: CatalogTable) -> None:
        """Create a table with these options."""

    def drop_table(self, database: str, name: str) -> None:
        """Drop a table that is there."""


@dataclasses.dataclass
class Databases:
    """The databases of each catalog, and the options each catalog was created with, in the order they were
    created.

    Of an external catalog (``external``) ``by_catalog`` has no databases: the catalog itself is asked each
    time.
    """

    # All names are in lower case.
    by_catalog: dict[str, list[str]] = field(default_factory=lambda: {DEFAULT_CATALOG: [DEFAULT_DATABASE]})
    # The WITH clause of CREATE CATALOG, from which the catalog on disk writes that statement again.
    options: dict[str, dict[str, str]] = field(default_factory=lambda: {DEFAULT_CATALOG: {"type": "memory"}})
    external: dict[str, ExternalCatalog] = field(default_factory=dict)

    def require_catalog(self, name: str, span: Span | None = None) -> str:
        """Return a catalog's folded name; raise SQL-1351 when there is none."""
        if name.lower() not in self.by_catalog:
            hint = did_you_mean(name, self.by_catalog, others=True)
            raise PenstockError(
                "SQL-1351", f'catalog "{name}" does not exist', span=span, hint=hint, sqlstate="3D000"
            )
        return name.lower()

    def of(self, catalog: str) -> list[str]:
        """Return the databases of a catalog, by its folded name."""
        external = self.external.get(catalog)
        if external is not None:
            return [name.lower() for name in external.databases()]
        names = self.by_catalog[catalog]
        # the built-in database is stored nowhere; one of a user may have its name in an old catalog file
        return [*names, SYSTEM] if catalog == DEFAULT_CATALOG and SYSTEM not in names else names

    def default_of(self, catalog: str) -> ObjectPath:
        """Return the database USE CATALOG leads to; an external catalog is not asked for it."""
        external = self.external.get(catalog)
        return (
            ObjectPath(catalog)
            if external is None
            else ObjectPath(catalog, external.default_database.lower())
        )

    def require(self, path: ObjectPath, span: Span | None = None) -> ObjectPath:
        """Return a path; raise SQL-1351 when its catalog or database does not exist."""
        # The catalog first: its error names the nearest catalog and not a database.
        databases = self.of(self.require_catalog(path.catalog, span))
        if path.database not in databases:
            hint = did_you_mean(path.database, databases, others=True)
            message = f'database "{path.database}" does not exist in {path.catalog}'
            raise PenstockError("SQL-1351", message, span=span, hint=hint, sqlstate="3D000")
        return path

    def create_catalog(
        self, name: str, options: dict[str, str], if_not_exists: bool, span: Span | None
    ) -> bool:
        """Add a catalog with its default database and return whether it was added; raise SQL-1352 when the
        name is taken.
        """
        if name.lower() in self.by_catalog:
            return _reject_existing("catalog", name, if_not_exists, span)
        # A new catalog has one database, as in Flink: USE CATALOG leads to it.
        self.by_catalog[name.lower()] = [DEFAULT_DATABASE]
        self.options[name.lower()] = options
        return True

    def create(self, path: ObjectPath, if_not_exists: bool, span: Span | None) -> bool:
        """Add a database and return whether it was added; raise SQL-1352 when the name is taken, SQL-1358 in
        an external catalog.
        """
        # Before the lookup: of an external catalog by_catalog has no databases to compare with.
        self.refuse_external(path, f"database {path.database}", span)
        databases = self.by_catalog[self.require_catalog(path.catalog, span)]
        if path.database in databases:
            return _reject_existing("database", path.database, if_not_exists, span)
        databases.append(path.database)
        return True

    def add_external(
        self,
        name: str,
        options: dict[str, str],
        catalog: ExternalCatalog,
        if_not_exists: bool,
        span: Span | None,
    ) -> bool:
        """Add a catalog of another system and return whether it was added; raise SQL-1352 when the name is
        taken.
        """
        if not self.create_catalog(name, options, if_not_exists, span):
            return False
        # Its databases are asked for each time, so that changes there are seen.
        self.by_catalog[name.lower()] = []
        self.external[name.lower()] = catalog
        return True

    def writable(self, path: ObjectPath) -> WritableCatalog | None:
        """Return the external catalog of a path if tables can be created in it from here."""
        external = self.external.get(path.catalog)
        if external is None or not hasattr(external, "create_table"):
            return None
        return cast(WritableCatalog, external)

    def refuse_external(self, path: ObjectPath, what: str, span: Span | None) -> None:
        """Raise SQL-1358 for a change of what is in an external catalog."""
        # Only definitions are refused: an INSERT into such a table does not come here.
        external = self.external.get(path.catalog)
        if external is not None:
            system = external.system
            message = (
                f"{what} cannot be created, changed or dropped here: catalog {path.catalog} belongs to "
                f"{system}"
            )
            hint = (
                f"run the statement in {system}, where the catalog is called {external.name}: the change is "
                "seen here at once"
            )
            raise PenstockError("SQL-1358", message, span=span, hint=hint, sqlstate="0A000")


def _reject_existing(noun: str, name: str, if_not_exists: bool, span: Span | None) -> bool:
    # IF NOT EXISTS of what exists changes nothing: its options stay as they were.
    if if_not_exists:
        return False
    hint = f"write CREATE {noun.upper()} IF NOT EXISTS {name}"
    raise PenstockError("SQL-1352", f'{noun} "{name}" exists already', span=span, hint=hint, sqlstate="42P04")
