"""Opening an Iceberg table: its library, its catalog, its columns, and errors in words of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.catalog.connectors.iceberg import CATALOG_SETTING
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.secrets import redact_url
from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.iceberg.stored_types import is_uuid

# errors that may pass: the catalog or the store is down, or another commit has a lock
_PASSING = (
    "OperationalError",
    "ServerError",
    "ServiceUnavailableError",
    "TooManyRequestsError",
    "CommitStateUnknownException",
    "ConnectionError",
    "ConnectTimeout",
    "ReadTimeout",
)
# a new catalog of SQL has two tables, and each may be made by another program just before ours
_OPENINGS = 4

# equality deletes where rows are replaced, tables of format version 3 that are written, types of columns,
# data files of Avro
_UNSUPPORTED = re.compile(
    r"not yet support|Cannot write manifest|Unsupported field type|not a valid FormatVersion|format-version"
    r"|Unsupported file format"
)


def library() -> Any:
    """Return the module pyiceberg.catalog. DAT-5300 when it is not installed."""
    # heavy: half a second of CPU; only programs that use an Iceberg table load it
    try:
        from pyiceberg import catalog
    except ImportError as error:
        raise PenstockError(
            "DAT-5300",
            "the connector iceberg needs pyiceberg",
            hint="pip install 'penstock[iceberg]'",
            kind=Kind.EXTERNAL,
        ) from error
    return catalog


def opened_catalog(options: Mapping[str, str]) -> Any:
    """Return the library's catalog for the options of a table or of a catalog. DAT-5303, DAT-5304."""
    properties = {
        key.removeprefix(CATALOG_SETTING): value
        for key, value in options.items()
        if key.startswith(CATALOG_SETTING)
    }
    named = {"type": "catalog-type", "uri": "uri", "warehouse": "warehouse"}
    properties |= {name: options[key] for name, key in named.items() if key in options}
    for tries_left in reversed(range(_OPENINGS)):
        try:
            return library().load_catalog("penstock", **properties)
        except PenstockError:
            raise
        except Exception as error:  # the library's own classes
            if not (tries_left and _made_by_another(error)):
                raise refused(_catalog_name(options), "opened", error) from error
    raise AssertionError("a catalog is opened, or its failure is raised")


def _made_by_another(error: Exception) -> bool:
    """Return whether another program has made the tables of a SQL catalog since the library looked for
    them.
    """
    return any(words in str(error) for words in ("already exists", "duplicate key", "database is locked"))


def _catalog_name(options: Mapping[str, str]) -> str:
    return f"the Iceberg catalog {redact_url(options.get('uri', options.get('catalog-type', '')))}"


def where(table: CatalogTable) -> str:
    """Return what an error calls a table."""
    return f"the Iceberg table {table.options['table-name']}"


def opened(table: CatalogTable, catalog: Any) -> Any:
    """Return the library's table. DAT-5301 when there is none."""
    try:
        found = catalog.load_table(table.options["table-name"])
    except Exception as error:
        raise _not_there(table, error) or refused(where(table), "opened", error) from error
    # In this copy of the metadata alone: the library would add an epoch again after another one's commit.
    found.metadata.properties["commit.retry.num-retries"] = "0"
    return found


def _not_there(table: CatalogTable, error: Exception) -> PenstockError | None:
    if type(error).__name__ not in ("NoSuchTableError", "NoSuchNamespaceError"):
        return None
    return PenstockError(
        "DAT-5301",
        f"there is no Iceberg table {table.options['table-name']} in its catalog",
        hint="correct 'table-name'; an INSERT into the table creates it",
        kind=Kind.EXTERNAL,
    )


def refreshed(table: CatalogTable, found: Any) -> None:
    """Take over what others have committed. DAT-5303, DAT-5304."""
    try:
        found.refresh()
    except Exception as error:  # the library's own classes
        raise _not_there(table, error) or refused(where(table), "read", error) from error
    found.metadata.properties["commit.retry.num-retries"] = "0"


def refused(name: str, what: str, error: Exception) -> PenstockError:
    """Return a failure of the library as ours: DAT-5303 of the catalog or store, which may pass, else
    DAT-5304.
    """
    words = " ".join(str(error).split())[:300]
    if type(error).__name__ == "NotInstalledError":
        return PenstockError(
            "DAT-5300",
            f"{name} cannot be {what} without another library",
            detail=words,
            hint="pip install 'penstock[iceberg]'",
            kind=Kind.EXTERNAL,
        )
    if _UNSUPPORTED.search(words):
        return PenstockError(
            "DAT-5305",
            f"{name} cannot be {what}: it has a feature that its library has not",
            detail=words,
            hint="rewrite it without the feature: rewrite_data_files in Spark applies delete files; "
            "'format-version' = '2'",
            kind=Kind.EXTERNAL,
            sqlstate="0A000",
        )
    if isinstance(error, FileNotFoundError):
        return PenstockError(
            "DAT-5310",
            f"{name} cannot be {what}: a file of its metadata is gone",
            detail=words,
            hint="restore the table's directory, or drop the table: its catalog names a missing file",
            kind=Kind.EXTERNAL,
            sqlstate="58000",
        )
    passes = any(kind.__name__ in _PASSING for kind in type(error).__mro__) or isinstance(error, OSError)
    if passes:
        return PenstockError(
            "DAT-5303",
            f"{name} cannot be {what}: its catalog or store failed",
            detail=words,
            hint="check uri, warehouse and the catalog.* options, and that the catalog is up",
            kind=Kind.EXTERNAL,
            retriable=True,
            sqlstate="58000",
        )
    return PenstockError(
        "DAT-5304",
        f"{name} cannot be {what}",
        detail=f"{type(error).__name__}: {words}",
        hint="the detail says why: change the rows, the query or the table"
        if what == "written"
        else "correct 'catalog-type', 'uri' and 'table-name': another server or file may be there",
        kind=Kind.EXTERNAL,
        sqlstate="58000",
    )


def arrow_schema(found: Any) -> pa.Schema:
    """Return the table's columns as the engine has them."""
    schema = found.schema().as_arrow()
    kinds = (pa.string() if is_uuid(field.type) else field.type for field in schema)
    return pa.schema(
        [pa.field(field.name, kind, field.nullable) for field, kind in zip(schema, kinds, strict=True)]
    )


def partition_columns(found: Any) -> tuple[str, ...]:
    """Return the columns a table is partitioned by, a transform as ``day(ts)``."""
    schema = found.schema()
    names = []
    for field in found.spec().fields:
        column, transform = schema.find_column_name(field.source_id), str(field.transform)
        names.append(column if transform == "identity" else f"{transform}({column})")
    return tuple(names)
