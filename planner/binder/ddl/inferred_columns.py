"""CREATE TABLE over files without columns: the declaration with the columns, the partitions and the options
that the files have.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.connectors.filesystem import split_suffixes
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import InferredFiles
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.ddl.create_table import check_metadata, checked_options
from penstock.planner.parser.syntax_nodes import OptionEntry
from penstock.planner.statements.nodes import CreateTable, MetadataColumnDef, Name, PhysicalColumnDef


@dataclass(frozen=True)
class CompletedTable:
    """A declaration that is complete; ``basis``: what its columns were inferred from, empty if declared."""

    statement: CreateTable
    basis: str = ""


def with_inferred_columns(statement: CreateTable, context: BindContext) -> CompletedTable:
    """Return a CREATE TABLE with columns: those of its files where it declares none itself. Raises SQL-15xx
    for options, DAT-4xxx where the files do not say their columns, SQL-1301 for a name that is in both.
    """
    path = next((option for option in statement.options if option.key == "path"), None)
    if not _lacks_columns(statement) or path is None:
        return CompletedTable(statement)
    for column in statement.columns:
        # what the statement alone shows is reported before any file is opened
        if isinstance(column, MetadataColumnDef):
            check_metadata(column, "filesystem")
    try:
        # a directory: its files say the format, without which no option can be checked
        if not _says_format(statement):
            kind = context.catalog.files.format(path.value)
            entry = OptionEntry("format", kind, path.key_span, path.value_span)
            statement = replace(statement, options=(*statement.options, entry))
        options = checked_options(statement)
        inferred = context.catalog.files.columns(options)
    except PenstockError as error:
        raise _with_sink_hint(error.with_span(path.value_span), statement) from None
    _refuse_shadowed(statement, inferred)
    return CompletedTable(_completed(statement, inferred, path.value_span), inferred.basis)


def _lacks_columns(statement: CreateTable) -> bool:
    connector = next((o.value.lower() for o in statement.options if o.key == "connector"), "")
    return connector == "filesystem" and not any(
        isinstance(column, PhysicalColumnDef) for column in statement.columns
    )


def _says_format(statement: CreateTable) -> bool:
    options = {option.key: option.value for option in statement.options}
    return "format" in options or split_suffixes(options["path"])[0] is not None


def _completed(statement: CreateTable, inferred: InferredFiles, span: Span) -> CreateTable:
    columns = tuple(
        PhysicalColumnDef(Name(field.name, span), field.type, field.nullable) for field in inferred.fields
    )
    added = tuple(OptionEntry(key, text, span, span) for key, text in inferred.options.items())
    partitions = tuple(Name(name, span) for name in inferred.partitioned_by)
    return replace(
        statement,
        # the columns of the files first: computed ones read them
        columns=columns + statement.columns,
        options=statement.options + added,
        partitioned_by=statement.partitioned_by or partitions,
    )


def _refuse_shadowed(statement: CreateTable, inferred: InferredFiles) -> None:
    there = {field.name.lower() for field in inferred.fields}
    for column in statement.columns:
        if column.name.text.lower() in there:
            kind = "metadata" if isinstance(column, MetadataColumnDef) else "computed"
            raise PenstockError(
                "SQL-1301",
                f'the files have a column "{column.name.text}" already',
                span=column.name.span,
                hint=f"give the {kind} column another name, or declare all columns",
                sqlstate="42701",
            )


def _with_sink_hint(error: PenstockError, statement: CreateTable) -> PenstockError:
    # a directory that is not there is meant to be written, more often than it is misspelt
    path = next(option.value for option in statement.options if option.key == "path")
    is_directory = split_suffixes(path)[0] is None
    if error.code == "DAT-4101" and is_directory and not (error.hint or "").startswith("did you mean"):
        error.hint = (
            f"the columns are read from files; to write {statement.name} declare them, or write "
            f"CREATE TABLE {statement.name} WITH (..) AS SELECT .."
        )
    return error
