"""Which files a relation reads and how a backend may read them itself: text columns by position, cast by SQL."""

from __future__ import annotations

import re

import pyarrow.fs as pafs
from sqlglot import exp

from catalog.connectors import file_format, option
from catalog.filesystem_options import split_suffixes
from catalog.frozen import dataclass
from catalog.schema import Field
from catalog.types import STRING, Boolean, DataType, Date, Decimal, Double, Float, String, Timestamp, TimestampLtz, is_integer
from engine.connectors.file_listing import FileListing, FileSplit
from engine.connectors.filesystem_source import check_unchanged, csv_dialect, stored_fields
from engine.formats.csv import header_names, no_such_column
from engine.formats.file_task import CsvDialect, FileTask
from planner.bounded_query import Relation
from planner.sql_flavour import Flavour, function, text, when

_PLAIN = (Boolean, Float, Double, Decimal, String, Date, Timestamp, TimestampLtz)
_GLOB = re.compile(r"[*?\[\]{}\\]")
EMPTY_MARK = "\ue000penstock-empty"
_ZONE = r":[0-9.]+(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"


@dataclass(frozen=True)
class FileGroup:
    """Files whose columns stand in the same order: ``names`` are the columns of each file (csv: by position; else those to be read by name)."""

    paths: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class FileRelation:
    """Files a backend can read by its own means: csv, as text, or parquet."""

    relation: Relation
    format: str
    groups: tuple[FileGroup, ...]
    dialect: CsvDialect

    @property
    def fields(self) -> tuple[Field, ...]:
        """The wanted columns."""
        return tuple(self.relation.schema)


def file_relation(relation: Relation) -> FileRelation | None:
    """Return how a backend reads a relation, ``None`` when only penstock's own readers can (odd types, names, codecs, places).

    What a bad record is, our readers say alone: tables that go on after one are read by them, and json, which backends read too leniently.

    Raises what the source would raise: DAT-41xx for paths, DAT-4203 for a column that is not there.
    """
    table = relation.table
    if table.connector != "filesystem" or file_format(table) not in ("csv", "parquet") or option(table, "on-error") != "fail":
        return None
    if option(table, "source.missing-columns") != "fail":
        return None
    stored = stored_fields(table)
    if not all(field in stored and _readable(field.type) for field in relation.schema):
        return None
    listing = FileListing(table.options["path"], file_format(table))
    if not isinstance(listing.filesystem, pafs.LocalFileSystem):
        return None
    files = [file for file in _files(relation, listing) if file.size]
    declared = option(table, "compression")
    if any(_GLOB.search(file.path) or declared not in ("auto", split_suffixes(file.path)[1] or "none") for file in files):
        return None
    dialect = csv_dialect(table) if file_format(table) == "csv" else CsvDialect()
    groups = _csv_groups(relation, listing, files, dialect) if file_format(table) == "csv" else _named_groups(relation, files)
    return FileRelation(relation, file_format(table), groups, dialect)


def _files(relation: Relation, listing: FileListing) -> list[FileSplit]:
    """The files there are, or those of the relation's splits, which must be as they were listed: DAT-4107."""
    if relation.splits is None:
        return listing.files()
    named = {split.path: split for split in map(FileSplit.parse, relation.splits)}
    for file in named.values():
        check_unchanged(listing, file)
    return sorted(named.values(), key=lambda file: file.path)


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
                raise no_such_column(field, names, paths[0])
    return tuple(FileGroup(tuple(paths), names) for names, paths in groups.items())


def position_name(position: int) -> str:
    """Return what a backend calls a csv column by its position in the file."""
    return f"h{position}"


def typed_select(files: FileRelation, group: FileGroup, source: str, flavour: Flavour) -> str:
    """Return the SELECT over one group's raw relation that gives the wanted columns under their own names and with their types."""
    folded = [name.lower() for name in group.names]

    def raw(field: Field) -> exp.Expr:
        name = position_name(folded.index(field.name.lower())) if files.format == "csv" else field.name
        return exp.column(exp.to_identifier(name, quoted=True), table="x")

    def value(field: Field) -> exp.Expr:
        if files.format == "parquet":
            return exp.Cast(this=raw(field), to=flavour.kind(field.type))
        return _from_text(raw(field), field, flavour)

    items = [exp.alias_(value(field), exp.to_identifier(field.name, quoted=True)) for field in files.fields]
    return exp.select(*items).from_(exp.to_table(source, alias="x")).sql(flavour.dialect)


def empty_select(relation: Relation, flavour: Flavour) -> str:
    """Return the SELECT of a relation of no rows."""
    items = [
        exp.alias_(exp.Cast(this=exp.null(), to=flavour.kind(field.type)), exp.to_identifier(field.name, quoted=True)) for field in relation.schema
    ]
    return exp.select(*items).where(exp.false()).sql(flavour.dialect)


def _from_text(column: exp.Expr, field: Field, flavour: Flavour) -> exp.Expr:
    """A text column as its type by the rule of penstock's own readers: an instant without zone is UTC, a TIMESTAMP with one is refused."""
    if flavour.dialect == "spark":
        column = when(exp.EQ(this=column, expression=text(EMPTY_MARK)), text(""), column.copy())
    if isinstance(field.type, String):
        return column
    if isinstance(field.type, Timestamp | TimestampLtz):
        zoned = function("regexp_like" if flavour.dialect == "spark" else "regexp_matches", column, text(_ZONE))
        utc = exp.DPipe(this=column.copy(), expression=text("Z"))
        refused = exp.DPipe(this=column.copy(), expression=text(" has a zone"))
        column = when(zoned, column.copy(), utc) if isinstance(field.type, TimestampLtz) else when(zoned, refused, column.copy())
    return flavour.cast(column, STRING, field.type, False)
