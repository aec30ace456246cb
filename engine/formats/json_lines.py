"""JSON lines: one object per line. A block that fails is split to find its bad records."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as arrow_json

from penstock.catalog.schema import Field
from penstock.catalog.types import Timestamp, Variant, holds, to_arrow
from penstock.engine.formats.decoded_batch import Decoded, batch_of, escaped
from penstock.engine.formats.file_task import FileTask
from penstock.engine.formats.json_documents import DocumentStream
from penstock.engine.formats.json_nested import MapColumn, converted, holds_map, lines_of, wire_type
from penstock.engine.formats.json_variants import VariantColumns
from penstock.engine.formats.line_reader import Blocks, LineReader
from penstock.engine.formats.record_blocks import RecordBlocks

# asked of Arrow where no field is wanted of it: it passes over fields of any type, and counts the objects
_NO_FIELD = pa.field("\0", pa.null())
# a line whose first character is an n: null, or no JSON at all
_NO_OBJECT = re.compile(rb"^[ \t\r]*n", re.MULTILINE)
_KINDS = {
    dict: "an object",
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    type(None): "null",
}


def json_lines_reader(
    task: FileTask, anchor: dict[str, Any] | None, blocks: Blocks | None = None
) -> LineReader:
    """Return a reader of JSON lines, or of documents as lines, of a file or of ``blocks``."""
    if task.documents and blocks is None:
        blocks = RecordBlocks(task, file=DocumentStream(task.open_stream()))
    parser = JsonParser(task.wanted, "record" if task.documents else "line")
    return LineReader(task, anchor, parser, None, blocks)


class JsonParser:
    """Turns bytes of whole JSON lines into a batch of the wanted columns."""

    def __init__(self, wanted: tuple[Field, ...], unit: str = "line") -> None:
        self._wanted = wanted
        # what a record is called in errors
        self._unit = unit
        # columns with VARIANT are read by a kernel, maps by DuckDB, out of the lines; all others by Arrow
        variants = [field for field in wanted if holds(field.type, Variant)]
        self._variants = VariantColumns(variants) if variants else None
        self._maps = {
            field.name: MapColumn(field)
            for field in wanted
            if field not in variants and holds_map(field.type)
        }
        plain = [field for field in wanted if field.name not in self._maps and field not in variants]
        self._wire = pa.schema([pa.field(field.name, wire_type(field, field.type)) for field in plain])
        texts = [
            pa.field(f.name, pa.string()) if isinstance(f.type, Timestamp) else self._wire.field(i)
            for i, f in enumerate(plain)
        ]
        # timestamps as texts, for our own rule where Arrow's fails
        self._careful_wire = pa.schema(texts)

    def parse(self, data: bytes) -> pa.RecordBatch | None:
        """Return the rows of whole lines; ``None`` when one cannot be read."""
        if not data.strip():
            return self._none()
        try:
            return self._typed(data)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
            return None

    def _none(self) -> pa.RecordBatch:
        return batch_of([pa.nulls(0, to_arrow(field.type)) for field in self._wanted], self._wanted, 0)

    def _typed(self, data: bytes) -> pa.RecordBatch:
        # Arrow does not check UTF-8; decode() does
        if not data.isascii():
            data.decode()
        if begins_with_null(data):
            raise pa.ArrowInvalid("null is no object")
        try:
            return self._columns_of(data, self._wire)
        except pa.ArrowInvalid:
            # no timestamps: a second attempt would fail in the same way
            if self._careful_wire == self._wire:
                raise
            return self._columns_of(data, self._careful_wire)

    def _columns_of(self, data: bytes, wire: pa.Schema) -> pa.RecordBatch:
        options = arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
        parse = arrow_json.ParseOptions(
            explicit_schema=wire if len(wire) else pa.schema([_NO_FIELD]),
            unexpected_field_behavior="ignore",
        )
        table = arrow_json.read_json(pa.BufferReader(data), read_options=options, parse_options=parse)
        lines = lines_of(data) if self._maps or self._variants else None
        # columns from both readers must have the same rows: two objects in a line would shift them
        if lines is not None and len(lines) != table.num_rows:
            raise pa.ArrowInvalid("a line must contain exactly one object")
        arrays = []
        variants = self._variants.of(lines) if self._variants is not None and lines is not None else {}
        for field in self._wanted:
            if field.name in variants:
                arrays.append(variants[field.name])
            elif lines is not None and field.name in self._maps:
                arrays.append(self._maps[field.name].of(lines))
            else:
                arrays.append(converted(table.column(field.name).combine_chunks(), field.type))
        return batch_of(arrays, self._wanted, table.num_rows)

    def rows_of(self, decoded: Decoded) -> Decoded:
        """Return the objects, which are the rows."""
        return decoded

    def explain(self, raw: bytes) -> tuple[str | None, str]:
        """Return the column at fault and the error of one bad line."""
        try:
            value = json.loads(raw)
        except UnicodeDecodeError as error:
            return None, f"not UTF-8: byte {error.start + 1} of the {self._unit} is 0x{raw[error.start]:02x}"
        except json.JSONDecodeError as error:
            return None, f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.colno}"
        except (RecursionError, ValueError):
            return None, "not JSON that can be read: nested too deep, or a number with too many digits"
        # valid JSON, but no object
        if not isinstance(value, dict):
            return None, f"{_KINDS[type(value)]} is where a {self._unit} must contain one object"
        # column by column: the first that fails alone is at fault
        for field in self._wanted:
            try:
                rows = JsonParser((field,))._typed(raw)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                if "specified twice" in str(error) or "written twice" in str(error):
                    return field.name, "the name occurs twice in the object"
                if isinstance(field.type, Variant) and field.name in value:
                    return field.name, str(error)
                shown = escaped(
                    json.dumps(value.get(field.name), ensure_ascii=False).encode(errors="backslashreplace")
                )
                return field.name, f"{shown} is not a valid {field.type}"
            # {"a": 1}{"a": 2} in one line
            if rows.num_rows != 1:
                break
        return None, f"a {self._unit} must contain exactly one object"


def begins_with_null(data: bytes) -> bool:
    """Whether some line may begin with the word null, on which Arrow's reader crashes."""
    view = np.frombuffer(data, np.uint8)
    # 0x0A is the line end, 0x7B the brace of an object; the slow search only if a line begins otherwise
    firsts = view[np.append(0, np.flatnonzero(view[:-1] == 0x0A) + 1)]
    return not bool((firsts == 0x7B).all()) and _NO_OBJECT.search(data) is not None
