"""The interface of catalogs of other systems: what is in them is asked for when a name of theirs is used."""

from __future__ import annotations

from typing import Protocol

from penstock.catalog.tables import CatalogTable


class ExternalCatalog(Protocol):
    """A catalog whose databases and tables another system keeps. Names are compared without case."""

    system: str
    default_database: str

    def databases(self) -> list[str]:
        """Return the names of its databases."""

    def tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database, none for one that is not there."""

    def table(self, full_name: str, database: str, name: str) -> CatalogTable | None:
        """Return a table under its full name here, ``None`` when there is none."""
