"""CSV files: blocks parsed straight into typed columns. Only a block that fails is split to find its bad
records.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import DayTimeInterval, String, TimestampLtz, to_arrow
from penstock.engine.formats.column_adapter import the_one
from penstock.engine.formats.decoded_batch import Decoded, batch_of, escaped
from penstock.engine.formats.fast_csv import PlainCsv
from penstock.engine.formats.file_task import FileTask
from penstock.engine.formats.line_reader import Blocks, LineReader
from penstock.engine.formats.record_blocks import Block, RecordBlocks, record_ends
from penstock.engine.formats.text_conversion import checked, from_text

# the wording of Arrow's csv reader
_COUNT_AT_FAULT = re.compile(r"Expected (\d+) columns, got (\d+)")


class CsvReader(LineReader):
    """Reads one csv file, or the records that begin in a range of its bytes; or ``blocks``, whose header has
    ``names``.
    """

    def __init__(
        self,
        task: FileTask,
        anchor: dict[str, Any] | None,
        blocks: Blocks | None = None,
        names: list[str] | None = None,
    ) -> None:
        self._csv = CsvParser(task, names)
        super().__init__(
            task, anchor, self._csv, task.dialect.quote.encode() if task.dialect.multiline else None, blocks
        )
        # a resumed reader, and a range that is not the first, begin after the header
        self._skip_header = task.dialect.header and not self._resumed and task.start == 0

    def _next_block(self) -> Block | None:
        block = super()._next_block()
        if block is not None and self._skip_header:
            self._skip_header = False
            end = int(record_ends(block.data, self._quote)[0])
            block = Block(block.data[end:], block.offset + end)
        return block

    def _decode(self, block: Block) -> Decoded:
        # first our own kernels; None: the block needs Arrow's parser
        rows = self._csv.plain(block.data)
        return super()._decode(block) if rows is None else Decoded(rows, self._ordinal, rows.num_rows)


class CsvParser:
    """Turns bytes of whole csv records into a batch of the wanted columns."""

    def __init__(self, task: FileTask, names: list[str] | None = None) -> None:
        self._wanted = task.wanted
        self._quote = task.dialect.quote.encode()
        self._names = (
            names
            or (header_names(task) if task.dialect.header else None)
            or [field.name for field in task.declared]
        )
        positions = [csv_position(field, self._names, task.path) for field in task.wanted]
        # columns are named by position: a header may have a name twice
        self._columns = [f"c{index}" for index in range(len(self._names))]
        # for COUNT(*) one column is parsed, since rows are counted by it
        self._include = [self._columns[index] for index in positions] or self._columns[:1]
        self._types = {
            self._columns[index]: _wire_type(field)
            for index, field in zip(positions, task.wanted, strict=True)
        }
        dialect = task.dialect
        self._parse = arrow_csv.ParseOptions(
            delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=dialect.multiline
        )
        # an unquoted empty value is NULL whatever the null literal is
        self._nulls = sorted({"", dialect.null_literal})
        self._plain = PlainCsv(
            task.wanted, positions, len(self._names), dialect.delimiter, dialect.quote, dialect.null_literal
        )

    def plain(self, data: bytes) -> pa.RecordBatch | None:
        """Return the rows of a plain block, else ``None``. A plain block has no quotes, a value per column in
        every record, and only common spellings.
        """
        columns = self._plain.columns(data)
        return None if columns is None else batch_of(columns, self._wanted, len(columns[0]))

    def parse(self, data: bytes) -> pa.RecordBatch | None:
        """Return the rows of whole records; ``None`` when a value or a record does not fit, or the end is
        inside quotes.
        """
        # no bytes: no rows, with the right columns
        if not data:
            return batch_of([pa.nulls(0, to_arrow(field.type)) for field in self._wanted], self._wanted, 0)
        # Arrow accepts an end of data inside quotes: look for it in the last record, or in all
        last = 0 if self._parse.newlines_in_values else data.rfind(b"\n", 0, len(data) - 1) + 1
        try:
            if data.count(self._quote, last) % 2 and not self._ends(data[last:]):
                return None
            return self._typed(data)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None

    def _ends(self, record: bytes) -> bool:
        """Return whether a record with an odd number of quotes is complete: written twice, it must parse as
        two rows.
        """
        return self._read(record + b"\n" + record, self._include, self._types).num_rows == 2

    def _typed(self, data: bytes) -> pa.RecordBatch:
        try:
            return self._columns_of(data, self._types)
        except pa.ArrowInvalid:
            # every value by the rule of CAST
            return self._columns_of(data, dict.fromkeys(self._types, pa.string()))

    def _columns_of(self, data: bytes, types: dict[str, pa.DataType]) -> pa.RecordBatch:
        table = self._read(data, self._include, types)
        arrays = []
        for index, field in enumerate(self._wanted):
            column = (
                table.column(index).combine_chunks()
                if table.column(index).num_chunks != 1
                else table.column(index).chunk(0)
            )
            # Arrow has parsed the declared type, or a text that our own rule converts
            arrays.append(
                checked(column, data)
                if column.type == to_arrow(field.type)
                else from_text(column, field.type)
            )
        return batch_of(arrays, self._wanted, table.num_rows)

    def _read(self, data: bytes, include: list[str], types: dict[str, pa.DataType]) -> pa.Table:
        return arrow_csv.read_csv(
            pa.BufferReader(data),
            read_options=arrow_csv.ReadOptions(
                # one block: a record never spans two, and rows keep their order; slots are the parallelism
                use_threads=False,
                block_size=len(data) + 1,
                column_names=self._columns,
            ),
            parse_options=self._parse,
            convert_options=arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=include,
                null_values=self._nulls,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["true", "TRUE", "True"],
                false_values=["false", "FALSE", "False"],
            ),
        )

    def rows_of(self, decoded: Decoded) -> Decoded:
        """Return the records, which are the rows."""
        return decoded

    def explain(self, raw: bytes) -> tuple[str | None, str]:
        """Return the column at fault and the error of one bad record."""
        try:
            # as bytes, so that a record that is not UTF-8 can still be shown
            texts = self._read(raw, self._columns, dict.fromkeys(self._columns, pa.binary()))
        except pa.ArrowInvalid as error:
            counted = _COUNT_AT_FAULT.search(str(error))
            if counted is not None:
                return None, f"{counted[2]} values where the file has {counted[1]} columns"
            return None, str(error).split("\n")[0].removeprefix("CSV parse error: ")[:200]
        # a line end inside an open quote made more or fewer rows of it
        if texts.num_rows != 1:
            return None, "a quoted value does not end"
        # value by value: the first that does not convert is at fault
        for name, field in zip(self._include, self._wanted, strict=False):
            value = texts.column(name)[0].as_py()
            reason = self._why(raw, name, field)
            if reason is not None:
                shown = "NULL" if value is None else f"'{escaped(value)}'"
                wrong = (
                    f"has a zone, {field.type} has none"
                    if "zone" in reason
                    else f"is not a valid {field.type}"
                )
                return field.name, f"{shown} {wrong}"
        return None, "a quoted value does not end"

    def _why(self, raw: bytes, name: str, field: Field) -> str | None:
        try:
            column = self._read(raw, [name], {name: pa.string()}).column(0).combine_chunks()
            if not isinstance(field.type, String):
                from_text(column, field.type)
        except pa.ArrowInvalid as error:
            return str(error)
        return None


def header_names(task: FileTask) -> list[str] | None:
    """Return the column names in the first record of a file, ``None`` for an empty file. DAT-4202 when it
    cannot be read.
    """
    quote = task.dialect.quote.encode() if task.dialect.multiline else None
    blocks = RecordBlocks(
        # the file itself, not the range of the task: its header is at the start
        FileTask(task.filesystem, task.path, (), (), task.compression, task.dialect),
        0 if task.is_plain else None,
        quote,
        1 << 16,
    )
    try:
        block = blocks.next()
    finally:
        blocks.close()
    if block is None:
        return None
    return names_of(block.data[: int(record_ends(block.data, quote)[0])], task)


def names_of(line: bytes, task: FileTask) -> list[str]:
    """Return the column names in a header. DAT-4202 when it cannot be read."""
    options = arrow_csv.ReadOptions(use_threads=False, autogenerate_column_names=True)
    parse = arrow_csv.ParseOptions(
        delimiter=task.dialect.delimiter,
        quote_char=task.dialect.quote,
        newlines_in_values=task.dialect.multiline,
    )
    try:
        table = arrow_csv.read_csv(
            # a file may end with its header, and without a line end
            pa.BufferReader(line if line.endswith(b"\n") else line + b"\n"),
            read_options=options,
            parse_options=parse,
            # every name as text; quoted delimiters make the count too high, which does no harm
            convert_options=_texts(line.count(task.dialect.delimiter.encode()) + 1),
        )
    except pa.ArrowInvalid as error:
        raise PenstockError(
            "DAT-4202",
            f"the header of {task.path} cannot be read",
            detail=str(error)[:200],
            hint="it is no text in this encoding: set 'csv.encoding' to what it is in, or 'compression'",
            kind=Kind.EXTERNAL,
        ) from error
    # carriage returns alone: to Arrow they end lines, to our reader the whole file is one
    if table.num_rows > 1:
        raise PenstockError(
            "DAT-4202",
            f"the lines of {task.path} end in a carriage return alone",
            hint="write line feeds: tr '\\r' '\\n' < FILE > NEW",
            kind=Kind.EXTERNAL,
        )
    # names are compared without surrounding blanks; one that is blank gets a name, as in DuckDB
    names = [str(column[0].as_py()).strip() for column in table.columns]
    return [name or f"column{index}" for index, name in enumerate(names)]


def _texts(columns: int) -> arrow_csv.ConvertOptions:
    types = dict.fromkeys((f"f{index}" for index in range(columns)), pa.string())
    return arrow_csv.ConvertOptions(column_types=types, strings_can_be_null=False, null_values=[])


def csv_position(field: Field, names: Sequence[str], path: str) -> int:
    """Return the index of a column in the records of a file with these columns. DAT-4203 when none has its
    name, DAT-4208 when several do.
    """
    try:
        return the_one(path, names, field)
    except PenstockError as error:
        # frequent mistakes have a hint of their own
        if any(delimiter in names[0] for delimiter in ";\t|,") and len(names) == 1:
            error.hint = "the header has one column only: is 'csv.delimiter' right?"
        elif error.code == "DAT-4203" and any(re.fullmatch(r"\s*[-+]?\d*\.?\d+\s*", name) for name in names):
            error.hint = "the first line holds no names: is 'csv.header' = 'false' missing?"
        elif not all(name.isprintable() for name in names):
            error.hint = "the first line is no text: is the file packed, or in another format or encoding?"
        raise


def _wire_type(field: Field) -> pa.DataType:
    """Return the type Arrow's reader converts to: the declared one, or text where our rule differs."""
    # Arrow reads no instants without a zone and no intervals
    if isinstance(field.type, TimestampLtz | DayTimeInterval):
        return pa.string()
    arrow = to_arrow(field.type)
    if pa.types.is_nested(arrow):
        message = f"column {field.name} of type {field.type} cannot be read from a csv file"
        raise PenstockError("DAT-4204", message, hint="declare it STRING, or use format json or parquet")
    return pa.string() if isinstance(field.type, String) else arrow
