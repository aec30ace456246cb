"""A catalog of Iceberg tables as one of ours. Its databases and tables are looked up when one of its names is
used.
"""

from __future__ import annotations

from typing import Any

from penstock.catalog.connectors.iceberg import ICEBERG_TYPE
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import from_arrow, to_arrow
from penstock.engine.connectors.iceberg.iceberg_table import arrow_schema, opened_catalog, refused

_MISSING = ("NoSuchTableError", "NoSuchNamespaceError")


class IcebergCatalog:
    """Tables of one Iceberg catalog; databases are its namespaces of one level. Raises DAT-53xx."""

    system = "Iceberg"

    def __init__(self, options: dict[str, str]) -> None:
        self.default_database = options.get("default-database", "default")
        self.name = options.get("warehouse", options.get("uri", ICEBERG_TYPE))
        self._options = {
            key: value for key, value in options.items() if key not in ("type", "default-database")
        }
        self._opened: Any = None

    def databases(self) -> list[str]:
        return [".".join(parts) for parts in self._ask(lambda catalog: catalog.list_namespaces(), [])]

    def tables(self, database: str) -> list[str]:
        name = self._real(database)
        return [parts[-1] for parts in self._ask(lambda catalog: catalog.list_tables(name), [])]

    def table(self, full_name: str, database: str, name: str) -> CatalogTable | None:
        # the exact name first: one request in the usual case
        there = self._ask(lambda catalog: catalog.load_table((database, name)), None)
        if there is None:
            database = self._real(database)
            spelled = next((known for known in self.tables(database) if known.lower() == name.lower()), None)
            if spelled is None:
                return None
            name = spelled
            there = self._ask(lambda catalog: catalog.load_table((database, name)), None)
        return None if there is None else self._table(full_name, f"{database}.{name}", there)

    def create_table(self, table: CatalogTable) -> None:
        """Create a table. DAT-5304 where the catalog refuses it."""
        from penstock.engine.connectors.iceberg.target import create_iceberg_table

        self._ask(lambda catalog: create_iceberg_table(table, catalog), None)

    def drop_table(self, database: str, name: str) -> None:
        """Drop a table; its files stay."""
        self._ask(lambda catalog: catalog.drop_table((self._real(database), name)), None)

    def options_of(self, database: str, name: str) -> dict[str, str]:
        """Return the options of a table of this catalog."""
        return {"connector": ICEBERG_TYPE, "table-name": f"{database}.{name}", **self._options}

    def _table(self, full_name: str, name: str, there: Any) -> CatalogTable:
        schema = there.schema()
        arrow = arrow_schema(there)
        fields = tuple(Field(field.name, from_arrow(field.type), field.nullable) for field in arrow)
        for field in fields:
            to_arrow(field.type)
        key = tuple(schema.find_column_name(number) for number in schema.identifier_field_ids)
        database, _, table = name.rpartition(".")
        return CatalogTable(
            full_name,
            Schema(fields),
            Schema(fields),
            self.options_of(database, table),
            # rows are replaced by the columns that the table says identify them
            primary_key=key,
        )

    def _real(self, database: str) -> str:
        """The name of a database in the catalog's spelling."""
        return next((name for name in self.databases() if name.lower() == database.lower()), database)

    def _ask(self, ask: Any, missing: Any) -> Any:
        """Return the catalog's answer, or ``missing`` where a name does not exist."""
        if self._opened is None:
            self._opened = opened_catalog(self._options)
        try:
            return ask(self._opened)
        except PenstockError:
            raise
        except Exception as error:  # the library's own classes
            if type(error).__name__ in _MISSING:
                return missing
            raise refused(f"the Iceberg catalog {self.name}", "read", error) from error
