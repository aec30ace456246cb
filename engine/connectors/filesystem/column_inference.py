"""Columns of a table of files that declares none. Those of parquet and arrow files are exact, those of csv
and JSON files are a sample's. Partition directories add theirs.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from penstock.catalog.connectors.connector import TableOptions
from penstock.catalog.connectors.filesystem import (
    FILESYSTEM,
    STANDARD_INPUT,
    format_of,
    pipe_fault,
    split_suffixes,
)
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.secrets import redact_url
from penstock.catalog.tables import InferredFiles
from penstock.catalog.types import BIGINT, DATE, DOUBLE, STRING, TIMESTAMP, DataType, Decimal
from penstock.engine.connectors.filesystem.listing import FileListing, FileSplit
from penstock.engine.connectors.filesystem.null_literals import null_literal_advice
from penstock.engine.connectors.filesystem.partition_paths import partition_values
from penstock.engine.connectors.filesystem.sample_checks import TextSample
from penstock.engine.connectors.filesystem.source import dialect_of
from penstock.engine.connectors.filesystem.standard_input import STDIN
from penstock.engine.connectors.filesystem.text_sampling import (
    DECLARE,
    TextColumns,
    csv_columns,
    json_columns,
    read_sample,
)
from penstock.engine.formats.file_task import UTF_8, CsvDialect, FileTask
from penstock.engine.formats.file_types import Fit, fit, sql_type, type_name
from penstock.engine.formats.missing_columns import file_schema

# footers that are read; a stream checks as many before its first row
_FOOTERS = 64
# text files that are sampled, and how many bytes of all of them together
_SAMPLED = 10
SAMPLE_BYTES = 8 << 20
# results that are remembered: a shell binds a statement several times while it is typed
_REMEMBERED = 32
_NAMELESS = "a column without a name is left out"
# formats of others by suffix, and what a reader of them does instead
_ELSEWHERE = {
    "xlsx": "save the sheet as csv",
    "xls": "save the sheet as csv",
    "avro": "write it again as parquet",
    "orc": "write it again as parquet: a table of Spark reads it",
    "db": "tables of a database have 'connector' = 'sqlite' or 'duckdb'",
    "sqlite": "tables of a database have 'connector' = 'sqlite'",
    "duckdb": "tables of a database have 'connector' = 'duckdb'",
    "zip": "unpack it first; .gz and .zst are read as they are",
    "bz2": "unpack it first; .gz and .zst are read as they are",
    "xz": "unpack it first; .gz and .zst are read as they are",
}
# types that csv files of one table may have of a column, and the one that reads the texts of all
_WIDER: tuple[tuple[frozenset[DataType], DataType], ...] = (
    (frozenset((BIGINT, DOUBLE)), DOUBLE),
    (frozenset((BIGINT, Decimal(38, 0))), Decimal(38, 0)),
    (frozenset((DATE, TIMESTAMP)), TIMESTAMP),
)
_MULTILINE = "csv.multiline"
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}


class FileInference:
    """Infers the format and the columns of files; results are remembered as long as no file has changed."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], InferredFiles] = {}

    def format(self, path: str) -> str:
        """Return the format of the files of a path. DAT-4101 and 4102 where there are none, DAT-4124 where
        their names say none, or several.
        """
        if path in STANDARD_INPUT:
            return _format_of_stdin()
        listing = FileListing(path, None)
        files = _listed(listing, path)
        kinds: dict[str | None, FileSplit] = {}
        for file in files:
            kinds.setdefault(split_suffixes(file.path)[0], file)
        if len(kinds) > 1:
            raise _mixed_formats(path, kinds)
        kind = next(iter(kinds)) or _by_magic(listing, files)
        if kind is None:
            raise _no_format(path, files[0])
        return kind

    def columns(self, options: Mapping[str, str]) -> InferredFiles:
        """Return the columns of a filesystem table's files. ``options``: its WITH clause, checked. Raises
        DAT-41xx where the files have no columns that all readers find.
        """
        table = TableOptions(FILESYSTEM, options)
        kind, path = format_of(table), options["path"]
        if kind == "debezium-json":
            message = "the columns of debezium-json cannot be inferred: its files hold changes of rows"
            raise PenstockError("DAT-4121", message, hint=DECLARE, kind=Kind.USER)
        if path in STANDARD_INPUT:
            return _of_stdin(table, kind)
        listing = FileListing(path, kind, options)
        files = _listed(listing, path)
        key = (tuple(sorted(options.items())), tuple(file.split_id for file in files))
        found = self._known.get(key)
        if found is None:
            # sessions of one engine infer at once: each step is right whatever another one removes
            while len(self._known) >= _REMEMBERED:
                self._known.pop(next(iter(self._known), key), None)
            found = self._known[key] = _inferred(table, kind, listing, files)
        return found


def _inferred(table: TableOptions, kind: str, listing: FileListing, files: list[FileSplit]) -> InferredFiles:
    # an empty file has no header, no footer and no rows
    filled = [file for file in files if file.size]
    if not filled:
        name = files[0].path if len(files) == 1 else table.options["path"]
        what = "is empty" if len(files) == 1 else "has empty files only"
        raise PenstockError(
            "DAT-4120",
            f"{redact_url(name)} {what}: nothing says its columns",
            hint=DECLARE,
            kind=Kind.EXTERNAL,
        )
    partitions = _partitions(listing, files)
    options: Mapping[str, str] = {}
    if kind in ("parquet", "arrow"):
        fields, basis = _of_footers(table, kind, listing, filled)
    else:
        fields, options, basis = _of_samples(table, kind, listing, filled)
    if any(not field.name for field in fields):
        # no query could name it
        fields, basis = tuple(field for field in fields if field.name), f"{basis}; {_NAMELESS}"
    # a column of that name in the files is another spelling of the directory's
    inside = tuple(field for field in fields if field.name.lower() not in partitions)
    if not inside:
        message = f"{redact_url(filled[0].path)} has no columns"
        raise PenstockError("DAT-4120", message, hint=DECLARE, kind=Kind.EXTERNAL)
    outside = tuple(Field(name, type_of) for name, type_of in partitions.items())
    return InferredFiles(inside + outside, tuple(partitions), options, basis)


def _listed(listing: FileListing, path: str) -> list[FileSplit]:
    files = listing.files()
    if not files:
        message = f"the directory {redact_url(path)} has no files to read"
        hint = f"names that begin with . or _ are left out; before the files come, {DECLARE}"
        raise PenstockError("DAT-4120", message, hint=hint, kind=Kind.EXTERNAL)
    return files


# formats


def _by_magic(listing: FileListing, files: Iterable[FileSplit]) -> str | None:
    """Return the format that the first bytes of a file name."""
    for file in files:
        if file.size:
            with FileTask(listing.filesystem, file.path, (), ()).open_stream() as stream:
                head = stream.read(8)
            return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    return None


def _mixed_formats(path: str, kinds: Mapping[str | None, FileSplit]) -> PenstockError:
    known = [kind for kind in kinds if kind is not None]
    names = " and ".join(redact_url(file.path).rsplit("/", 1)[-1] for file in list(kinds.values())[:3])
    ending = split_suffixes_text(next(file.path for kind, file in kinds.items() if kind == known[0]))
    return PenstockError(
        "DAT-4124",
        f"{redact_url(path)} has files of several formats: {names}",
        hint=f"give a path that names one kind: '{redact_url(path).rstrip('/')}/**/*{ending}'",
        kind=Kind.EXTERNAL,
    )


def split_suffixes_text(path: str) -> str:
    """Return the suffixes of a file's name that say its format, such as ``.csv.gz``."""
    name = path.rsplit("/", 1)[-1]
    match = re.search(r"(\.\w+(\.(gz|zst|zstd))?)$", name, re.IGNORECASE)
    return match[1] if match else ""


def _no_format(path: str, file: FileSplit) -> PenstockError:
    ending = split_suffixes_text(file.path).lstrip(".").lower()
    shown = redact_url(path)
    hint = _ELSEWHERE.get(ending.rpartition(".")[2]) or (
        f"say it: FROM read_csv('{shown}'), read_json or read_parquet; in CREATE TABLE 'format' = 'csv'"
    )
    message = f"the name of {redact_url(file.path)} does not say its format"
    return PenstockError("DAT-4124", message, hint=hint, kind=Kind.EXTERNAL)


# parquet and arrow: the types are in the files


def _of_footers(
    table: TableOptions, kind: str, listing: FileListing, files: list[FileSplit]
) -> tuple[tuple[Field, ...], str]:
    looked_at = files[:_FOOTERS]
    schemas = [(file.path, file_schema(_task(table, listing, file), kind)) for file in looked_at]
    # by name without case: the name as first written, and the columns of the files that have it
    found: dict[str, list[tuple[str, pa.Field]]] = {}
    for path, schema in schemas:
        _refuse_twice(path, schema)
        for column in schema:
            found.setdefault(column.name.lower(), []).append((path, column))
    _refuse_missing(table, [path for path, _ in schemas], found)
    fields = tuple(Field(columns[0][1].name, _widest(columns)) for columns in found.values())
    count = "all" if len(files) <= _FOOTERS else f"the first {_FOOTERS} of"
    basis = f"{kind}, the types of {redact_url(files[0].path)}"
    return fields, basis if len(files) == 1 else f"{kind}, the types of {count} {len(files)} files"


def _refuse_twice(path: str, schema: pa.Schema) -> None:
    folded = [name.lower() for name in schema.names]
    twice = next((name for name in folded if folded.count(name) > 1), None)
    if twice is not None:
        hint = "names are compared without case: rename one in the file, or declare the other columns"
        message = f"{redact_url(path)} has two columns called {twice}"
        raise PenstockError("DAT-4208", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42702")


def _refuse_missing(
    table: TableOptions, paths: list[str], found: Mapping[str, Sequence[tuple[str, object]]]
) -> None:
    """Refuse a column that some of the files lack, unless the table reads it as NULL."""
    if table.option("source.missing-columns") == "null":
        return
    for name, columns in found.items():
        having = {path for path, _ in columns}
        without = next((path for path in paths if path not in having), None)
        if without is not None:
            message = f"{redact_url(columns[0][0])} has a column {name}, {redact_url(without)} has not"
            hint = (
                "say 'source.missing-columns' = 'null' to read it as NULL there, union_by_name => true in "
                "read_csv and the like"
            )
            raise PenstockError("DAT-4203", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42703")


def _widest(columns: list[tuple[str, pa.Field]]) -> DataType:
    """Return the type as which every file's column is read without a test of its values."""
    candidates = dict.fromkeys(_type_of(path, column) for path, column in columns)
    for kind in candidates:
        if len(candidates) == 1:
            return kind
        fits = [fit(column.type, kind) for _, column in columns]
        if all(one is not None and one <= Fit.WIDER for one in fits):
            return kind
    first = columns[0]
    other = next((each for each in columns if type_name(each[1].type) != type_name(first[1].type)), first)
    message = (
        f"column {first[1].name} is {type_name(first[1].type)} in {redact_url(first[0])} and "
        f"{type_name(other[1].type)} in {redact_url(other[0])}"
    )
    hint = "read them as two tables, each with a path that names its files, and CAST where they meet"
    raise PenstockError("DAT-4205", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42804")


def _type_of(path: str, column: pa.Field) -> DataType:
    try:
        return sql_type(column.type)
    except PenstockError as error:
        message = f"{redact_url(path)}: column {column.name} is {column.type}, which no SQL type holds"
        hint = "declare the other columns: CREATE TABLE t (name STRING, ..) reads no more than these"
        raise PenstockError("DAT-4205", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42804") from error


# csv and JSON: the types are in a sample


def _of_samples(
    table: TableOptions, kind: str, listing: FileListing, files: list[FileSplit]
) -> tuple[tuple[Field, ...], Mapping[str, str], str]:
    looked_at = files[:_SAMPLED]
    most = SAMPLE_BYTES // len(looked_at)
    samples = [read_sample(_task(table, listing, file), most, is_csv=kind == "csv") for file in looked_at]
    whole = len(looked_at) == len(files) and all(sample.whole for sample in samples)
    rows = "all rows" if whole else f"the first {max(1, sum(len(s.data) for s in samples) >> 20)} MB"
    where = redact_url(files[0].path) if len(files) == 1 else f"{len(looked_at)} of {len(files)} files"
    basis = f"{kind}, types that fit {rows} of {where}"
    if kind == "json":
        shape = json_columns(samples, _written_multiline(table))
        return shape.fields, shape.options, basis
    known = frozenset(key for key in table.options if key.startswith("csv."))
    samples = [sample for sample in samples if sample.data.strip()]
    shapes = [csv_columns(sample, dialect_of(table), known) for sample in samples]
    if not shapes:
        message = f"{redact_url(files[0].path)} has no records: nothing says its columns"
        raise PenstockError("DAT-4120", message, hint=DECLARE, kind=Kind.EXTERNAL)
    fields = _common_fields(table, samples, shapes)
    advice = null_literal_advice(_common_null_literals(fields, shapes))
    basis = f"{basis}; {advice}" if advice is not None else basis
    return fields, _common_options(samples, shapes), basis


def _common_null_literals(fields: tuple[Field, ...], shapes: list[TextColumns]) -> dict[str, tuple[str, ...]]:
    """Return the literals of all files, with the columns that are STRING in the table."""
    texts = [field.name for field in fields if field.type == STRING]
    literals = dict.fromkeys(literal for shape in shapes for literal in shape.null_literals)
    return {
        literal: tuple(
            name for name in texts if any(name in shape.null_literals.get(literal, ()) for shape in shapes)
        )
        for literal in literals
    }


def _common_options(samples: list[TextSample], shapes: list[TextColumns]) -> Mapping[str, str]:
    """Return the dialect of all samples. DAT-4122 where they differ in more than line ends in values."""
    # a reader that allows line ends in values also reads files without them
    several_lines = {
        key: text for shape in shapes for key, text in shape.options.items() if key == _MULTILINE
    }
    dialects = [{key: text for key, text in shape.options.items() if key != _MULTILINE} for shape in shapes]
    for sample, dialect in zip(samples, dialects, strict=True):
        if dialect != dialects[0]:
            message = f"{sample.shown} is written in another way than {samples[0].shown}: {_shown(dialect)}"
            hint = "read them as two tables, each with a path that names its files"
            raise PenstockError("DAT-4122", message, hint=hint, kind=Kind.EXTERNAL)
    return dialects[0] | several_lines


def _common_fields(
    table: TableOptions, samples: list[TextSample], shapes: list[TextColumns]
) -> tuple[Field, ...]:
    found: dict[str, list[tuple[str, Field]]] = {}
    # the types of each column where it has a value
    kinds: dict[str, list[DataType]] = {}
    for sample, shape in zip(samples, shapes, strict=True):
        for field in shape.fields:
            found.setdefault(field.name.lower(), []).append((sample.path, field))
            if field.name not in shape.empty:
                kinds.setdefault(field.name.lower(), []).append(field.type)
    _refuse_missing(table, [sample.path for sample in samples], found)
    return tuple(
        Field(columns[0][1].name, _common(frozenset(kinds.get(name, ())))) for name, columns in found.items()
    )


def _written_multiline(table: TableOptions) -> bool | None:
    """Return the option json.multiline, ``None`` where the user did not write it."""
    return bool(table.option("json.multiline")) if "json.multiline" in table.options else None


def _shown(options: Mapping[str, str]) -> str:
    return ", ".join(f"'{key}' = '{text}'" for key, text in options.items()) or "as usual"


def _common(kinds: frozenset[DataType]) -> DataType:
    """Return the type of a csv column whose samples have these: the one that reads the texts of all. STRING
    where no sample has a value.
    """
    if len(kinds) < 2:
        return next(iter(kinds), STRING)
    return next((wider for narrow, wider in _WIDER if kinds <= narrow), STRING)


def _task(table: TableOptions, listing: FileListing, file: FileSplit) -> FileTask:
    declared = table.option("compression")
    kind = format_of(table)
    compression = None if kind == "parquet" or declared == "none" else str(declared)
    if compression == "auto":
        compression = split_suffixes(file.path)[1]
    dialect = dialect_of(table) if kind == "csv" else CsvDialect()
    return FileTask(listing.filesystem, file.path, (), (), compression, dialect)


# stdin


def _format_of_stdin() -> str:
    # one line is enough to tell an object from names
    data, _ = STDIN.sample(SAMPLE_BYTES, 1)
    kind = next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)
    return kind or ("json" if data.lstrip()[:1] in (b"{", b"[") else "csv")


def _of_stdin(table: TableOptions, kind: str) -> InferredFiles:
    fault = pipe_fault(table, partitioned=False, reads=True)
    if fault is not None:
        raise PenstockError("SQL-1047", fault[0], hint=fault[1], sqlstate="0A000")
    dialect = dialect_of(table) if kind == "csv" else CsvDialect()
    # names and a record, or one object
    data, ended = STDIN.sample(SAMPLE_BYTES, 2 if kind == "csv" and dialect.header else 1)
    if not data.strip():
        hint = (
            "pipe rows into it: cat rows.csv | penstock -c \"SELECT * FROM read_csv('-')\"; statements come "
            "from -c or -f then"
        )
        raise PenstockError(
            "DAT-4120", "stdin is empty: nothing says its columns", hint=hint, kind=Kind.EXTERNAL
        )
    if dialect.encoding != UTF_8:
        # a character may be cut off at the end
        data = codecs.getincrementaldecoder(dialect.encoding)("replace").decode(data).encode()
    data = data if ended else data[: data.rfind(b"\n") + 1] or data
    sample = TextSample("stdin", data, ended, kind == "csv")
    known = frozenset(key for key in table.options if key.startswith("csv."))
    if kind == "csv":
        shape = csv_columns(sample, dialect, known)
    else:
        shape = json_columns([sample], _written_multiline(table))
    rows = "all rows" if ended else f"the first {data.count(10)} lines"
    return InferredFiles(shape.fields, (), shape.options, f"{kind}, types that fit {rows} of stdin")


# partitions


def _partitions(listing: FileListing, files: list[FileSplit]) -> dict[str, DataType]:
    """Return the columns of partition directories and their types, which all values fit. DAT-4110 where
    files lie below different ones.
    """
    values: dict[str, list[str | None]] = {}
    for number, file in enumerate(files):
        found = partition_values(listing.relative(file.path))
        if number and set(found) != set(values):
            odd = next(iter(set(found) ^ set(values)))
            message = f"{redact_url((file if odd in values else files[0]).path)} is in no directory {odd}=.."
            hint = "give a path that names files of one depth, such as 'directory/*/*.parquet'"
            raise PenstockError("DAT-4110", message, hint=hint, kind=Kind.EXTERNAL)
        for name, value in found.items():
            values.setdefault(name, []).append(value)
    return {name: _partition_type(texts) for name, texts in values.items()}


def _partition_type(texts: Iterable[str | None]) -> DataType:
    there = {text for text in texts if text is not None}
    # 18 digits always fit
    if there and all(re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII) for text in there):
        return BIGINT
    dates = there and all(
        re.fullmatch(r"\d{4}-(0\d|1[0-2])-([0-2]\d|3[01])", text, re.ASCII) for text in there
    )
    return DATE if dates else STRING
