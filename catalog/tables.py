"""The objects of a catalog: tables, views and materialized views, and the path (catalog, database) of
each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import DataType

# The names of Flink.
DEFAULT_CATALOG = "default_catalog"
DEFAULT_DATABASE = "default_database"


@dataclass(frozen=True)
class ObjectPath:
    """A database of a catalog; both folded to lower case."""

    catalog: str = DEFAULT_CATALOG
    database: str = DEFAULT_DATABASE

    @classmethod
    def of(cls, full_name: str) -> ObjectPath:
        """Return the namespace of the relation of a full name."""
        parts = full_name.lower().split(".")
        if len(parts) == 3:
            return cls(parts[0], parts[1])
        # One part or two: the catalog, and perhaps the database, is the default one.
        return cls(database=parts[0]) if len(parts) == 2 else cls()

    def name_of(self, name: str) -> str:
        """Return the full name of what is called ``name`` here: bare in the default database, else with as
        much before it as it needs.
        """
        # Short names for the default catalog and database, so that what a user writes there is the full name.
        if self.catalog != DEFAULT_CATALOG:
            return f"{self.catalog}.{self.database}.{name}"
        return name if self.database == DEFAULT_DATABASE else f"{self.database}.{name}"

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}"


class BoundExpression(Protocol):
    """An expression as the planner binds it: the catalog carries it and reads no more of it than this."""

    @property
    def type(self) -> DataType: ...

    @property
    def nullable(self) -> bool: ...


@dataclass(frozen=True)
class MetadataColumn:
    """A column the connector fills from its own facts; ``key`` is the connector's name for it."""

    name: str
    key: str
    # VIRTUAL: read from the source, never written to a sink.
    virtual: bool = False


@dataclass(frozen=True)
class ComputedColumn:
    """``name AS expression``; the expression reads ``Table.source_schema`` positions; ``text`` is what the
    user wrote.
    """

    name: str
    expression: BoundExpression
    text: str


@dataclass(frozen=True)
class WatermarkRule:
    """``WATERMARK FOR column AS expression``; the expression reads ``Table.schema`` positions."""

    column: str
    expression: BoundExpression
    text: str


@dataclass(frozen=True)
class CatalogTable:
    """A table: its connector and options, and the schema of its rows.

    ``source_schema`` is the connector's: physical and metadata columns. ``schema`` is what queries
    see: all columns in declared order, with the event-time role on the watermark column. ``options`` hold the
    WITH clause, keys folded to lower case.
    """

    name: str
    source_schema: Schema
    schema: Schema
    # A dictionary has no hash: equal tables have equal hashes without it.
    options: dict[str, str] = field(default_factory=dict, hash=False)
    metadata: tuple[MetadataColumn, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()
    watermark: WatermarkRule | None = None
    primary_key: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    temporary: bool = False
    comment: str | None = None

    @property
    def connector(self) -> str:
        """The connector's name, e.g. ``filesystem``."""
        return self.options.get("connector", "")

    @property
    def physical_fields(self) -> tuple[Field, ...]:
        """The columns a sink needs: not computed and not virtual metadata."""
        hidden = {column.name for column in self.metadata if column.virtual}
        return tuple(f for f in self.source_schema if f.name not in hidden)


@dataclass(frozen=True)
class InferredFiles:
    """The columns of files that no table declares. ``options``: what a WITH clause must add to read them;
    ``basis``: what the columns were inferred from, for people.
    """

    fields: tuple[Field, ...]
    partitioned_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    basis: str = ""


class FileColumns(Protocol):
    """Infers tables of files. The catalog carries it, as it knows no files itself."""

    def format(self, path: str) -> str:
        """Return the format of the files of a path. Raises DAT-41xx where none is to be found."""

    def columns(self, options: Mapping[str, str]) -> InferredFiles:
        """Return the columns of a filesystem table with these options. Raises DAT-4xxx."""


@dataclass(frozen=True)
class MaterializedView(CatalogTable):
    """A table that a job keeps equal to a query. The query is stored as text and read from ``path``. Its
    primary key identifies a row of the query's result.
    """

    query: str = ""
    path: ObjectPath = field(default_factory=ObjectPath)


@dataclass(frozen=True)
class View:
    """A named query. It is stored as text and bound at each use; its names are resolved from ``path``."""

    name: str
    query: str
    schema: Schema
    temporary: bool = False
    path: ObjectPath = field(default_factory=ObjectPath)
