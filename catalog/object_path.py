"""The database of a catalog that a relation lives in, and the full names of the relations there."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass

DEFAULT_CATALOG = "default_catalog"
DEFAULT_DATABASE = "default_database"


@dataclass(frozen=True)
class ObjectPath:
    """A database of a catalog; both folded to lower case."""

    catalog: str = DEFAULT_CATALOG
    database: str = DEFAULT_DATABASE

    @classmethod
    def of(cls, full_name: str) -> ObjectPath:
        """Return where the relation of a full name lives."""
        parts = full_name.lower().split(".")
        if len(parts) == 3:
            return cls(parts[0], parts[1])
        return cls(database=parts[0]) if len(parts) == 2 else cls()

    def name_of(self, name: str) -> str:
        """Return the full name of what is called ``name`` here: bare in the default database, else with as
        much before it as it needs.
        """
        if self.catalog != DEFAULT_CATALOG:
            return f"{self.catalog}.{self.database}.{name}"
        return name if self.database == DEFAULT_DATABASE else f"{self.database}.{name}"

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}"
