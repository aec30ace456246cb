"""Debezium's JSON: each line is one change of a row, with its values before and after. It is read as weighted
rows and written from them.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from penstock.catalog.schema import Field
from penstock.catalog.types import Timestamp, to_arrow
from penstock.engine.api.arrow_numpy import array_of, is_true, texts, truths
from penstock.engine.changelog.row_kinds import DELETE, OPS, UPDATE_AFTER, UPDATE_BEFORE
from penstock.engine.formats.decoded_batch import Decoded, batch_of, empty_columns
from penstock.engine.formats.file_task import FileTask
from penstock.engine.formats.json_lines import JsonParser, begins_with_null
from penstock.engine.formats.json_nested import converted, wire_type
from penstock.engine.formats.json_text import json_lines
from penstock.engine.formats.line_reader import LineReader

_OPS = {"c": "is created", "r": "was there", "u": "is updated", "d": "is deleted"}
_ENVELOPE = 'a change is {"before": .., "after": .., "op": "c", "r", "u" or "d"}'
_SCHEMA_WORDS = {
    "bool": "boolean",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "float": "float",
    "double": "double",
}


def debezium_reader(task: FileTask, anchor: dict[str, Any] | None) -> LineReader:
    """Return a reader of changes. Updates and deletes retract the row ``before``; creates, reads and updates
    add the row ``after``.
    """
    return LineReader(task, anchor, EnvelopeParser(task.wanted, task.declared, task.in_payload))


class EnvelopeParser:
    """Turns bytes of whole lines into changes (``before``, ``after`` and ``op``), and changes into rows."""

    def __init__(
        self,
        wanted: tuple[Field, ...],
        declared: tuple[Field, ...],
        in_payload: bool,
        unit: str = "line",
    ) -> None:
        self._wanted = wanted
        # what a record is called in errors
        self._unit = unit
        self._read = wanted or declared[:1]  # which side of a change is there shows only in a column
        self._in_payload = in_payload
        self._types = pa.schema([pa.field(field.name, to_arrow(field.type)) for field in self._read])
        plain = pa.struct([pa.field(field.name, wire_type(field, field.type)) for field in self._read])
        # first read by Arrow's types; when that fails, timestamps as texts by our own rule
        careful = [
            pa.field(f.name, pa.string()) if isinstance(f.type, Timestamp) else plain.field(i)
            for i, f in enumerate(self._read)
        ]
        # schemas for Arrow's reader, the fast one first
        self._wires = [self._wire(plain), self._wire(pa.struct(careful))]

    def _wire(self, row: pa.DataType) -> pa.Schema:
        envelope = [pa.field("before", row), pa.field("after", row), pa.field("op", pa.string())]
        return pa.schema([pa.field("payload", pa.struct(envelope))] if self._in_payload else envelope)

    def parse(self, data: bytes) -> pa.RecordBatch | None:
        """Return the changes of whole lines; ``None`` when one cannot be read, or is no change."""
        if not data.strip():
            return self._changes([pa.array([], pa.struct(list(self._types)))] * 2, pa.array([], pa.string()))
        try:
            # Arrow does not check UTF-8; decode() does, and ASCII needs no check
            if not data.isascii():
                data.decode()
            # a tombstone ``null`` would crash Arrow's reader
            if begins_with_null(data):
                return None
            try:
                return self._parsed(data, self._wires[0])
            except pa.ArrowInvalid:
                return None if self._wires[0] == self._wires[1] else self._parsed(data, self._wires[1])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
            return None

    def _parsed(self, data: bytes, wire: pa.Schema) -> pa.RecordBatch | None:
        options = arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
        parse = arrow_json.ParseOptions(explicit_schema=wire, unexpected_field_behavior="ignore")
        table = arrow_json.read_json(pa.BufferReader(data), read_options=options, parse_options=parse)
        columns = [column.combine_chunks() for column in table.columns]
        # {"schema": .., "payload": {"before": .., "after": .., "op": ..}}
        if self._in_payload:
            columns = columns[0].flatten()
        before, after, op = columns
        changes = self._changes([self._typed(before), self._typed(after)], op)
        # one bad change sends the block to the bisection of LineReader
        return changes if bool(well_formed(changes).all()) else None

    def _typed(self, side: pa.StructArray) -> pa.StructArray:
        columns = [
            converted(column, field.type) for field, column in zip(self._read, side.flatten(), strict=True)
        ]
        # a missing side stays NULL, which is not a row of NULLs
        return pa.StructArray.from_arrays(columns, fields=list(self._types), mask=pc.is_null(side))

    def _changes(self, sides: list[pa.Array], op: pa.Array) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([*sides, op], names=["before", "after", "op"])

    def rows_of(self, decoded: Decoded) -> Decoded:
        """Return decoded changes as weighted rows: each change first retracts its ``before``, then adds its
        ``after``.
        """
        changes = decoded.rows
        retracted = _is(changes, "u", "d")
        added = _is(changes, "c", "r", "u")
        count = changes.num_rows
        # both rows of an update have the ordinal of their line
        ordinals = (
            np.arange(decoded.first, decoded.first + count) if decoded.ordinals is None else decoded.ordinals
        )
        # creates and reads only: each change is one row
        if not retracted.any():
            rows = self._rows(changes.column("after").flatten(), count)
            return Decoded(rows, decoded.first, decoded.records, decoded.ordinals, decoded.bad)
        # interleave: per change first the retraction from `before`, then the addition from `after`
        sides = np.stack([retracted, added], axis=1).ravel()
        positions = np.stack([np.arange(count), np.arange(count, 2 * count)], axis=1).ravel()[sides]
        pairs = zip(changes.column("before").flatten(), changes.column("after").flatten(), strict=True)
        # rows of both sides in one array: before at i, after at count + i
        columns = [pa.concat_arrays(pair).take(array_of(positions)) for pair in pairs]
        weights = np.tile(np.array([-1, 1]), count)[sides]
        return Decoded(
            self._rows(columns, len(positions)),
            decoded.first,
            decoded.records,
            np.repeat(ordinals, 2)[sides],
            decoded.bad,
            weights=weights,
        )

    def _rows(self, columns: list[pa.Array], count: int) -> pa.RecordBatch:
        return batch_of(columns, self._wanted, count) if self._wanted else empty_columns(count)

    def explain(self, raw: bytes) -> tuple[str | None, str]:
        """Return the column at fault, if it is one, and the error of one bad line."""
        # Debezium writes ``null`` after a delete, for Kafka's compaction
        if raw.strip() == b"null":
            return None, "a tombstone contains no change"
        try:
            change = json.loads(raw)
        except (ValueError, RecursionError):
            return JsonParser(self._read, self._unit).explain(raw)
        if self._in_payload and isinstance(change, dict):
            if "payload" not in change:
                return (
                    None,
                    "there is no payload; without one the option is 'debezium-json.schema-include' = 'false'",
                )
            change = change["payload"]
        if not isinstance(change, dict) or "op" not in change:
            inside = isinstance(change, dict) and "payload" in change
            return (
                None,
                "the change is in a payload: 'debezium-json.schema-include' = 'true'"
                if inside
                else _ENVELOPE,
            )
        op = change["op"]
        if op not in _OPS:
            return None, f"op is {json.dumps(op)[:40]}; {_ENVELOPE}"
        # the sides that this op needs: c and r after, d before, u both
        for side in ("before", "after"):
            if (side == "after") != (op == "d") or op == "u":
                if not isinstance(change.get(side), dict):
                    advice = (
                        ": a source must log whole rows (REPLICA IDENTITY FULL)" if side == "before" else ""
                    )
                    return None, f"op is {op}, a row {_OPS[op]}, but there is no {side}{advice}"
                column, error = JsonParser(self._read).explain(json.dumps(change[side]).encode())
                if column is not None:
                    return column, f"{side}: {error}"
        return None, _ENVELOPE


def _is(changes: pa.RecordBatch, *ops: str) -> np.ndarray:
    return is_true(pc.is_in(changes.column("op"), texts(list(ops))))


def well_formed(changes: pa.RecordBatch) -> np.ndarray:
    """Return which changes carry the sides their op needs; a side it does not need is not looked at."""
    # c, r: after; u: both; d: before
    before, after = truths(changes.column("before").is_valid()), truths(changes.column("after").is_valid())
    return (
        (_is(changes, "c", "r") & after) | (_is(changes, "u") & before & after) | (_is(changes, "d") & before)
    )


def debezium_lines(rows: pa.RecordBatch, with_schema: bool) -> pa.Array:
    """Return changes (first column ``op``) as lines: a -U with the +U after it is one update, any other
    row was created or deleted.
    """
    op, plain = rows.column(0), rows.select(rows.schema.names[1:])
    before, after = (is_true(pc.equal(op, OPS[index])) for index in (UPDATE_BEFORE, UPDATE_AFTER))
    # row i is a -U and row i + 1 its +U
    paired = np.append(before[:-1] & after[1:], np.zeros(min(len(before), 1), np.bool_))
    # one line a change: the +U of a pair is written with its -U
    first_rows = np.flatnonzero(~np.insert(paired[:-1], 0, False)[: len(paired)])
    # the change has a row before: -U or -D
    removed = (before | is_true(pc.equal(op, OPS[DELETE])))[first_rows]
    updated = paired[first_rows]
    objects = pc.utf8_rtrim(json_lines(plain), characters="\n")
    # NULL where there is no such side; it becomes the word null below
    old = objects.take(array_of(first_rows, ~removed))
    new = objects.take(array_of(first_rows + updated, removed & ~updated))
    # 0: created, 1: deleted (a row before), 2: updated (before and after)
    names = texts(["c", "d", "u"]).take(array_of(removed.astype(np.int64) + updated))
    head, tail = '{"before":', "}\n"
    if with_schema:
        head, tail = '{"schema":' + _schema_text(plain.schema) + ',"payload":' + head, "}" + tail
    middle = pc.binary_join_element_wise(',"op":"', names, '"', "")
    return pc.binary_join_element_wise(
        head, pc.fill_null(old, "null"), ',"after":', pc.fill_null(new, "null"), middle, tail, ""
    )


def _schema_text(schema: pa.Schema) -> str:
    """Return the schema of the envelope as Kafka Connect writes it; a type unknown to Connect is a string."""
    fields = [
        {"field": f.name, "type": _SCHEMA_WORDS.get(str(f.type), "string"), "optional": True} for f in schema
    ]
    sides = [
        {"field": side, "type": "struct", "fields": fields, "optional": True} for side in ("before", "after")
    ]
    op = {"field": "op", "type": "string", "optional": False}
    return json.dumps(
        {"type": "struct", "fields": [*sides, op], "optional": False},
        ensure_ascii=False,
        separators=(",", ":"),
    )
