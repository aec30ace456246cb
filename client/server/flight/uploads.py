"""Uploads: rows of a client into a table of its session, or appended to a table by an INSERT."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.catalog.catalog import Relation
from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.client.remote.abandonable_call import AbandonableCall
from penstock.client.results.result import Result
from penstock.client.server.flight.client_sessions import ClientSession
from penstock.client.server.flight.limits import FlightLimits

_NUMBERS = itertools.count(1)
_APPEND, _REPLACE = 2, 3  # TableExistsOption
_FAIL_MISSING = 2  # TableNotExistOption


@dataclass(frozen=True)
class Upload:
    """One upload: where to, and the batches as they come. ``is_over``: whether the client is gone."""

    command: Any
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    is_over: Callable[[], bool]

    @property
    def name(self) -> str:
        """The table's name as the client gave it, with its catalog and database."""
        parts = (
            self.command.catalog if self.command.HasField("catalog") else "",
            self.command.schema if self.command.HasField("schema") else "",
            self.command.table,
        )
        return ".".join(part for part in parts if part)

    @property
    def appends(self) -> bool:
        """Whether a table that exists gets the rows."""
        return self.command.table_definition_options.if_exists == _APPEND

    @property
    def replaces(self) -> bool:
        """Whether a table that exists is replaced."""
        return self.command.table_definition_options.if_exists == _REPLACE


def ingest(session: ClientSession, upload: Upload, limits: FlightLimits) -> int:
    """Write an upload and return its number of rows. CLI-6234 for what our tables do not allow, CLI-6235 for
    an upload that is too large.
    """
    existing = session.engine.catalog.find(upload.name)
    options = upload.command.table_definition_options
    if existing is None and options.if_not_exist == _FAIL_MISSING:
        raise _refused(f'table "{upload.name}" does not exist', "create it first", "42P01")
    if existing is not None and not upload.appends and not upload.replaces:
        raise _refused(f'"{upload.name}" exists already', "append to it, or choose another name", "42P07")
    if upload.command.temporary or _is_registered(existing):
        return _into_session(session, upload, existing, limits)
    if existing is None:
        hint = "CREATE TABLE .. WITH ('connector' = ..) first and append, or upload with temporary=True"
        raise _refused(
            f'table "{upload.name}" does not exist, and an upload names no connector', hint, "42P01"
        )
    if upload.replaces:
        hint = "append to it, or DROP it and CREATE it anew"
        raise _refused(
            f'table "{upload.name}" is not replaced: its rows are in another system', hint, "0A000"
        )
    return _append(session, upload)


def _into_session(
    session: ClientSession, upload: Upload, existing: Relation | None, limits: FlightLimits
) -> int:
    """Make the rows a registered table, which the session has in memory."""
    if existing is not None and not _is_registered(existing):
        hint = "choose another name for the rows of this session"
        raise _refused(f'"{upload.name}" is a table that was created', hint, "42P07")
    engine, size, earlier = session.engine, 0, None
    if upload.appends and isinstance(existing, CatalogTable):
        earlier = engine.state.registered.source(existing.options["name"]).table
        size = 0 if earlier is None else earlier.nbytes
    batches = list(limited(upload.batches, limits.upload_bytes - size))
    rows = table = pa.Table.from_batches(batches, upload.schema)
    if earlier is not None:
        table = pa.concat_tables([earlier, rows.select(earlier.column_names).cast(earlier.schema)])
    engine.register(upload.name, table)
    return rows.num_rows


def _append(session: ClientSession, upload: Upload) -> int:
    """Insert the rows into a table, as they come, and wait for the end of the job."""
    engine = session.engine
    staged = f"upload_{next(_NUMBERS)}"
    reader = pa.RecordBatchReader.from_batches(upload.schema, upload.batches)
    columns = ", ".join(_quoted(name) for name in upload.schema.names)
    target = ".".join(map(_quoted, upload.name.split(".")))
    sql = f"INSERT INTO {target} ({columns}) SELECT {columns} FROM {_quoted(staged)}"
    engine.register(staged, reader, stream=True)
    try:
        call = AbandonableCall(partial(engine.execute, sql), Result.close, "penstock-flight-upload")
        return call.result(upload.is_over).rowcount
    finally:
        engine.unregister(staged)


def _is_registered(relation: Relation | None) -> bool:
    return isinstance(relation, CatalogTable) and relation.connector == "registered"


def limited(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield batches up to a number of bytes, and refuse what is too large before it is all here: CLI-6235."""
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > most_bytes:
            hint = "write files that a table reads, or append to a table with a connector"
            message = f"an upload into tables of the session has at most {most_bytes:,} bytes more"
            raise PenstockError("CLI-6235", message, hint=hint, sqlstate="53200")
        yield batch


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _refused(message: str, hint: str, sqlstate: str) -> PenstockError:
    return PenstockError("CLI-6234", message, hint=hint, sqlstate=sqlstate)
