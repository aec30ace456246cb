"""Writers of rows, one a format. They write data only and flush every batch, so endless results can be
piped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from penstock.repl.output.cell_text import json_column, json_string, text_column
from penstock.repl.output.table_rendering import (
    Look,
    columns_of,
    fitted_widths,
    table_lines,
    vertical_lines,
)


class Writer(Protocol):
    """Takes the columns once, then batches, then the end."""

    def begin(self, schema: pa.Schema, kinds: list[str]) -> None:
        """Take the columns: Arrow fields and the SQL types' names."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Write and flush a batch."""

    def end(self) -> None:
        """Write what closes the output."""


class CsvWriter:
    """RFC 4180 with a header: NULL is an empty field, the empty string is ``""``."""

    separator = ","

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def begin(self, schema: pa.Schema, kinds: list[str]) -> None:
        # names are quoted by the same rule as values
        header = _row_array([self.field(pa.array([name])) for name in schema.names], self.separator)
        _write_lines(self._out, header)

    def write(self, rows: pa.RecordBatch) -> None:
        _write_lines(
            self._out,
            _row_array([self.field(text_column(column)) for column in rows.columns], self.separator),
        )

    def end(self) -> None:
        self._out.flush()

    def field(self, text: pa.Array) -> pa.Array:
        """Return one column's fields, quoted where they must be."""
        quoted = pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', "")
        # quotes, separators, line ends, and blanks at the edges that readers would trim
        needs = pc.or_(pc.match_substring_regex(text, r'[",\r\n]|^\s|\s$'), pc.equal(text, ""))
        # NULL is nothing, '' is "": readers can tell them apart
        return pc.fill_null(pc.if_else(needs, quoted, text), "")


class TsvWriter(CsvWriter):
    r"""Tab-separated with a header: tabs, line ends and backslashes as ``\t \n \\``, NULL as ``\N``."""

    separator = "\t"

    def field(self, text: pa.Array) -> pa.Array:
        # the backslash first, else it would escape the escapes
        for character, escape in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
            text = pc.replace_substring(text, character, escape)
        # as COPY of PostgreSQL writes it; a text \N is \\N
        return pc.fill_null(text, "\\N")


class JsonlWriter:
    """One JSON object a line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._names: list[str] = []

    def begin(self, schema: pa.Schema, kinds: list[str]) -> None:
        self._names = json_string(pa.array(schema.names, pa.string())).to_pylist()

    def write(self, rows: pa.RecordBatch) -> None:
        _write_lines(self._out, self.objects(rows))

    def end(self) -> None:
        self._out.flush()

    def objects(self, rows: pa.RecordBatch) -> pa.Array:
        """Return one JSON object per row."""
        parts: list[object] = []
        for position, column in enumerate(rows.columns):
            # {"a": 1, "b": 2}: constants and columns in turn, joined by one kernel
            parts += [("{" if position == 0 else ", ") + self._names[position] + ": ", json_column(column)]
        return pc.binary_join_element_wise(*parts, "}", "")


class JsonWriter(JsonlWriter):
    """One JSON array of objects."""

    # before the first object; ",\n" from the second on, so that rows can be written as they come
    _separator = "[\n"

    def write(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            self._out.write(self._separator)
            self._out.write(_joined(self.objects(rows), ",\n"))
            self._out.flush()
            self._separator = ",\n"

    def end(self) -> None:
        # no rows: an empty array, which is still JSON
        self._out.write("[]\n" if self._separator == "[\n" else "\n]\n")
        self._out.flush()


class MarkdownWriter:
    """A GitHub table."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def begin(self, schema: pa.Schema, kinds: list[str]) -> None:
        numeric = [
            pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_decimal(f.type)
            for f in schema
        ]
        self._out.write(
            "| " + " | ".join(_markdown(pa.array(schema.names, pa.string())).to_pylist()) + " |\n"
        )
        self._out.write("|" + "|".join("---:" if right else "---" for right in numeric) + "|\n")

    def write(self, rows: pa.RecordBatch) -> None:
        cells = [pc.fill_null(_markdown(text_column(column)), "NULL") for column in rows.columns]
        _write_lines(self._out, pc.binary_join_element_wise("| ", _row_array(cells, " | "), " |", ""))

    def end(self) -> None:
        self._out.flush()


class ArrowStreamWriter:
    """An Arrow IPC stream on the binary side of the output."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._stream: pa.RecordBatchStreamWriter | None = None

    def begin(self, schema: pa.Schema, kinds: list[str]) -> None:
        self._out.flush()
        # binary, so the text layer is flushed first and not used again
        self._stream = pa.ipc.new_stream(self._out.buffer, schema)

    def write(self, rows: pa.RecordBatch) -> None:
        assert self._stream is not None
        self._stream.write_batch(rows)
        self._out.buffer.flush()

    def end(self) -> None:
        assert self._stream is not None
        self._stream.close()
        self._out.buffer.flush()


class TableWriter:
    """A table of rows as they come. The heading comes with the first batch, later batches follow in the
    same widths (grown, never shrunk).
    """

    def __init__(self, out: TextIO, look: Look) -> None:
        self._out = out
        self._look = look
        self._widths: list[int] | None = None

    def begin(self, schema: pa.Schema, kinds: list[str]) -> None:
        self._schema, self._kinds = schema, kinds

    def write(self, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        table = pa.Table.from_batches([rows])
        fitted = fitted_widths(columns_of(table, self._kinds, self._look), self._look.width)
        heading = self._widths is None
        # on a terminal all batches have the first widths; in a file a later one may be wider
        self._widths = (
            fitted
            if self._widths is None or self._look.width is not None
            else list(map(max, self._widths, fitted))
        )
        lines = table_lines(table, self._kinds, self._look, widths=self._widths, heading=heading)
        self._out.write("\n".join(lines) + "\n")
        self._out.flush()

    def end(self) -> None:
        # no batch has come: the heading alone
        if self._widths is None:
            empty = pa.Table.from_batches([], self._schema)
            self._out.write("\n".join(table_lines(empty, self._kinds, self._look)) + "\n")
        self._out.flush()


class VerticalWriter:
    """One field a line."""

    def __init__(self, out: TextIO, look: Look) -> None:
        self._out = out
        self._look = look
        self._rows = 0

    def begin(self, schema: pa.Schema, kinds: list[str]) -> None:
        self._kinds = kinds

    def write(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            lines = vertical_lines(pa.Table.from_batches([rows]), self._kinds, self._look, self._rows + 1)
            self._rows += rows.num_rows
            self._out.write("\n".join(lines) + "\n")
            self._out.flush()

    def end(self) -> None:
        if not self._rows:
            self._out.write("(no rows)\n")
        self._out.flush()


FORMATS = ("table", "csv", "tsv", "json", "jsonl", "markdown", "vertical", "arrow")
MACHINE_FORMATS = frozenset({"csv", "tsv", "json", "jsonl", "arrow"})


def writer_for(name: str, out: TextIO, look: Look) -> Writer:
    """Return the writer of a format (one of ``FORMATS``)."""
    match name:
        case "table":
            return TableWriter(out, look)
        case "vertical":
            return VerticalWriter(out, look)
    plain: dict[str, Callable[[TextIO], Writer]] = {
        "csv": CsvWriter,
        "tsv": TsvWriter,
        "json": JsonWriter,
        "jsonl": JsonlWriter,
        "markdown": MarkdownWriter,
        "arrow": ArrowStreamWriter,
    }
    return plain[name](out)


def _row_array(fields: list[pa.Array], separator: str) -> pa.Array:
    return pc.binary_join_element_wise(*fields, separator)


def _joined(lines: pa.Array, separator: str) -> str:
    # one list of all lines: binary_join makes one string without a Python loop
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(whole, separator)[0].as_py()


def _write_lines(out: TextIO, lines: pa.Array) -> None:
    if len(lines):
        out.write(_joined(lines, "\n") + "\n")
    out.flush()


def _markdown(text: pa.Array) -> pa.Array:
    # a bar or a line end would end the cell
    for character, escape in (("|", "\\|"), ("\r", ""), ("\n", "<br>")):
        text = pc.replace_substring(text, character, escape)
    return text
