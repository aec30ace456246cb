"""Changes of rows as Maxwell, Canal and GoldenGate write them in JSON: read as weighted rows.

The three differ in the names of their parts, so each is a ``ChangeDialect``. Fields and their meaning are
those of Flink's formats ``maxwell-json``, ``canal-json`` and ``ogg-json``.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.types import Decimal
from penstock.engine.api.arrow_numpy import array_of, is_true, numbers_of, texts, truths
from penstock.engine.expressions.duckdb_fallback import duckdb_kernel
from penstock.engine.formats.decoded_batch import BadRecord, Decoded, batch_of, empty_columns, escaped
from penstock.engine.formats.json_lines import JsonParser
from penstock.engine.formats.messages.message_values import MessageValues, message_values
from penstock.engine.formats.messages.text_messages import json_error_byte
from penstock.engine.formats.text_conversion import from_text

_INSERTED, _UPDATED, _DELETED, _NO_ROW, _UNKNOWN = range(5)
_STRINGS = pa.list_(pa.string())
# a number that a double may not have all digits of, behind the name of a field
_LONG_NUMBER = r":(\s*)(-?[0-9][0-9.]{15,}(?:[eE][+-]?[0-9]+)?)(\s*[,}])"

# what DuckDB takes for JSON and the other formats do not: commas before an end, inf and nan in any spelling
_LENIENT = r"(?i),[ \t\r\n]*[\]}]|[:,\[ \t\r\n-](?:inf|nan)"


@dataclass(frozen=True)
class ChangeDialect:
    """The parts of one dialect. ``operation``: the field with the kind of change. Its values are
    ``inserted``, ``updated``, ``deleted`` and ``no_row`` (events of schemas and of copies).

    ``after`` and ``before`` are the fields with the new row and the row that goes. ``old``: the field with
    those values of the row before that differ. ``many``: the fields are arrays of rows.
    """

    operation: str
    inserted: tuple[str, ...]
    updated: tuple[str, ...]
    deleted: tuple[str, ...]
    no_row: tuple[str, ...] = ()
    after: str = "data"
    before: str = "data"
    old: str | None = "old"
    many: bool = False

    def kinds(self, operations: pa.Array) -> np.ndarray:
        """Return the kind of each change."""
        kinds = np.full(len(operations), _UNKNOWN, np.int64)
        words = (self.inserted, self.updated, self.deleted, self.no_row)
        for kind, known in enumerate(words):
            kinds[is_true(pc.is_in(operations, texts(list(known))))] = kind
        return kinds

    def sql(self) -> str:
        """Return DuckDB's expression of the parts of one message."""
        parts = {"operation": f"json_extract_string({{0}}, '/{self.operation}')"}
        parts |= {word: f"json_extract_string({{0}}, '/{word}')" for word in ("database", "table")}
        for part, name in (("after", self.after), ("before", self.before), ("old", self.old)):
            if name is None:
                parts[part] = "CAST(NULL AS VARCHAR[])"
            elif self.many:
                # of no array the list is NULL
                is_array = f"json_type({{0}}, '/{name}') = 'ARRAY'"
                parts[part] = (
                    f"CASE WHEN {is_array} THEN CAST(json_extract({{0}}, '$.{name}[*]') AS VARCHAR[]) END"
                )
            else:
                parts[part] = f"[CAST(json_extract({{0}}, '/{name}') AS VARCHAR)]"
        return "{{" + ", ".join(f"'{name}': {text}" for name, text in parts.items()) + "}}"


DIALECTS = {
    "maxwell-json": ChangeDialect(
        "type",
        inserted=("insert", "bootstrap-insert"),
        updated=("update",),
        deleted=("delete",),
        no_row=(
            "bootstrap-start",
            "bootstrap-complete",
            "database-create",
            "database-alter",
            "table-create",
            "table-alter",
        ),
    ),
    "canal-json": ChangeDialect(
        "type",
        inserted=("INSERT",),
        updated=("UPDATE",),
        deleted=("DELETE",),
        no_row=("CREATE", "ALTER", "CINDEX", "DINDEX", "QUERY"),
        many=True,
    ),
    "ogg-json": ChangeDialect(
        "op_type",
        inserted=("I",),
        updated=("U",),
        deleted=("D",),
        after="after",
        before="before",
        old=None,
    ),
}
_PARTS = pa.struct(
    [pa.field(name, pa.string()) for name in ("operation", "database", "table")]
    + [pa.field(name, _STRINGS) for name in ("after", "before", "old")]
)


class _RowObjects:
    """Rows as JSON objects, one after another: those of message ``i`` begin at ``first[i]``."""

    def __init__(self, column: pa.Array) -> None:
        self.lengths = numbers_of(pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64()))
        self.first = np.concatenate(([0], np.cumsum(self.lengths)))[:-1]
        self.objects = pc.list_flatten(column)


class ChangeDeserializer:
    """Decodes the changes of one dialect. Values may be JSON strings whatever the column's type, as Canal
    writes them.
    """

    def __init__(self, form: MessageFormat, wanted: tuple[Field, ...]) -> None:
        self._form = form
        self._dialect = DIALECTS[form.name]
        self._wanted = wanted
        self._valid = duckdb_kernel(
            # AND evaluates both sides, and json_type fails where there is no JSON
            "json_type(CASE WHEN json_valid({0}) THEN {0} END) = 'OBJECT'",
            pa.bool_(),
        )
        self._parts = duckdb_kernel(self._dialect.sql(), _PARTS)
        self._is_object = duckdb_kernel("json_type({0}) = 'OBJECT'", pa.bool_())
        paths = "[" + ", ".join(_pointer(field.name) for field in wanted) + "]"
        self._texts = duckdb_kernel(f"json_extract_string({{0}}, {paths})", _STRINGS)
        self._tokens = duckdb_kernel(f"CAST(json_extract({{0}}, {paths}) AS VARCHAR[])", _STRINGS)
        self._exact = any(isinstance(one.type, Decimal) and one.type.precision > 15 for one in wanted)
        self._includes = [
            (column, form.text(f"{form.name}.{column}.include"))
            for column in ("database", "table")
            if f"{form.name}.{column}.include" in form.options
        ]

    def deserialize(self, values: pa.Array) -> Decoded:
        messages = message_values(values)
        bad: dict[int, BadRecord] = {}
        data = self._objects(messages, bad)
        chosen = np.setdiff1d(np.arange(len(messages)), np.array(list(bad), np.int64))
        parts = self._parts(data).flatten()
        operations, after, before, old = parts[0], *(_RowObjects(column) for column in parts[3:])
        kinds = self._dialect.kinds(operations)
        kinds[~self._included(parts[1], parts[2], len(kinds))] = _NO_ROW
        faults = self._faults(kinds, after, before, old)
        for position in np.flatnonzero(faults).tolist():
            at = int(chosen[position])
            bad[at] = messages.bad(at, self._fault(int(kinds[position]), operations[position].as_py()))
        kinds[faults] = _NO_ROW
        rows, parents, weights = self._rows(kinds, after, before, old, chosen, messages, bad)
        fine = ~np.isin(parents, list(bad)) if bad else np.ones(len(parents), np.bool_)
        if not fine.all():
            rows, parents, weights = rows.filter(array_of(fine)), parents[fine], weights[fine]
        records = sorted(bad.values(), key=lambda record: record.ordinal)
        ordinals = messages.index[parents]
        return Decoded(rows, 0, messages.count, ordinals, records, weights=weights)

    def _objects(self, messages: MessageValues, bad: dict[int, BadRecord]) -> pa.Array:
        """Return the values that are one JSON object, and note the others."""
        values = messages.binary()
        try:
            data = values.cast(pa.string())
        except pa.ArrowInvalid:
            # not UTF-8: rare, so each value is looked at
            data = pa.array([_utf8(value) for value in values.to_pylist()], pa.string())
        if self._exact:
            data = self._with_all_digits(data)
        fine = is_true(self._valid(data))
        # few: strings with such text are looked at, too
        for position in np.flatnonzero(fine & is_true(pc.match_substring_regex(data, _LENIENT))).tolist():
            fine[position] = _is_strict(messages.raw(position))
        for position in np.flatnonzero(~fine).tolist():
            raw = messages.raw(position)
            error = "the message is empty" if not raw.strip() else JsonParser((), "message").explain(raw)[1]
            bad[position] = messages.bad(position, error, None, json_error_byte(raw))
        return data.filter(array_of(fine))

    def _with_all_digits(self, data: pa.Array) -> pa.Array:
        """Return values whose long numbers are strings: DuckDB reads a number with a point as a double.

        A quote within a string makes the value invalid, as a digit follows it: that value is read by Python.
        """
        long = np.flatnonzero(is_true(pc.match_substring_regex(data, _LONG_NUMBER)))
        if not len(long):
            return data
        quoted = pc.replace_substring_regex(data.take(array_of(long)), _LONG_NUMBER, r':\1"\2"\3')
        for position in np.flatnonzero(~is_true(self._valid(quoted))).tolist():
            exact = _numbers_as_texts(data[int(long[position])].as_py())
            quoted = pa.concat_arrays(
                [quoted.slice(0, position), pa.array([exact], pa.string()), quoted.slice(position + 1)]
            )
        at = np.arange(len(data))
        at[long] = len(data) + np.arange(len(long))
        return pa.concat_arrays([data, quoted]).take(array_of(at))

    def _included(self, database: pa.Array, table: pa.Array, count: int) -> np.ndarray:
        included = np.ones(count, np.bool_)
        names = {"database": database, "table": table}
        for column, pattern in self._includes:
            if pattern is not None:
                included &= is_true(pc.match_substring_regex(names[column], f"^(?:{pattern})$"))
        return included

    def _faults(
        self, kinds: np.ndarray, after: _RowObjects, before: _RowObjects, old: _RowObjects
    ) -> np.ndarray:
        """Return which messages lack a row that their kind of change needs, or have an unknown kind."""
        faults: np.ndarray = kinds == _UNKNOWN
        needs = [(after, [_INSERTED, _UPDATED]), (before, [_UPDATED, _DELETED])]
        if self._dialect.old is not None:
            needs.append((old, [_UPDATED]))
        for rows, which in needs:
            needed = np.isin(kinds, which)
            odd = ~is_true(self._is_object(rows.objects))
            parents = np.repeat(np.arange(len(kinds)), rows.lengths)
            faults |= needed & ((rows.lengths == 0) | (np.bincount(parents, odd, len(kinds)) > 0))
        if self._dialect.many:
            faults |= (kinds == _UPDATED) & (after.lengths != old.lengths)
        return faults

    def _fault(self, kind: int, operation: str | None) -> str:
        dialect = self._dialect
        if kind == _UNKNOWN:
            known = ", ".join((*dialect.inserted, *dialect.updated, *dialect.deleted))
            shown = "missing" if operation is None else escaped(operation.encode())
            return f"{dialect.operation} is {shown}; changes of rows are {known}"
        names = {_INSERTED: [dialect.after], _DELETED: [dialect.before]}.get(
            kind, [*dict.fromkeys((dialect.before, dialect.after)), *([dialect.old] if dialect.old else [])]
        )
        what = "an array of as many objects each" if dialect.many else "an object"
        advice = "; a source must log whole rows" if dialect.old is None and kind != _INSERTED else ""
        return f"{dialect.operation} is {operation}, and {' and '.join(names)} must be {what}{advice}"

    def _rows(
        self,
        kinds: np.ndarray,
        after: _RowObjects,
        before: _RowObjects,
        old: _RowObjects,
        chosen: np.ndarray,
        messages: MessageValues,
        bad: dict[int, BadRecord],
    ) -> tuple[pa.RecordBatch, np.ndarray, np.ndarray]:
        """Return the rows of changes, the message of each and its weight: what goes, then what comes."""
        lengths = np.where(kinds == _DELETED, before.lengths, after.lengths)
        lengths[kinds == _NO_ROW] = 0
        change = np.repeat(np.arange(len(kinds)), lengths)
        number = np.arange(len(change)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        goes, comes = kinds[change] != _INSERTED, kinds[change] != _DELETED
        sides = np.stack([goes, comes], axis=1).ravel()
        weights = np.tile(np.array([-1, 1]), len(change))[sides]
        parents = chosen[np.repeat(change, 2)[sides]]
        if not self._wanted:
            return empty_columns(len(parents)), parents, weights
        was = before.objects.take(array_of((before.first[change] + number)[goes]))
        new = after.objects.take(array_of((after.first[change] + number)[comes]))
        columns = self._columns(self._texts(was)), self._columns(self._texts(new))
        if self._dialect.old is not None:
            updated = kinds[change[goes]] == _UPDATED
            places = (old.first[change] + number)[goes][updated]
            columns = self._patched(columns[0], old.objects.take(array_of(places)), updated), columns[1]
        # what goes, then what comes, in one array: put in the order of changes
        order = np.empty(len(sides), np.int64)
        order[0::2], order[1::2] = np.cumsum(goes) - 1, int(goes.sum()) + np.cumsum(comes) - 1
        picked = array_of(order[sides])
        arrays = []
        for field, one, other in zip(self._wanted, *columns, strict=True):
            column = pa.concat_arrays([one, other]).take(picked)
            arrays.append(_converted(field, column, parents, messages, bad))
        return batch_of(arrays, self._wanted, len(parents)), parents, weights

    def _columns(self, lists: pa.Array) -> list[pa.Array]:
        """Return lists of one text a column as columns."""
        count = len(self._wanted)
        flat = pc.list_flatten(lists)
        return [flat.take(array_of(np.arange(i, len(flat), count))) for i in range(count)]

    def _patched(self, columns: list[pa.Array], old: pa.Array, updated: np.ndarray) -> list[pa.Array]:
        """Return columns with the values that were others before. A null in ``old`` is one of them."""
        if not updated.any():
            return columns
        present = [truths(one.is_valid()) for one in self._columns(self._tokens(old))]
        at = np.full(len(updated), -1, np.int64)
        patched = []
        for column, is_there, value in zip(columns, present, self._columns(self._texts(old)), strict=True):
            at[updated] = np.where(is_there, len(column) + np.arange(len(value)), -1)
            picked = np.where(at >= 0, at, np.arange(len(column)))
            patched.append(pa.concat_arrays([column, value]).take(array_of(picked)))
        return patched


def _converted(
    field: Field, column: pa.Array, parents: np.ndarray, messages: MessageValues, bad: dict[int, BadRecord]
) -> pa.Array:
    """Return texts as values of a column; those that are none become NULL, and their message is noted."""
    try:
        return from_text(column, field.type)
    except pa.ArrowInvalid:
        wrong: list[int] = []
        todo = [(0, len(column))]
        while todo:
            low, high = todo.pop()
            try:
                from_text(column.slice(low, high - low), field.type)
            except pa.ArrowInvalid:
                if high - low == 1:
                    wrong.append(low)
                else:
                    todo += [((low + high) // 2, high), (low, (low + high) // 2)]
    mask = np.zeros(len(column), np.bool_)
    mask[wrong] = True
    for row in wrong:
        at = int(parents[row])
        shown = escaped(column[row].as_py().encode())
        bad.setdefault(at, messages.bad(at, f"{shown} is not a valid {field.type}", field.name))
    return from_text(pc.if_else(array_of(mask), pa.scalar(None, pa.string()), column), field.type)


def _pointer(name: str) -> str:
    """Return a JSON pointer to a field as a literal of a kernel's SQL."""
    path = "/" + name.replace("~", "~0").replace("/", "~1")
    return "'" + path.replace("'", "''").replace("{", "{{").replace("}", "}}") + "'"


def _is_strict(raw: bytes) -> bool:
    """Return whether a value is JSON for the other formats too: with NaN and Infinity, no commas at ends."""
    try:
        json.loads(raw)
    except ValueError:
        return False
    return True


def _utf8(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _numbers_as_texts(value: str) -> str:
    try:
        return json.dumps(json.loads(value, parse_float=str, parse_int=str))
    except (ValueError, RecursionError):
        return value
