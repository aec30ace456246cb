"""Opening a Delta table: its library, its object store, the features that penstock reads and writes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from penstock.catalog.connectors.delta import STORAGE, instant
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.secrets import redact_url
from penstock.catalog.tables import CatalogTable

# features that change how data files are read, and that our reader has
_READ = frozenset(
    {
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "deletionVectors",
        "columnMapping",
        "appendOnly",
    }
)
# what the library prints beside its sentence: its stack, and what it holds
_FRAMES = re.compile(r"\n\s+0: ")
_DUMP = re.compile(r": \w+ \{ .*")
_LOG_GONE = re.compile(r"not found\b.*/_delta_log/", re.IGNORECASE)
_UNSUPPORTED = re.compile(r"Unsupported: Feature '(\w+)'")
# its versions are those that a catalog names: the log alone may have others
_OF_A_CATALOG = re.compile(r"catalog-managed")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# what object stores say of a failure that may pass; the library's own errors are "Generic DeltaTable error"
_STORE = re.compile(
    r"Generic (?!DeltaTable)\w+ error|error sending request|timed out|connection", re.IGNORECASE
)


def library() -> Any:
    """Return the module deltalake. DAT-5300 when it is not installed."""
    # heavy: 130 MB on disk, 0.2 s; only programs that use a Delta table load it
    try:
        import deltalake
    except ImportError as error:
        raise PenstockError(
            "DAT-5300",
            "the connector delta needs deltalake",
            hint="pip install 'penstock[delta]'",
            kind=Kind.EXTERNAL,
        ) from error
    return deltalake


def path_of(table: CatalogTable) -> str:
    """Return the table's path or URL."""
    return table.options["table-path"].rstrip("/") or "/"


def storage_options(table: CatalogTable) -> dict[str, str]:
    """Return the settings of the object store."""
    return {
        key.removeprefix(STORAGE): value for key, value in table.options.items() if key.startswith(STORAGE)
    }


def opened(table: CatalogTable, version: int | None = None) -> Any:
    """Return the library's table at a version, the newest without one. DAT-5301 when there is none, DAT-5302
    when that version is not there, DAT-5303 and 5304 when it cannot be read.
    """
    deltalake = library()
    try:
        return deltalake.DeltaTable(
            path_of(table), version=version, storage_options=storage_options(table) or None
        )
    except Exception as error:  # the library's own classes, and OSError
        raise _not_opened(table, version, error) from error


def _not_opened(table: CatalogTable, version: int | None, error: Exception) -> PenstockError:
    name = redact_url(path_of(table))
    if type(error).__name__ == "TableNotFoundError":
        return PenstockError(
            "DAT-5301",
            f"there is no Delta table at {name}",
            hint="correct 'table-path'; an INSERT into the table creates it",
            kind=Kind.EXTERNAL,
        )
    if version is not None and re.search(r"version|LogSegment", str(error), re.IGNORECASE):
        return PenstockError(
            "DAT-5302",
            f"the Delta table at {name} has no version {version} that can be read",
            detail=words_of(error),
            hint="the log may be cleaned up; leave 'scan.version' out for the newest",
            kind=Kind.EXTERNAL,
        )
    return refused(table, "opened", error)


def opened_at(table: CatalogTable, moment: str) -> Any:
    """Return the library's table as it was at a moment. DAT-5302."""
    found = opened(table)
    try:
        found.load_as_version(instant(moment))
    except Exception as error:  # the library's own classes
        raise no_version_of(table, moment, words_of(error)) from error
    return found


def no_version_of(table: CatalogTable, moment: str, detail: str) -> PenstockError:
    """Return the error for a moment that a table has no version of."""
    return PenstockError(
        "DAT-5302",
        f"the Delta table at {redact_url(path_of(table))} has no version of {moment}",
        detail=detail,
        hint="give a later time: its first version may be younger, or cleaned up",
        kind=Kind.EXTERNAL,
    )


def refused(table: CatalogTable, what: str, error: Exception) -> PenstockError:
    """Return a failure of the library as ours: DAT-5303 of the store, which may pass, else DAT-5304."""
    name, words = redact_url(path_of(table)), words_of(error)
    if feature := _UNSUPPORTED.search(words):
        return unsupported(f"the Delta table at {name}", "read", feature[1])
    if _OF_A_CATALOG.search(words):
        return unsupported(f"the Delta table at {name}", "read", "catalogManaged")
    if _LOG_GONE.search(words):
        return PenstockError(
            "DAT-5301",
            f"the Delta table at {name} cannot be {what}: a file of its log is gone",
            detail=words,
            hint="put its directory _delta_log back; a job that has read or written it resumes then",
            kind=Kind.EXTERNAL,
            sqlstate="58000",
        )
    if isinstance(error, OSError) or _STORE.search(words):
        return PenstockError(
            "DAT-5303",
            f"the Delta table at {name} cannot be {what}: its store failed",
            detail=words,
            hint="check the path, the storage.* options and that the store is up",
            kind=Kind.EXTERNAL,
            retriable=True,
            sqlstate="58000",
        )
    return PenstockError(
        "DAT-5304",
        f"the Delta table at {name} cannot be {what}",
        detail=words,
        hint="the detail says why: change the rows, the query or the table"
        if what == "written"
        else "correct 'table-path'; where its log is damaged, restore the table's directory",
        kind=Kind.EXTERNAL,
        sqlstate="58000",
    )


def words_of(error: Exception) -> str:
    """Return an error's text on one line, without colours."""
    text = _FRAMES.split(_COLOURS.sub("", str(error)).replace("↳", ""), maxsplit=1)[0]
    return _DUMP.sub(": ..", " ".join(text.split()))[:300]


def check_readable(table: CatalogTable, found: Any) -> None:
    """Refuse a table whose data files need a feature that our reader has not. DAT-5305."""
    check_features(path_of(table), found.protocol().reader_features or ())


def check_features(path: str, features: Iterable[str]) -> None:
    """Refuse features that change how data files are read, and that our reader has not. DAT-5305."""
    if unknown := sorted(set(features) - _READ):
        raise unsupported(f"the Delta table at {redact_url(path)}", "read", ", ".join(unknown))


def unsupported(where: str, verb: str, features: str) -> PenstockError:
    """Return the error of a table that has features which penstock cannot read, or cannot write. DAT-5305."""
    return PenstockError(
        "DAT-5305",
        f"{where} has features that penstock cannot {verb}: {features}",
        hint="write its rows to a table without them, such as CREATE TABLE .. AS SELECT in Spark"
        if verb == "read"
        else "write to a table without them; ALTER TABLE .. DROP FEATURE in Spark takes one out",
        kind=Kind.EXTERNAL,
        sqlstate="0A000",
    )


def arrow_schema(found: Any) -> pa.Schema:
    """Return the table's columns."""
    return pa.schema(found.schema().to_arrow())


def partition_columns(found: Any) -> tuple[str, ...]:
    """Return the columns that are in the paths of data files, and not in the files."""
    return tuple(found.metadata().partition_columns)


class TableStore:
    """The files of a table. ``path`` is that of a file for ``filesystem``."""

    def __init__(self, table: CatalogTable) -> None:
        path = path_of(table)
        parts = urlsplit(path)
        local = "://" not in path or parts.scheme == "file"
        self._root = f"{parts.path if '://' in path else path}/" if local else ""
        if local:
            # Arrow maps local files into memory
            self.filesystem: pafs.FileSystem = pafs.LocalFileSystem()
            return
        library()
        from deltalake.fs import DeltaStorageHandler

        self.filesystem = pafs.PyFileSystem(DeltaStorageHandler(path, storage_options(table)))

    def path(self, relative: str) -> str:
        """Return a file's path for ``filesystem``."""
        return self._root + relative
