"""Which files a relation reads and how a backend may read them itself: text columns by position, cast by SQL."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
from sqlglot import exp

from catalog.connectors import file_format, option
from catalog.filesystem_options import split_suffixes
from catalog.frozen import dataclass
from catalog.schema import Field
from catalog.types import STRING, Boolean, DataType, Date, Decimal, Double, Float, String, Timestamp, TimestampLtz, is_integer
from engine.connectors.file_listing import FileListing, FileSplit
from engine.connectors.filesystem_source import check_unchanged, csv_dialect, stored_fields
from engine.formats.columns_there import columns_of, file_schema
from engine.formats.csv import csv_position, header_names
from engine.formats.file_task import CsvDialect, FileTask
from engine.formats.file_types import Fit
from planner.bounded_query import Relation
from planner.sql_flavour import Flavour, function, text, when

_PLAIN = (Boolean, Float, Double, Decimal, String, Date, Timestamp, TimestampLtz)
_MOST_GROUPS = 64  # each is a SELECT of its own in the query's text
_BUCKETS = {"s3": "s3a", "gs": "gs", "gcs": "gs"}
EMPTY_MARK = "\ue000penstock-empty"
_ZONE = r":[0-9.]+(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"


@dataclass(frozen=True)
class FileGroup:
    """Files that are read alike. ``names``: of csv all columns of each file, by position; of parquet the column of each field, by
    its name in the files, ``None`` for one that is NULL."""

    paths: tuple[str, ...]
    names: tuple[str | None, ...]


@dataclass(frozen=True)
class FileRelation:
    """Files a backend can read by its own means: csv, as text, or parquet."""

    relation: Relation
    format: str
    groups: tuple[FileGroup, ...]
    dialect: CsvDialect
    local: bool = True

    @property
    def fields(self) -> tuple[Field, ...]:
        """The wanted columns."""
        return tuple(self.relation.schema)


def file_relation(relation: Relation, *, anywhere: bool = False) -> FileRelation | None:
    """Return how a backend reads a relation, ``None`` when only penstock's own readers can (types that need a rule, names, codecs, places).

    What a bad record is, our readers say alone: tables that go on after one are read by them, and json, which backends read too leniently.

    ``anywhere``: the backend reads object stores and HDFS too; their files have the URLs Hadoop knows them by.
    Raises what the source would raise: DAT-41xx for paths, DAT-4203 for a column that is not there, DAT-4205 for one of another type.
    """
    table = relation.table
    if table.connector != "filesystem" or file_format(table) not in ("csv", "parquet") or option(table, "on-error") != "fail":
        return None
    if option(table, "source.missing-columns") != "fail" and file_format(table) != "parquet":
        return None
    stored = stored_fields(table)
    if not all(field in stored and _readable(field.type) for field in relation.schema):
        return None
    listing = FileListing(table.options["path"], file_format(table))
    place, local = table.options["path"], isinstance(listing.filesystem, pafs.LocalFileSystem)
    if not local and not (anywhere and hadoop_url(place, "")):
        return None
    files = [file for file in _files(relation, listing) if file.size]
    declared = option(table, "compression")
    if any(declared not in ("auto", split_suffixes(file.path)[1] or "none") for file in files):
        return None
    dialect = csv_dialect(table) if file_format(table) == "csv" else CsvDialect()
    groups = _csv_groups(relation, listing, files, dialect) if file_format(table) == "csv" else _parquet_groups(relation, listing, files)
    if groups is None:
        return None
    if not local:
        groups = tuple(replace(group, paths=tuple(hadoop_url(place, path) or "" for path in group.paths)) for group in groups)
    return FileRelation(relation, file_format(table), groups, dialect, local)


def hadoop_url(table_path: str, path: str) -> str | None:
    """Return the URL by which Hadoop knows a file of a table, from its path as Arrow has it.

    ``None`` where a table's URL says more than a place: secrets and options that Hadoop would read another way, or not at all.
    """
    parts = urlsplit(table_path)
    if parts.query or parts.fragment or parts.password:
        return None
    if parts.scheme in _BUCKETS:
        return None if parts.username else f"{_BUCKETS[parts.scheme]}://{path}"
    if parts.scheme in ("abfs", "abfss"):  # whose container is the first part of the path, and stands before the @
        return f"{parts.scheme}://{parts.netloc}/{path.partition('/')[2]}" if parts.username else None
    return f"hdfs://{parts.netloc}{path}" if parts.scheme == "hdfs" else None


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


def _parquet_groups(relation: Relation, listing: FileListing, files: list[FileSplit]) -> tuple[FileGroup, ...] | None:
    """Files by the names and types of the wanted columns in their footers, ``None`` where a value must be tested or converted by our rules.

    A backend takes the types of one file for all it reads at once.
    """
    nulls = option(relation.table, "source.missing-columns") == "null"
    groups: dict[tuple[tuple[str | None, pa.DataType], ...], list[str]] = {}
    own = False
    for file in files:
        schema = file_schema(FileTask(listing.filesystem, file.path, (), ()), "parquet")
        columns = columns_of(schema, file.path, relation.schema, nulls)
        own |= any(how > Fit.WIDER for _, how in columns.values()) or _is_odd(schema)
        known = ((columns[name][0].name, columns[name][0].type) if name in columns else (None, pa.null()) for name in relation.schema.names)
        groups.setdefault(tuple(known), []).append(file.path)
    if own or len(groups) > _MOST_GROUPS:
        return None
    return tuple(
        FileGroup(tuple(paths), tuple(None if pa.types.is_null(kind) else name for name, kind in columns)) for columns, paths in groups.items()
    )


def _is_odd(schema: pa.Schema) -> bool:
    """Whether backends disagree about a file: names that differ by case only, days of Spark 2 counted by the Julian calendar."""
    twice = len({name.lower() for name in schema.names}) < len(schema.names)
    return twice or any(mark in (schema.metadata or {}) for mark in (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"))


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
            csv_position(field, names, paths[0])
    return tuple(FileGroup(tuple(paths), names) for names, paths in groups.items())


def position_name(position: int) -> str:
    """Return what a backend calls a csv column by its position in the file."""
    return f"h{position}"


def typed_select(files: FileRelation, group: FileGroup, source: str, flavour: Flavour) -> str:
    """Return the SELECT over one group's raw relation that gives the wanted columns under their own names and with their types."""

    def raw(name: str | None) -> exp.Expr:
        return exp.null() if name is None else exp.column(exp.to_identifier(name, quoted=True), table="x")

    def value(number: int, field: Field) -> exp.Expr:
        if files.format == "parquet":
            column = raw(group.names[number])
            if flavour.dialect == "spark" and isinstance(field.type, String):
                column = function("validate_utf8", column)  # DuckDB and Arrow refuse bytes that are no text by themselves
            return exp.Cast(this=column, to=flavour.kind(field.type))
        names = [name or "" for name in group.names]
        return _from_text(raw(position_name(csv_position(field, names, group.paths[0]))), field, flavour)

    items = [exp.alias_(value(number, field), exp.to_identifier(field.name, quoted=True)) for number, field in enumerate(files.fields)]
    return exp.select(*items).from_(exp.to_table(source, alias="x")).sql(flavour.dialect)


def empty_select(relation: Relation, flavour: Flavour) -> str:
    """Return the SELECT of a relation of no rows."""
    items = [
        exp.alias_(exp.Cast(this=exp.null(), to=flavour.kind(field.type)), exp.to_identifier(field.name, quoted=True)) for field in relation.schema
    ]
    return exp.select(*items).where(exp.false()).sql(flavour.dialect)


def _from_text(column: exp.Expr, field: Field, flavour: Flavour) -> exp.Expr:
    """A text column as its type by the rule of penstock's own readers: an instant without zone is UTC, a TIMESTAMP with one is refused."""
    if isinstance(field.type, String):
        return _spark_text(column) if flavour.dialect == "spark" else column
    if flavour.dialect == "spark":
        column = when(exp.EQ(this=column, expression=text(EMPTY_MARK)), text(""), column.copy())
    if isinstance(field.type, Timestamp | TimestampLtz):
        zoned = function("regexp_like" if flavour.dialect == "spark" else "regexp_matches", column, text(_ZONE))
        utc = exp.DPipe(this=column.copy(), expression=text("Z"))
        refused = exp.DPipe(this=column.copy(), expression=text(" has a zone"))
        column = when(zoned, column.copy(), utc) if isinstance(field.type, TimestampLtz) else when(zoned, refused, column.copy())
    return flavour.cast(column, STRING, field.type, False)


def _spark_text(column: exp.Expr) -> exp.Expr:
    """A text Spark has read byte by byte, as Latin-1: its own reading of UTF-8 puts marks in the place of bytes that are no text."""
    raw = function("encode", column, text("ISO-8859-1"))
    decoded = function("validate_utf8", exp.Cast(this=raw, to=exp.DataType.build("STRING", dialect="spark")))
    return when(exp.EQ(this=column.copy(), expression=text(EMPTY_MARK)), text(""), decoded)
