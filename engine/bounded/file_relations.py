"""Which files a relation reads and how a backend may read them itself: text columns by position, cast by
SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
from sqlglot import exp

from penstock.catalog.connectors.filesystem import split_suffixes
from penstock.catalog.connectors.registry import file_format, option
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.types import (
    STRING,
    Array,
    Binary,
    Boolean,
    DataType,
    Date,
    Decimal,
    Double,
    Float,
    Row,
    String,
    Timestamp,
    TimestampLtz,
    is_integer,
)
from penstock.engine.connectors.filesystem.listing import FileListing, FileSplit
from penstock.engine.connectors.filesystem.partition_paths import partition_values
from penstock.engine.connectors.filesystem.reader import partition_value
from penstock.engine.connectors.filesystem.source import check_unchanged, csv_dialect, stored_fields
from penstock.engine.formats.csv import csv_position, header_names
from penstock.engine.formats.file_task import UTF_8, CsvDialect, FileTask
from penstock.engine.formats.file_types import Fit
from penstock.engine.formats.missing_columns import columns_of, file_schema
from penstock.planner.expressions.nodes import Literal
from penstock.planner.sql_generator.dialect import Flavour, function, text, when
from penstock.planner.sql_generator.query import ScannedTable

# types that both backends cast from text, and read from parquet, as our own readers do
_PLAIN = (Boolean, Float, Double, Decimal, String, Date, Timestamp, TimestampLtz)
_MOST_GROUPS = 64  # each is a SELECT of its own in the query's text
# scheme of a table's path to the scheme of Hadoop's connector for it
_BUCKETS = {"s3": "s3a", "gs": "gs", "gcs": "gs"}
# Spark's csv reader writes this for a quoted empty text; U+E000 is for private use, so data hardly has it
EMPTY_MARK = "\ue000penstock-empty"
# a zone at the end of a text with a time of day: 10:20:30Z, +02, +0200, +02:00
_ZONE = r":[0-9.]+(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_SAME_EVERYWHERE = re.compile(r"(?!h\d)[A-Za-z]\w*=[\w.-]+", re.ASCII)
"""Partition directories that Spark reads as penstock does. Spark reads no empty text, and %XX as a character,
not as a byte. ``h0`` is the name of a csv column.
"""


@dataclass(frozen=True)
class FileGroup:
    """Files with the same layout.

    ``columns``: the backend's name of each field's column, ``None`` for one that is missing. A missing one is
    NULL, or a partition constant in ``values``. ``layout``: equal for groups whose files have the same
    columns and types. ``width``: the number of columns of a csv record. ``base``: the directory below which
    the backend itself reads partition columns from directory names, else empty.
    """

    paths: tuple[str, ...]
    columns: tuple[str | None, ...]
    layout: int = 0
    width: int = 0
    values: tuple[Literal | None, ...] = ()
    base: str = ""


@dataclass(frozen=True)
class FileRelation:
    """Files a backend can read itself: csv, as text, or parquet."""

    relation: ScannedTable
    format: str
    groups: tuple[FileGroup, ...]
    dialect: CsvDialect
    local: bool = True

    @property
    def fields(self) -> tuple[Field, ...]:
        """The wanted columns."""
        return tuple(self.relation.schema)


def file_relation(relation: ScannedTable, *, hadoop: bool = False) -> FileRelation | str:
    """Return how a backend reads a relation, or the reason why only penstock's own readers can (types that
    need a rule, codecs, paths).

    Only our readers decide whether a record is bad. They therefore read tables that continue after one, and
    json, which backends read too leniently.

    ``hadoop``: the backend reads object stores, HDFS and partition directories itself; files have Hadoop's
    URLs. Raises the source's errors: DAT-41xx for paths and partitions, DAT-4203 for a missing column,
    DAT-4205 for one of another type.
    """
    table = relation.table
    # reasons that need no look at the files come first
    if (reason := _own_reading(relation)) is not None:
        return reason
    listing = FileListing(table.options["path"], file_format(table), table.options)
    table_path, local = table.options["path"], isinstance(listing.filesystem, pafs.LocalFileSystem)
    # a secret or an endpoint in the table's URL is known to Arrow's filesystem only
    reached = any(key.startswith("s3.") for key in table.options)
    if not local and (reached or not (hadoop and hadoop_url(table_path, ""))):
        return "its files are where only penstock's options lead"
    listed = _files(relation, listing)
    partitions = _partitions(relation, listing, listed)
    # an empty file has no header and no rows; one without a footer is damaged
    files = [file for file in listed if file.size or file_format(table) == "parquet"]
    # backends go by a file's name; a declared codec must agree with it
    declared = option(table, "compression")
    if any(declared not in ("auto", split_suffixes(file.path)[1] or "none") for file in files):
        return "'compression' is not what the files' names say"
    dialect = csv_dialect(table) if file_format(table) == "csv" else CsvDialect()
    if dialect.encoding != UTF_8:
        return f"its files are in {dialect.encoding}"
    groups = (
        _csv_groups(relation, listing, files, dialect)
        if file_format(table) == "csv"
        else _parquet_groups(relation, listing, files)
    )
    # partition columns are not in the files: Spark reads them from directories, or they are constants
    if not isinstance(groups, str) and partitions:
        base = _common_base(relation, listing, files) if hadoop else None
        groups = (
            _by_values(relation, groups, partitions)
            if base is None
            else _by_directory(relation, groups, listing.root, base)
        )
    if isinstance(groups, str):
        return groups
    # Arrow's paths have no scheme; Hadoop needs URLs
    if not local:
        groups = tuple(_in_store(table_path, group) for group in groups)
    return FileRelation(relation, file_format(table), groups, dialect, local)


def _own_reading(relation: ScannedTable) -> str | None:
    """Return why a table needs penstock's own readers, whatever its files are; else ``None``."""
    table = relation.table
    # rows of our own process, of a database, a socket: no files
    if table.connector != "filesystem":
        return f"a table of connector {table.connector}"
    if file_format(table) not in ("csv", "parquet"):
        return (
            "other readers take for json what ours refuses"
            if file_format(table) == "json"
            else f"format {file_format(table)}"
        )
    # only our readers can skip a record, count it and store it
    if option(table, "on-error") != "fail":
        return "'on-error' lets bad records pass"
    stored = stored_fields(table)
    for field in relation.schema:
        # from a directory's name: a text, even in a table of parquet files
        outside = field.name in table.partitioned_by
        if not outside and field not in stored:
            return f"column {field.name} is metadata"
        if not _readable(field.type, outside or file_format(table) == "csv"):
            return f"column {field.name} is {field.type}"
    return None


def _in_store(table_path: str, group: FileGroup) -> FileGroup:
    paths = tuple(hadoop_url(table_path, path) or "" for path in group.paths)
    return replace(group, paths=paths, base=(hadoop_url(table_path, group.base) or "") if group.base else "")


def hadoop_url(table_path: str, path: str) -> str | None:
    """Return Hadoop's URL of a table's file, from its path as Arrow has it.

    ``None`` where the table's URL has more than a path: secrets and options that Hadoop would interpret
    differently, or not at all.
    """
    parts = urlsplit(table_path)
    if parts.query or parts.fragment or parts.password:
        return None
    # bucket and key are in the path as Arrow has it; a user in the URL would be a key id
    if parts.scheme in _BUCKETS:
        return None if parts.username else f"{_BUCKETS[parts.scheme]}://{path}"
    # Arrow's path begins with the container; in the URL it is the user, before the @
    if parts.scheme in ("abfs", "abfss"):
        return f"{parts.scheme}://{parts.netloc}/{path.partition('/')[2]}" if parts.username else None
    # the path is absolute already; any other scheme is none of Hadoop's that we know
    return f"hdfs://{parts.netloc}{path}" if parts.scheme == "hdfs" else None


def _files(relation: ScannedTable, listing: FileListing) -> list[FileSplit]:
    """Return the table's files, or those of the relation's splits, which must not have changed since they
    were listed: DAT-4107.
    """
    # the whole table as it is now
    if relation.splits is None:
        return listing.files()
    named = {split.path: split for split in map(FileSplit.parse, relation.splits)}
    for file in named.values():
        check_unchanged(listing, file)
    return sorted(named.values(), key=lambda file: file.path)


def _readable(kind: DataType, texts: bool) -> bool:
    """Whether backends support the type, read from text or stored in a file. Maps may have a key twice, which
    only our reader refuses.
    """
    match kind:
        # no nested type has a form in csv; its parts must be readable one by one
        case Array(element):
            return not texts and _readable(element, False)
        case Row(fields):
            return not texts and all(_readable(field, False) for _, field in fields)
        case Binary():
            return not texts
    return isinstance(kind, _PLAIN) or is_integer(kind)


def _parquet_groups(
    relation: ScannedTable, listing: FileListing, files: list[FileSplit]
) -> tuple[FileGroup, ...] | str:
    """Group files by the names and types of the requested columns in their footers. A text names the reason
    where a value needs our own rules.

    A backend applies the types of one file to all files it reads at once.
    """
    nulls = option(relation.table, "source.missing-columns") == "null"
    inside = [field for field in relation.schema if field.name not in relation.table.partitioned_by]
    # (name, type in the footer) of each requested column to the files that have exactly these
    layouts: dict[tuple[tuple[str | None, pa.DataType], ...], list[str]] = {}
    own: str | None = None
    for file in files:
        schema = file_schema(FileTask(listing.filesystem, file.path, (), ()), "parquet")
        columns = columns_of(schema, file.path, inside, nulls)
        if _is_odd(schema):
            own = (
                own
                or f"{listing.relative(file.path) or file.path} has names that differ by case, or days "
                "of Spark 2"
            )
        for name, (column, how) in columns.items():
            # a narrower or another type needs our own conversion, which may refuse a value
            if how > Fit.WIDER:
                own = own or f"column {name} is {column.type} in {listing.relative(file.path) or file.path}"
        known = (
            (columns[name][0].name, columns[name][0].type) if name in columns else (None, pa.null())
            for name in relation.schema.names
        )
        layouts.setdefault(tuple(known), []).append(file.path)
    # reported after the loop: a missing column of a later file is an error and goes first
    if own is not None:
        return own
    if len(layouts) > _MOST_GROUPS:
        return f"its files have {len(layouts)} layouts"
    return tuple(
        FileGroup(
            tuple(paths), tuple(None if pa.types.is_null(kind) else name for name, kind in columns), number
        )
        for number, (columns, paths) in enumerate(layouts.items())
    )


def _is_odd(schema: pa.Schema) -> bool:
    """Whether backends disagree about a file: names that differ by case only, or dates of Spark 2 in the
    Julian calendar.
    """
    # ``a`` and ``A`` in one file: readers disagree which of the two a query means
    twice = len({name.lower() for name in schema.names}) < len(schema.names)
    return twice or any(
        mark in (schema.metadata or {})
        for mark in (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
    )


def _csv_groups(
    relation: ScannedTable, listing: FileListing, files: list[FileSplit], dialect: CsvDialect
) -> tuple[FileGroup, ...] | str:
    """Group files by their header: the requested columns are matched by name in each. Without one they have
    the first of the declared columns.
    """
    declared = stored_fields(relation.table)
    nulls = option(relation.table, "source.missing-columns") == "null"
    # names of a header, in file order, to the files that have it
    layouts: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        task = FileTask(listing.filesystem, file.path, (), declared, split_suffixes(file.path)[1], dialect)
        # without a header the width of a first record still tells which of the last columns are missing
        first = header_names(task) if dialect.header or nulls else [field.name for field in declared]
        # None: a file without any record
        if first is not None:
            names = tuple(first) if dialect.header else tuple(field.name for field in declared[: len(first)])
            layouts.setdefault(names, []).append(file.path)
    if len(layouts) > _MOST_GROUPS:
        return f"its files have {len(layouts)} headers"
    groups = []
    for number, (names, paths) in enumerate(layouts.items()):
        # columns of a header are matched regardless of case
        header = {name.lower() for name in names}
        outside = {
            field.name
            for field in relation.schema
            if nulls and field.nullable and field.name.lower() not in header
        }
        # filled in by the caller, from directories
        outside |= set(relation.table.partitioned_by)
        columns = (
            None if field.name in outside else position_name(csv_position(field, names, paths[0]))
            for field in relation.schema
        )
        groups.append(FileGroup(tuple(paths), tuple(columns), number, len(names)))
    return tuple(groups)


def _partitions(
    relation: ScannedTable, listing: FileListing, files: Iterable[FileSplit]
) -> dict[str, tuple[pa.Scalar | None, ...]]:
    """Return the partition values of each file's directory; empty where no partition column is requested.
    DAT-4110.
    """
    # by position in the relation: the field of a partition column, else None
    partition_fields = [
        field if field.name in relation.table.partitioned_by else None for field in relation.schema
    ]
    by_directory: dict[str, tuple[pa.Scalar | None, ...]] = {}
    for file in files if any(partition_fields) else ():
        directory = _directory(file.path)
        # a directory has many files with the same values
        if directory not in by_directory:
            texts = partition_values(listing.relative(file.path))
            by_directory[directory] = tuple(
                None if field is None else partition_value(field, texts, file) for field in partition_fields
            )
    return by_directory


def _directory(path: str) -> str:
    return path.rpartition("/")[0]


def _common_base(
    relation: ScannedTable, listing: FileListing, files: list[FileSplit]
) -> tuple[str, ...] | None:
    """Return the names of the columns in the directories, the same in all paths; ``None`` where a backend may
    read one differently.
    """
    column_names: set[tuple[str, ...]] = set()
    for directory in {_directory(listing.relative(file.path)) for file in files}:
        parts = directory.split("/")
        # a name that Spark would decode, or read as NULL, in its own way
        if not all(_SAME_EVERYWHERE.fullmatch(part) for part in parts):
            return None
        column_names.add(tuple(part.partition("=")[0] for part in parts))
    # all directories must have the same columns in the same order
    names = column_names.pop() if len(column_names) == 1 else ()
    partitioned = {name.lower() for name in relation.table.partitioned_by}
    same = len(names) == len(partitioned) and {name.lower() for name in names} == partitioned
    instants = any(
        isinstance(field.type, TimestampLtz) and field.name in relation.table.partitioned_by
        for field in relation.schema
    )
    return names if same and not instants else None  # of an instant Spark's cast reads fewer texts than ours


def _by_directory(
    relation: ScannedTable, groups: tuple[FileGroup, ...], root: str, names: tuple[str, ...]
) -> tuple[FileGroup, ...]:
    """Groups whose backend itself reads the partition columns of the directories below a root."""
    called = {name.lower(): name for name in names}
    # our name of a partition column to its spelling in the directories, which Spark uses
    outside = {name: called[name.lower()] for name in relation.table.partitioned_by}

    def columns(group: FileGroup) -> tuple[str | None, ...]:
        return tuple(
            outside.get(field.name, column)
            for field, column in zip(relation.schema, group.columns, strict=True)
        )

    return tuple(replace(group, columns=columns(group), base=root) for group in groups)


def _by_values(
    relation: ScannedTable,
    groups: tuple[FileGroup, ...],
    partitions: Mapping[str, tuple[pa.Scalar | None, ...]],
) -> tuple[FileGroup, ...] | str:
    """Groups split by their partition values, which are constants of each group."""
    try:
        constants = {
            directory: tuple(map(_literal, relation.schema, values))
            for directory, values in partitions.items()
        }
    except (ValueError, OverflowError):
        # Python's datetime cannot hold it, so no literal can be written
        return "a partition is a time before year 1 or after 9999"
    cut: dict[tuple[int, tuple[str, ...]], tuple[FileGroup, list[str]]] = {}
    for group in groups:
        for path in group.paths:
            values = constants[_directory(path)]
            # As SQL writes them: -0.0 is equal to 0.0 and is another value.
            key = (group.layout, tuple(map(str, values)))
            cut.setdefault(key, (replace(group, values=values), []))[1].append(path)
    if len(cut) > _MOST_GROUPS:
        return f"it has {len(cut)} partitions, some with names that other readers parse differently"
    return tuple(replace(group, paths=tuple(paths)) for group, paths in cut.values())


def _literal(field: Field, value: pa.Scalar | None) -> Literal | None:
    return None if value is None else Literal(field.type, True, value=value.as_py())


def position_name(position: int) -> str:
    """Return a backend's name of a csv column, from its position in the file."""
    return f"h{position}"


def typed_select(files: FileRelation, group: FileGroup, source: str, flavour: Flavour) -> str:
    """Return the SELECT over one group's raw relation, with the requested columns under their own names and
    types.
    """

    def value(number: int, field: Field) -> exp.Expr:
        # five origins of a value: a partition constant, NULL, a directory, csv text, parquet
        constant = group.values[number] if group.values else None
        if constant is not None:
            return exp.Cast(this=flavour.literal(constant), to=flavour.kind(field.type))
        name = group.columns[number]
        # missing in these files, and declared as nullable: NULL of the right type
        if name is None:
            return exp.Cast(this=exp.null(), to=flavour.kind(field.type))
        column: exp.Expr = exp.column(exp.to_identifier(name, quoted=True), table="x")
        # a directory's name, which Spark returns as text
        if field.name in files.relation.table.partitioned_by:
            return column if isinstance(field.type, String) else _by_our_rule(column, field, flavour)
        if files.format == "csv":
            return _from_text(column, field, flavour)
        if flavour.dialect == "spark":  # DuckDB and Arrow refuse bytes that are no text by themselves
            column = _texts_checked(column, field.type)
        return exp.Cast(this=column, to=flavour.kind(field.type))

    items = [
        exp.alias_(value(number, field), exp.to_identifier(field.name, quoted=True))
        for number, field in enumerate(files.fields)
    ]
    return exp.select(*items).from_(exp.to_table(source, alias="x")).sql(flavour.dialect)


def _texts_checked(value: exp.Expr, kind: DataType, depth: int = 0) -> exp.Expr:
    """A value for Spark with a UTF-8 test of every text: Spark accepts any bytes of parquet as text."""
    if not _holds_text(kind):
        return value
    match kind:
        # transform(a, e0 -> validate_utf8(e0)); the depth keeps names of nested lambdas apart
        case Array(element):
            one = exp.to_identifier(f"e{depth}")
            return function(
                "transform",
                value,
                exp.Lambda(this=_texts_checked(exp.column(one), element, depth + 1), expressions=[one]),
            )
        case Row(fields):
            parts: list[exp.Expr] = []
            for name, field in fields:
                # a row is built again field by field
                part = exp.Dot(this=value.copy(), expression=exp.to_identifier(name, quoted=True))
                parts += [text(name), _texts_checked(part, field, depth)]
            # named_struct of a NULL row would be a row of NULLs
            return when(
                exp.Is(this=value.copy(), expression=exp.null()), exp.null(), function("named_struct", *parts)
            )
    return function("validate_utf8", value)


def _holds_text(kind: DataType) -> bool:
    match kind:
        case Array(element):
            return _holds_text(element)
        case Row(fields):
            return any(_holds_text(field) for _, field in fields)
    return isinstance(kind, String)


def empty_select(relation: ScannedTable, flavour: Flavour) -> str:
    """Return the SELECT of a relation of no rows."""
    items = [
        exp.alias_(
            exp.Cast(this=exp.null(), to=flavour.kind(field.type)), exp.to_identifier(field.name, quoted=True)
        )
        for field in relation.schema
    ]
    return exp.select(*items).where(exp.false()).sql(flavour.dialect)


def _from_text(column: exp.Expr, field: Field, flavour: Flavour) -> exp.Expr:
    """Cast a text column to its type by the rule of penstock's own readers. An instant without zone is UTC, a
    TIMESTAMP with one is refused.
    """
    if isinstance(field.type, String):
        return _spark_text(column) if flavour.dialect == "spark" else column
    # Spark's reader has put a mark in place of a quoted empty text; an unmarked empty one is NULL
    if flavour.dialect == "spark":
        column = when(exp.EQ(this=column, expression=text(EMPTY_MARK)), text(""), column.copy())
    return _by_our_rule(column, field, flavour)


def _by_our_rule(column: exp.Expr, field: Field, flavour: Flavour) -> exp.Expr:
    if isinstance(field.type, Timestamp | TimestampLtz):
        # TIMESTAMP_LTZ without a zone: append Z. TIMESTAMP with one: append words that no cast accepts.
        zoned = function(
            "regexp_like" if flavour.dialect == "spark" else "regexp_matches", column, text(_ZONE)
        )
        moment = function("contains", column.copy(), text(":"))
        # a day has no zone
        utc = exp.DPipe(this=column.copy(), expression=when(moment, text("Z"), text(" 00:00:00Z")))
        refused = exp.DPipe(this=column.copy(), expression=text(" has a zone"))
        column = (
            when(zoned, column.copy(), utc)
            if isinstance(field.type, TimestampLtz)
            else when(zoned, refused, column.copy())
        )
    return flavour.cast(column, STRING, field.type, False)


def _spark_text(column: exp.Expr) -> exp.Expr:
    """A text that Spark has read byte by byte, as Latin-1. Its own UTF-8 decoder would replace invalid bytes
    with marks.
    """
    raw = function("encode", column, text("ISO-8859-1"))
    decoded = function("validate_utf8", exp.Cast(this=raw, to=exp.DataType.build("STRING", dialect="spark")))
    return when(exp.EQ(this=column.copy(), expression=text(EMPTY_MARK)), text(""), decoded)
