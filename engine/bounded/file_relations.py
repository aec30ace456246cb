"""Which files a relation reads and how a backend may read them itself: text columns by position, cast by SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow.fs as pafs
from sqlglot import exp

from catalog.connectors import file_format, option
from catalog.errors import Kind, PenstockError
from catalog.filesystem_options import split_suffixes
from catalog.names import did_you_mean
from catalog.schema import Field
from catalog.types import STRING, Boolean, DataType, Date, Decimal, Double, Float, String, Timestamp, TimestampLtz, is_integer
from engine.connectors.file_listing import FileListing, FileSplit
from engine.connectors.filesystem_source import csv_dialect, stored_fields
from engine.formats.csv import header_names
from engine.formats.file_task import CsvDialect, FileTask
from planner.bounded_query import Relation
from planner.sql_flavour import Flavour, function, text, when

_PLAIN = (Boolean, Float, Double, Decimal, String, Date, Timestamp, TimestampLtz)
_GLOB = re.compile(r"[*?\[\]{}\\]")
_ZONE = r"[0-9](Z|[+-][0-9]{2}(:?[0-9]{2})?)$"


@dataclass(frozen=True)
class FileGroup:
    """Files whose columns stand in the same order: ``names`` are the columns of each file (csv: by position; else those to be read by name)."""

    paths: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class FileRelation:
    """Files a backend can read by its own means. ``skip_bad``: records that cannot be read are left out instead of failing the query."""

    relation: Relation
    format: str
    groups: tuple[FileGroup, ...]
    dialect: CsvDialect
    skip_bad: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        """The wanted columns."""
        return tuple(self.relation.schema)


def file_relation(relation: Relation) -> FileRelation | None:
    """Return how a backend reads a relation, ``None`` when only penstock's own readers can (odd types, names, codecs, places).

    Raises what the source would raise: DAT-41xx for paths, DAT-4203 for a column that is not there.
    """
    table = relation.table
    if table.connector != "filesystem" or file_format(table) == "arrow":
        return None
    stored = stored_fields(table)
    if not all(field in stored and _readable(field.type) for field in relation.schema):
        return None
    listing = FileListing(table.options["path"], file_format(table))
    if not isinstance(listing.filesystem, pafs.LocalFileSystem):
        return None
    files = [file for file in listing.files() if file.size]
    declared = option(table, "compression")
    if any(_GLOB.search(file.path) or declared not in ("auto", split_suffixes(file.path)[1] or "none") for file in files):
        return None
    dialect = csv_dialect(table) if file_format(table) == "csv" else CsvDialect()
    groups = _csv_groups(relation, listing, files, dialect) if file_format(table) == "csv" else _named_groups(relation, files)
    return FileRelation(relation, file_format(table), groups, dialect, option(table, "on-error") != "fail")


def _readable(kind: DataType) -> bool:
    return isinstance(kind, _PLAIN) or is_integer(kind)


def _named_groups(relation: Relation, files: list[FileSplit]) -> tuple[FileGroup, ...]:
    names = tuple(relation.schema.names)
    return (FileGroup(tuple(file.path for file in files), names),) if files else ()


def _csv_groups(relation: Relation, listing: FileListing, files: list[FileSplit], dialect: CsvDialect) -> tuple[FileGroup, ...]:
    """Files by their header: the wanted columns are found by name in each."""
    declared = stored_fields(relation.table)
    groups: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        task = FileTask(listing.filesystem, file.path, (), declared, split_suffixes(file.path)[1], dialect)
        names = tuple((header_names(task) or ()) if dialect.header else (field.name for field in declared))
        if names:
            groups.setdefault(names, []).append(file.path)
    for names, paths in groups.items():
        for field in relation.schema:
            if field.name.lower() not in (name.lower() for name in names):
                hint = did_you_mean(field.name, names, others=True)
                raise PenstockError("DAT-4203", f"{paths[0]} has no column {field.name}", hint=hint, kind=Kind.EXTERNAL)
    return tuple(FileGroup(tuple(paths), names) for names, paths in groups.items())


def is_text(field: Field, file_format_name: str) -> bool:
    """Return whether a column is read as text and cast by SQL: all of csv, and what json has no value for."""
    return file_format_name == "csv" or isinstance(field.type, Date | Timestamp | TimestampLtz)


def position_name(position: int) -> str:
    """Return what a backend calls a csv column by its position in the file."""
    return f"h{position}"


def typed_select(files: FileRelation, group: FileGroup, source: str, flavour: Flavour) -> str:
    """Return the SELECT over one group's raw relation that gives the wanted columns under their own names and with their types."""
    folded = [name.lower() for name in group.names]

    def raw(field: Field) -> exp.Expr:
        name = position_name(folded.index(field.name.lower())) if files.format == "csv" else field.name
        return exp.column(exp.to_identifier(name, quoted=True), table="x")

    def value(field: Field, safe: bool) -> exp.Expr:
        if files.format == "parquet":
            return exp.Cast(this=raw(field), to=flavour.kind(field.type))
        return _from_text(raw, field, safe, flavour) if is_text(field, files.format) else raw(field)

    items = [exp.alias_(value(field, files.skip_bad), exp.to_identifier(field.name, quoted=True)) for field in files.fields]
    select = exp.select(*items).from_(exp.to_table(source, alias="x"))
    if files.skip_bad:
        for field in files.fields:
            if is_text(field, files.format) and not isinstance(field.type, String):
                bad = exp.And(this=_present(raw(field)), expression=exp.Is(this=value(field, True), expression=exp.null()))
                select = select.where(exp.Not(this=exp.Paren(this=bad)))
    return select.sql(flavour.dialect)


def empty_select(relation: Relation, flavour: Flavour) -> str:
    """Return the SELECT of a relation of no rows."""
    items = [
        exp.alias_(exp.Cast(this=exp.null(), to=flavour.kind(field.type)), exp.to_identifier(field.name, quoted=True)) for field in relation.schema
    ]
    return exp.select(*items).where(exp.false()).sql(flavour.dialect)


def _present(column: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=column, expression=exp.null()))


def _from_text(raw: Callable[[Field], exp.Expr], field: Field, safe: bool, flavour: Flavour) -> exp.Expr:
    """A text column as its type by the rule of penstock's own readers: an instant without zone is UTC."""
    column = raw(field)
    if isinstance(field.type, String):
        return column
    if isinstance(field.type, TimestampLtz):
        zoned = function("regexp_like" if flavour.dialect == "spark" else "regexp_matches", column, text(_ZONE))
        utc = exp.DPipe(this=column.copy(), expression=text("Z"))
        column = when(zoned, column.copy(), utc)
    return flavour.cast(column, STRING, field.type, safe)
