"""VARIANT columns of JSON lines: any value of a field, which Arrow's reader cannot pass on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.schema import Field
from penstock.catalog.types import VARIANT, Variant, to_arrow
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.expressions.casts.cast import cast_kernel
from penstock.engine.expressions.evaluation_errors import Fault
from penstock.engine.formats.text_conversion import variants
from penstock.engine.kernels import arrow_views

# a kind of engine.kernels.json_fields, which is imported where numba is needed
_JSON, _COLUMN_WIDTH = 6, 6


class VariantColumns:
    """The columns with VARIANT in them of JSON lines. JSON's null is a value of VARIANT, an absent field is
    NULL. What is ROW, ARRAY or MAP is read as a VARIANT first, and cast.
    """

    def __init__(self, fields: list[Field]) -> None:
        self._fields = fields
        names = [field.name.encode() for field in fields]
        bounds = np.concatenate(([0], np.cumsum([len(name) for name in names])))
        self._names = np.frombuffer(b"".join(names) or b"\0", np.uint8)
        self._columns = np.zeros((len(fields), _COLUMN_WIDTH), np.int64)
        self._columns[:, 0] = _JSON
        self._columns[:, 1], self._columns[:, 2] = bounds[:-1], bounds[1:]

    def of(self, lines: pa.Array) -> dict[str, pa.Array]:
        """Return the columns of lines by name; ArrowInvalid when a value cannot be read."""
        texts = self._texts(lines)
        return {field.name: _values(column, field) for field, column in zip(self._fields, texts, strict=True)}

    def _texts(self, lines: pa.Array) -> list[pa.Array]:
        from penstock.engine.kernels.json_fields import parse

        offsets, data = arrow_views.string_parts(lines)
        bounds = offsets.astype(np.int64)
        rows, size = len(lines), int(bounds[-1] - bounds[0])
        columns = self._columns.copy()
        columns[:, 5] = np.arange(len(columns)) * size
        words = np.zeros(max(1, len(columns) * rows), np.int64)
        valid, given_up = np.zeros(len(words), np.uint8), np.empty(rows, np.int64)
        texts = np.empty(max(1, size * len(columns)), np.uint8)
        parse(
            data, bounds[:-1].copy(), bounds[1:].copy(), self._names, columns.reshape(-1), words,
            words.view(np.float64), valid, texts, np.zeros(4, np.int64), given_up,
        )  # fmt: skip
        left = np.flatnonzero(given_up >= 0)
        objects = [_fields_of(lines[int(row)].as_py()) for row in left.tolist()]
        found = []
        for index, field in enumerate(self._fields):
            mine = slice(index * rows, (index + 1) * rows)
            begin = int(columns[index, 5])
            column = arrow_views.array_of_strings(
                np.concatenate(([0], words[mine])), texts[begin : begin + size], valid[mine], pa.string()
            )
            if len(left):
                mask = np.zeros(rows, np.bool_)
                mask[left] = True
                others = pa.array([_written(one.get(field.name, _ABSENT)) for one in objects], pa.string())
                column = pc.replace_with_mask(column, array_of(mask), others)
            found.append(column)
        return found


def _values(texts: pa.Array, field: Field) -> pa.Array:
    column = variants(texts)
    if isinstance(field.type, Variant):
        return column
    try:
        cast = cast_kernel(VARIANT, field.type, safe=False)
        assert cast is not None, "a VARIANT is stored as no other type"
        return cast(column).cast(to_arrow(field.type))
    except Fault as fault:
        raise pa.ArrowInvalid(fault.message) from None


class _Word(str):
    """A number as it is written."""


def _fields_of(line: str) -> dict[str, Any]:
    """Return the fields of a line that the compiled loop leaves: one with an escape in a name, or no JSON."""
    try:
        found = json.loads(line, parse_int=_Word, parse_float=_Word, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise pa.ArrowInvalid(f"not JSON: {error}") from None
    if not isinstance(found, _Pairs):
        raise pa.ArrowInvalid("no object")
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        raise pa.ArrowInvalid("a field is written twice")
    return dict(found)


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON, its fields in the order in which they are written."""


_ABSENT = object()


def _written(value: Any) -> str | None:
    """Return a parsed value as JSON, ``None`` for a field that is absent."""
    return None if value is _ABSENT else _json(value)


def _json(value: Any) -> str:
    if isinstance(value, _Word):
        return value
    if isinstance(value, _Pairs):
        return "{" + ",".join(f"{json.dumps(name)}:{_json(part)}" for name, part in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value)
