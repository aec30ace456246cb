"""Columns of csv and JSON files, inferred from a sample of their bytes. DuckDB's sniffer proposes names,
types and dialect; each type is then tested by the rule that our readers have.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.secrets import redact_url
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    VARIANT,
    DataType,
    Decimal,
    from_arrow,
)
from penstock.engine.connectors.filesystem.null_literals import likely_null_literals
from penstock.engine.connectors.filesystem.sample_checks import (
    TextSample,
    delimiter_of_header,
    refuse_binary,
    refuse_mixed_ends,
    refuse_no_csv,
    refuse_odd_records,
)
from penstock.engine.formats.csv import header_names
from penstock.engine.formats.file_task import UTF_8, CsvDialect, FileTask
from penstock.engine.formats.json_documents import DocumentLines
from penstock.engine.formats.json_lines import JsonParser
from penstock.engine.formats.record_blocks import MAX_RECORD_BYTES
from penstock.engine.formats.text_conversion import from_text

_BOM = b"\xef\xbb\xbf"
# DuckDB's names of the types that its csv sniffer proposes; any other is read as text
_SNIFFED: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN,
    "BIGINT": BIGINT,
    "HUGEINT": Decimal(38, 0),
    "DOUBLE": DOUBLE,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": TIMESTAMP_LTZ,
}
_NOTHING = ("(empty)", "")  # a quote that the sniffer has not seen
DECLARE = "declare the columns: CREATE TABLE t (name STRING, ..) WITH ('connector' = 'filesystem', ..)"
_OBJECTS = "our json reader reads objects, one a line or in an array"


@dataclass(frozen=True)
class TextColumns:
    """The columns of a sample. ``options``: what of the dialect differs from the defaults. ``empty``: the
    columns that have no value in the sample, so that their type is unknown. ``null_literals``: texts that
    seem to be NULL, and the columns that are STRING because of each.
    """

    fields: tuple[Field, ...]
    options: Mapping[str, str]
    empty: frozenset[str] = frozenset()
    null_literals: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


def read_sample(task: FileTask, most: int, *, is_csv: bool = True) -> TextSample:
    """Return the first whole lines of a file, about ``most`` bytes."""
    with task.open_stream() as file:
        try:
            data = file.read(most + 1)
        except UnicodeError as error:
            raise task.undecodable(error) from error
        except (OSError, pa.ArrowInvalid) as error:
            message = f"{redact_url(task.path)} is not valid {task.compression} data, or is cut off"
            hint = "copy the file again; where it is not compressed, write 'compression' = 'none'"
            raise PenstockError(
                "DAT-4106", message, detail=str(error)[:200], hint=hint, kind=Kind.EXTERNAL
            ) from error
    whole = len(data) <= most
    if not whole:
        # the last line is cut off: without it, unless it is the only one
        data = data[: data.rfind(b"\n", 0, most) + 1] or data
    return TextSample(task.path, data.removeprefix(_BOM), whole, is_csv)


def csv_columns(sample: TextSample, dialect: CsvDialect, known: frozenset[str]) -> TextColumns:
    """Return the columns of a csv sample. ``known``: the options of ``dialect`` that the user wrote."""
    refuse_binary(sample)
    refuse_no_csv(sample)
    # the last line may lack its end; it gets that of the line before, as the sniffer reads one kind of them
    if not sample.data.endswith(b"\n"):
        before = sample.data.rfind(b"\n")
        ends = b"\r\n" if before > 0 and sample.data[before - 1 : before] == b"\r" else b"\n"
        sample = replace(sample, data=sample.data + ends)
    # a sample is UTF-8 already
    dialect = replace(dialect, encoding=UTF_8)
    with _in_file(sample.data) as path, duckdb.connect(config={"threads": 1}) as connection:
        shape = _sniffed(connection, path, sample, dialect, known)
        found = _dialect(shape, dialect, known)
        refuse_odd_records(sample, found, len(shape["Columns"]))
        texts = _texts(connection, path, found, len(shape["Columns"]))
        options = _differences(found, known)
        # a line end in a value: lines are no records then
        if "csv.multiline" not in known and _holds_line_ends(texts):
            options["csv.multiline"], found = "true", replace(found, multiline=True)
        names = [str(column["name"]) for column in shape["Columns"]]
        if found.header:
            task = FileTask(pafs.LocalFileSystem(), path, (), (), None, found)
            first = header_names(task) or names
            # our reader finds columns by the header's own names
            names = first if len(first) == len(names) else names
    _refuse_repeated(names, sample)
    kinds = [_SNIFFED.get(str(column["type"]), STRING) for column in shape["Columns"]]
    fields = tuple(
        Field(name, _fitting(texts.column(index), kind))
        for index, (name, kind) in enumerate(zip(names, kinds, strict=True))
    )
    empty = (
        name for name, column in zip(names, texts.columns, strict=True) if column.null_count == len(column)
    )
    literals = {} if "csv.null-literal" in known else likely_null_literals(fields, texts)
    return TextColumns(fields, options, frozenset(empty), literals)


def json_columns(samples: list[TextSample], multiline: bool | None = None) -> TextColumns:
    """Return the columns of samples of JSON objects; any object may lack any column.

    ``multiline``: whether they may span lines or be in arrays; ``None``: as the samples begin.
    """
    for sample in samples:
        refuse_binary(sample)
    documents = any(map(_begins_document, samples)) if multiline is None else multiline
    lines = [_as_lines(sample) for sample in samples] if documents else samples
    for sample, original in zip(lines, samples, strict=True):
        _refuse_other_records(sample, original)
    data = b"\n".join(sample.data.rstrip(b"\n") for sample in lines) + b"\n"
    shown = samples[0].shown
    if not data.strip():
        message = f"{shown} has no records: nothing says its columns"
        raise PenstockError("DAT-4120", message, hint=DECLARE, kind=Kind.EXTERNAL)
    schema = _sniffed_objects(data, shown)
    fields = [Field(column.name, from_arrow(_named(column.type))) for column in schema]
    _refuse_names_that_differ_in_case([field.name for field in fields], data, shown)
    options = {"json.multiline": "true"} if documents and multiline is None else {}
    return TextColumns(tuple(_readable(field, data, shown) for field in fields), options)


@contextmanager
def _in_file(data: bytes) -> Iterator[str]:
    """Write bytes to a temporary file: DuckDB sniffs files only, and reads some names as patterns."""
    with tempfile.TemporaryDirectory(prefix="penstock-sample-") as directory:
        path = Path(directory) / "sample"
        path.write_bytes(data)
        yield str(path)


# csv


def _sniffed(
    connection: duckdb.DuckDBPyConnection,
    path: str,
    sample: TextSample,
    dialect: CsvDialect,
    known: frozenset[str],
) -> dict[str, Any]:
    """Return what DuckDB's sniffer says of a sample, by its names of columns."""
    arguments: dict[str, object] = {"sample_size": -1, "max_line_size": MAX_RECORD_BYTES}
    # what the user wrote is not sniffed
    for key, name, value in (
        ("csv.delimiter", "delim", dialect.delimiter),
        ("csv.quote", "quote", dialect.quote),
        ("csv.header", "header", dialect.header),
    ):
        if key in known:
            arguments[name] = value
    if "csv.quote" in known:
        arguments["escape"] = dialect.quote
    arguments["nullstr"] = sorted({"", dialect.null_literal})
    failure: duckdb.Error | None = None
    shape: dict[str, Any] = {"Columns": []}
    try:
        shape = _shape(connection, path, arguments)
    except duckdb.Error as error:
        failure = error
    # no columns or one: are there records of another width than the header? they are bad records then
    if len(shape["Columns"]) < 2:
        delimiter = dialect.delimiter if "csv.delimiter" in known else delimiter_of_header(sample, dialect)
        if delimiter is not None:
            with suppress(duckdb.Error):
                cut = _shape(connection, path, {**arguments, "delim": delimiter, "ignore_errors": True})
                shape = cut if len(cut["Columns"]) > 1 else shape
    if not shape["Columns"]:
        assert failure is not None
        refuse_mixed_ends(sample)
        hint = "say how it is written, for instance 'csv.delimiter' = ';', or declare its columns"
        raise _not_inferred(sample.shown, failure, hint) from failure
    if (skipped := int(shape["SkipRows"])) > 0:
        message = (
            f"{sample.shown} begins with {skipped} line{'s' if skipped != 1 else ''} of another width than "
            "its records"
        )
        hint = f"remove them first: tail -n +{skipped + 1} FILE > NEW"
        raise PenstockError("DAT-4122", message, hint=hint, kind=Kind.EXTERNAL)
    return shape


def _shape(
    connection: duckdb.DuckDBPyConnection, path: str, arguments: Mapping[str, object]
) -> dict[str, Any]:
    """Return the row of DuckDB's sniff_csv by its columns."""
    named = ", ".join(f"{name} = ${name}" for name in arguments)
    cursor = connection.execute(f"FROM sniff_csv($path, {named})", {"path": path, **arguments})
    (row,) = cursor.fetchall()
    assert cursor.description is not None
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def _dialect(shape: Mapping[str, Any], dialect: CsvDialect, known: frozenset[str]) -> CsvDialect:
    found = replace(dialect)
    if "csv.delimiter" not in known:
        found = replace(found, delimiter=str(shape["Delimiter"]))
    if "csv.quote" not in known and shape["Quote"] not in _NOTHING:
        found = replace(found, quote=str(shape["Quote"]))
    return found if "csv.header" in known else replace(found, header=bool(shape["HasHeader"]))


def _differences(found: CsvDialect, known: frozenset[str]) -> dict[str, str]:
    """Return the options of a sniffed dialect that differ from the defaults, as a WITH clause has them."""
    usual = CsvDialect()
    options = {}
    if found.delimiter != usual.delimiter:
        options["csv.delimiter"] = "\\t" if found.delimiter == "\t" else found.delimiter
    if found.quote != usual.quote:
        options["csv.quote"] = found.quote
    if not found.header:
        options["csv.header"] = "false"
    return {key: text for key, text in options.items() if key not in known}


def _texts(connection: duckdb.DuckDBPyConnection, path: str, dialect: CsvDialect, width: int) -> pa.Table:
    """Return the values of a sample as texts, without records that cannot be read."""
    columns = {f"c{index}": "VARCHAR" for index in range(width)}
    query = (
        "SELECT * FROM read_csv($path, auto_detect = false, columns = $columns, delim = $delim, "
        "quote = $quote, escape = $quote, header = $header, nullstr = $nulls, ignore_errors = true, "
        "allow_quoted_nulls = false, max_line_size = $most)"
    )
    arguments = {
        "path": path,
        "columns": columns,
        "delim": dialect.delimiter,
        "quote": dialect.quote,
        "header": dialect.header,
        "nulls": sorted({"", dialect.null_literal}),
        "most": MAX_RECORD_BYTES,
    }
    return connection.sql(query, params=arguments).to_arrow_table().combine_chunks()


def _holds_line_ends(texts: pa.Table) -> bool:
    return any(bool(pc.any(pc.match_substring(column, "\n")).as_py()) for column in texts.columns)


def _fitting(texts: pa.ChunkedArray, kind: DataType) -> DataType:
    """Return the sniffed type where our readers read all texts as it, else a wider one, at last STRING."""
    column = texts.combine_chunks() if texts.num_chunks != 1 else texts.chunk(0)
    # nothing but NULL: nothing is known of it
    if column.null_count == len(column):
        return STRING
    candidates = [kind]
    if kind == BIGINT:
        candidates.append(DOUBLE)
    # to DuckDB's sniffer an infinity is a text or a date
    elif kind != DOUBLE and _holds_infinity(column):
        candidates.insert(0, DOUBLE)
    for candidate in candidates:
        try:
            from_text(column, candidate)
        except pa.ArrowInvalid:
            continue
        return candidate
    return STRING


def _holds_infinity(texts: pa.Array) -> bool:
    unsigned = pc.utf8_ltrim(pc.utf8_lower(texts), "+-")
    return bool(pc.any(pc.is_in(unsigned, pa.array(["inf", "infinity"]))).as_py())


def _refuse_repeated(names: list[str], sample: TextSample) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            message = f"{sample.shown} has two columns called {name}"
            hint = (
                "names are compared without case: rename one of them in the first line, or read it as a row: "
                f"read_csv('{sample.shown}', header => false)"
            )
            raise PenstockError("DAT-4208", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42702")
        seen[name.lower()] = name


# JSON


def _sniffed_objects(data: bytes, shown: str) -> pa.Schema:
    """Return the fields of objects, one a line, as DuckDB's sniffer has them. DAT-4121 where it has none."""
    query = (
        "SELECT * FROM read_json($path, format = 'newline_delimited', records = true, sample_size = -1, "
        f"ignore_errors = true, maximum_object_size = {MAX_RECORD_BYTES}{{maps}}) LIMIT 0"
    )
    # other lines are bad whatever the columns; a number would make the sniffer refuse all
    objects = b"\n".join(line for line in data.split(b"\n") if line.lstrip()[:1] == b"{")
    with _in_file(objects) as path, duckdb.connect(config={"threads": 1}) as connection:
        failure: duckdb.Error | None = None
        # objects with more than 200 names seem to be one MAP each, which are no records: none is a MAP then
        for maps in ("", ", map_inference_threshold = -1"):
            try:
                found = connection.sql(query.format(maps=maps), params={"path": path})
                return found.to_arrow_table().schema
            except duckdb.Error as error:
                failure = error
    assert failure is not None
    raise _not_inferred(shown, failure, f"{_OBJECTS}; or {DECLARE}") from failure


def _begins_document(sample: TextSample) -> bool:
    """Whether a sample begins with an array, or with an object that its first line does not end."""
    text = sample.data.lstrip()
    return text.startswith(b"[") or (text.startswith(b"{") and not _is_object(_first_line(text)))


def _as_lines(sample: TextSample) -> TextSample:
    """Return a sample of documents as one of lines: whole records, unless it holds none."""
    lines = DocumentLines().lines_of(sample.data)
    if not sample.whole:
        lines = lines[: lines.rfind(b"\n") + 1] or lines
    return replace(sample, data=lines)


def _refuse_other_records(sample: TextSample, original: TextSample) -> None:
    """Refuse a sample of lines whose first begins as an array or object and is no whole object."""
    first = _first_line(sample.data.lstrip())
    if original.data.lstrip().startswith(b"[") and first and not first.startswith(b"{"):
        hint = f"make objects of them: jq -c '.[] | {{value: .}}' {sample.shown} > rows.jsonl"
        message = f"the elements of the JSON array {sample.shown} are no objects"
        raise PenstockError("DAT-4122", message, hint=hint, kind=Kind.EXTERNAL)
    if first.startswith(b"{") and not _is_object(first):
        hint = f"is it whole? jq -c . {sample.shown} says where it is no JSON"
        message = f"the first object of {sample.shown} is no JSON"
        raise PenstockError("DAT-4122", message, hint=hint, kind=Kind.EXTERNAL)


def _first_line(text: bytes) -> bytes:
    return text.partition(b"\n")[0].strip()


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _refuse_names_that_differ_in_case(names: list[str], data: bytes, shown: str) -> None:
    """Refuse a sample with fields such as a and A: DuckDB calls the second one A_1, which no object has."""
    for name in names:
        first = re.fullmatch(r"(.+)_\d+", name)
        if first is None or first[1].lower() not in (other.lower() for other in names):
            continue
        if not any(json.dumps(name, ensure_ascii=ascii).encode() in data for ascii in (True, False)):
            message = f"{shown} has two columns called {first[1]}"
            hint = "names are compared without case: rename one in the file, or declare the other columns"
            raise PenstockError("DAT-4208", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42702")


def _named(kind: pa.DataType) -> pa.DataType:
    """Return a sniffed type as one that has a SQL type: a part that is always null is a text."""
    if isinstance(kind, pa.BaseExtensionType) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_named(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), _named(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _named(part.type)) for part in kind])
    return kind


def _readable(field: Field, data: bytes, shown: str) -> Field:
    """Return a column with a type as which our reader reads the sample. DAT-4123 where there is none."""
    # plain columns may be texts that only look like dates; values of several kinds are VARIANT
    for kind in dict.fromkeys((field.type, STRING, VARIANT)):
        candidate = replace(field, type=kind)
        try:
            if _parses(JsonParser((candidate,)), data):
                return candidate
        except PenstockError:  # DAT-4204: no type of JSON
            continue
    raise PenstockError(
        "DAT-4123",
        f"column {field.name} of {shown} is of no type: {_fault(field, data)}",
        hint=f"leave {field.name} out: declare the other columns with their types, or write it otherwise",
        kind=Kind.EXTERNAL,
    )


def _fault(field: Field, data: bytes) -> str:
    """Return why the first object that no type reads is none."""
    parser = JsonParser((replace(field, type=VARIANT),))
    objects = (line for line in data.split(b"\n") if _is_object(line))
    faults = (parser.explain(line)[1] for line in objects if parser.parse(line + b"\n") is None)
    return next(faults, "its values are of several kinds")


def _parses(parser: JsonParser, data: bytes) -> bool:
    """Whether a parser reads all lines that are JSON objects; other lines are bad whatever the type."""
    if parser.parse(data) is not None:
        return True
    good = [line for line in data.split(b"\n") if _is_object(line)]
    return len(good) < data.count(b"\n") and parser.parse(b"\n".join(good) + b"\n") is not None


def _not_inferred(shown: str, error: duckdb.Error, hint: str) -> PenstockError:
    reason = re.sub(r"/\S*/sample\b", shown, str(error).split("\n")[0])[:200]
    return PenstockError(
        "DAT-4121", f"the columns of {shown} cannot be inferred", detail=reason, hint=hint, kind=Kind.EXTERNAL
    )
