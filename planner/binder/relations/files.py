"""Files in FROM as tables: their columns are inferred, unless options of READ_CSV and the like say them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.catalog.connectors.filesystem import split_suffixes
from penstock.catalog.connectors.registry import check_options
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable, InferredFiles, MetadataColumn
from penstock.catalog.types import STRING
from penstock.planner.binder.context import BindContext
from penstock.planner.parser.syntax_nodes import FileTable, OptionEntry, consume, span_of
from penstock.planner.statements.nodes import CreateTable, PhysicalColumnDef
from penstock.planner.statements.script import parse_statement

# by the name of a function's option, the option of a WITH clause; the names are DuckDB's, then ours
_OPTIONS = {
    "delim": "csv.delimiter",
    "sep": "csv.delimiter",
    "delimiter": "csv.delimiter",
    "header": "csv.header",
    "quote": "csv.quote",
    "nullstr": "csv.null-literal",
    "null_literal": "csv.null-literal",
    "encoding": "csv.encoding",
    "compression": "compression",
    "on_error": "on-error",
    "missing_columns": "source.missing-columns",
    "replay": "source.replay",
    "monitor_interval": "source.monitor-interval",
    "rows_per_second": "source.rows-per-second",
}
_MULTILINE = "multiline"
# truth values that stand for a value of another option
_SWITCHES = {
    "ignore_errors": ("on-error", "skip"),
    "union_by_name": ("source.missing-columns", "null"),
}
# options that change the columns, and no option of a WITH clause
_COLUMN_OPTIONS = ("columns", "types", "all_varchar", "filename", "hive_partitioning")


@dataclass(frozen=True)
class FileSource:
    """A table over files, and what its columns were inferred from (empty: they were said)."""

    table: CatalogTable
    basis: str


def file_source(tree: FileTable, context: BindContext) -> FileSource:
    """Return the table of a path in FROM. Raises as ``path_source`` does."""
    consume(tree, "this", "path", "format", "alias")
    entries, hints = tree.meta["entries"], tree.meta.get("options", ())
    return path_source(tree.args["path"], span_of(tree), context, tree.args.get("format"), (*entries, *hints))


def path_source(
    path: str,
    span: Span | None,
    context: BindContext,
    file_format: str | None = None,
    entries: Sequence[OptionEntry] = (),
) -> FileSource:
    """Return the table of a path. ``entries``: options of a function, or of a hint with a WITH clause's keys.

    Raises SQL-1503 and SQL-1505 for options, DAT-4xxx with ``span`` where the files do not say their columns.
    """
    options = {"connector": "filesystem", "path": path}
    # before the files are looked at: what the statement alone shows
    columns, translated = _translated(entries, file_format or split_suffixes(path)[0] or "csv")
    options |= {entry.key: entry.value for entry in translated}
    try:
        if file_format is not None:
            options.setdefault("format", file_format)
        elif "format" not in options and split_suffixes(path)[0] is None:
            options["format"] = context.catalog.files.format(path)
        spans = {entry.key: entry.key_span for entry in translated}
        check_options(options, spans, {entry.key: entry.value_span for entry in translated})
        inferred = _inferred(columns, options, context)
    except PenstockError as error:
        raise _with_name_hint(error, path, context, file_format).with_span(span) from None
    return FileSource(_table(path, inferred, options, _is_on(columns.get("filename"))), inferred.basis)


def _translated(
    entries: Sequence[OptionEntry], file_format: str
) -> tuple[dict[str, OptionEntry], list[OptionEntry]]:
    """Return the options that say columns, by name, and the others with the keys of a WITH clause."""
    columns: dict[str, OptionEntry] = {}
    others: list[OptionEntry] = []
    for entry in entries:
        if entry.key in _COLUMN_OPTIONS:
            columns[entry.key] = entry
        elif entry.key in _SWITCHES:
            key, text = _SWITCHES[entry.key]
            if _is_on(entry):
                others.append(replace(entry, key=key, value=text))
        # of csv and of json; another format refuses either by its name
        elif entry.key == _MULTILINE:
            kind = "json" if file_format == "json" else "csv"
            others.append(replace(entry, key=f"{kind}.{_MULTILINE}"))
        # a key of a hint has a dot or a dash; those of both, such as compression, are the same
        elif entry.key in _OPTIONS or "." in entry.key or "-" in entry.key:
            others.append(replace(entry, key=_OPTIONS.get(entry.key, entry.key)))
        else:
            known = (*_OPTIONS, _MULTILINE, *_SWITCHES, *_COLUMN_OPTIONS)
            raise PenstockError(
                "SQL-1503",
                f"there is no option {entry.key} of files in FROM",
                span=entry.key_span,
                hint=did_you_mean(entry.key, known) or f"there is {', '.join(known)}",
            )
    return columns, others


def _is_on(entry: OptionEntry | None) -> bool:
    if entry is None or entry.value.lower() == "false":
        return False
    if entry.value.lower() == "true":
        return True
    raise PenstockError(
        "SQL-1505",
        f"option {entry.key} cannot be '{entry.value[:60]}'",
        span=entry.value_span,
        hint=f"write {entry.key} => TRUE or FALSE",
    )


def _inferred(
    columns: Mapping[str, OptionEntry], options: Mapping[str, str], context: BindContext
) -> InferredFiles:
    """Return the columns of the files, as far as the options do not say them."""
    if "columns" in columns:
        return InferredFiles(_declared(columns["columns"]))
    inferred = context.catalog.files.columns(options)
    fields, partitions = inferred.fields, inferred.partitioned_by
    if "hive_partitioning" in columns and not _is_on(columns["hive_partitioning"]):
        fields, partitions = tuple(field for field in fields if field.name not in partitions), ()
    if _is_on(columns.get("all_varchar")):
        fields = tuple(replace(field, type=STRING) for field in fields)
    if "types" in columns:
        fields = _retyped(fields, columns["types"])
    return replace(inferred, fields=fields, partitioned_by=partitions)


def _declared(entry: OptionEntry) -> tuple[Field, ...]:
    """Return the columns of an option's text, written as those of CREATE TABLE."""
    try:
        declared = parse_statement(f"CREATE TABLE t ({entry.value})")
        assert isinstance(declared, CreateTable)
        columns = [column for column in declared.columns if isinstance(column, PhysicalColumnDef)]
        if len(columns) == len(declared.columns) and declared.watermark is None:
            return tuple(Field(column.name.text, column.type, column.nullable) for column in columns)
        reason = "it has more than names and types"
    except PenstockError as error:
        reason = error.message
    raise PenstockError(
        "SQL-1505",
        f"option {entry.key} cannot be read: {reason}",
        span=entry.value_span,
        hint=f"write names and types: {entry.key} => 'id BIGINT, name STRING'",
    )


def _retyped(fields: tuple[Field, ...], entry: OptionEntry) -> tuple[Field, ...]:
    wanted = {field.name.lower(): field for field in _declared(entry)}
    names = [field.name for field in fields]
    for field in wanted.values():
        if field.name.lower() not in map(str.lower, names):
            raise PenstockError(
                "SQL-1042",
                f'column "{field.name}" of {entry.key} does not exist',
                span=entry.value_span,
                hint=did_you_mean(field.name, names, others=True),
                sqlstate="42703",
            )
    return tuple(
        replace(field, type=wanted[field.name.lower()].type) if field.name.lower() in wanted else field
        for field in fields
    )


def _table(path: str, inferred: InferredFiles, options: Mapping[str, str], filename: bool) -> CatalogTable:
    fields = inferred.fields
    metadata: tuple[MetadataColumn, ...] = ()
    if filename:
        # as DuckDB calls it
        fields = (*fields, Field("filename", STRING, False))
        metadata = (MetadataColumn("filename", "file.path"),)
    schema = Schema(fields)
    return CatalogTable(
        path,
        schema,
        schema,
        {**options, **inferred.options},
        metadata,
        partitioned_by=inferred.partitioned_by,
        temporary=True,
    )


def _with_name_hint(
    error: PenstockError, path: str, context: BindContext, file_format: str | None
) -> PenstockError:
    # read_csv('orders.parquet'): a WITH clause has a format, a function is one
    kind, _ = split_suffixes(path)
    if error.code == "DAT-4108" and file_format is not None and kind is not None:
        error.hint = f"write read_{kind}('{path}'), or FROM '{path}'"
        return error
    if error.code != "DAT-4101" or (error.hint or "").startswith("did you mean"):
        return error
    error.hint = (
        f"a table's name is written without single quotes: {path}"
        if context.catalog.find(path) is not None
        else "paths are relative to the directory penstock was started in; tables have no single quotes"
    )
    return error
