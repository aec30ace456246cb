"""Tables of the program, registered by name: Arrow tables and readers, pandas frames, iterables of dicts,
tuples or batches.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import DataType, from_arrow

# Python rows looked at for column types; rows a batch
_PEEK_ROWS = 64
_CHUNK_ROWS = 1024


class RegisteredTables:
    """The service that returns registered sources. Names are compared without case; every method may be
    called from any thread.
    """

    def __init__(self) -> None:
        self._sources: dict[str, RegisteredSource] = {}
        self._lock = threading.Lock()

    def register(self, name: str, source: Any, columns: Sequence[str] | None = None) -> Schema:
        """Register a source under a name (replacing an older one) and return its columns. ``columns`` names
        the values of tuples. Raises DAT-4501.
        """
        made = registered_source(source, columns)
        with self._lock:
            self._sources[name.lower()] = made
        return made.schema

    def unregister(self, name: str) -> None:
        """Remove a source."""
        with self._lock:
            self._sources.pop(name.lower(), None)

    def source(self, name: str) -> RegisteredSource:
        """Return a source by name; DAT-4502 with the nearest name when there is none."""
        with self._lock:
            source = self._sources.get(name.lower())
            known = sorted(self._sources)
        if source is None:
            hint = did_you_mean(name, known, others=True) or "connection.register(name, rows) does that"
            raise PenstockError("DAT-4502", f"nothing is registered as '{name}'", hint=hint)
        return source

    def names(self) -> list[str]:
        """Return the registered names in order."""
        with self._lock:
            return sorted(self._sources)


class RegisteredSource:
    """One registered source: its columns, and per reading an iterator of items.

    ``make`` turns Python rows into a batch of ``arrow``; it is ``None`` when items are batches already.
    ``once``: it can be read once only.
    """

    def __init__(
        self,
        arrow: pa.Schema,
        open_items: Callable[[], Iterator[Any]],
        *,
        make: Callable[[list[Any]], pa.RecordBatch] | None = None,
        table: pa.Table | None = None,
        once: bool = False,
    ) -> None:
        self.schema = Schema(
            tuple(Field(field.name, _sql_type(field.type), field.nullable) for field in arrow)
        )
        self.arrow = self.schema.to_arrow()
        self.make = make
        self.once = once
        self._table = table
        self._open_items = open_items
        self._taken = False

    @property
    def table(self) -> pa.Table | None:
        """The whole source as one Arrow table of the engine's types when it is one already, else ``None``."""
        return None if self._table is None else _conform_table(self._table, self.arrow)

    @property
    def known_bytes(self) -> int:
        """The bytes of an Arrow table; 0 for Python rows, whose size is not known."""
        return 0 if self._table is None else int(self._table.nbytes)

    def items(self) -> Iterator[Any]:
        """Begin a reading: batches, or Python rows for ``make``. DAT-4503 when the source can be read only
        once and was.
        """
        # a half-read iterator would lose rows in silence
        if self.once and self._taken:
            hint = "register a list, an Arrow table, or a function that returns a fresh iterator"
            raise PenstockError(
                "DAT-4503", "this iterator has been read already and cannot be read again", hint=hint
            )
        self._taken = True
        return _attribute_errors(self._open_items)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate the source once, as batches of exactly the types of ``arrow``; blocks until rows arrive.
        Raises DAT-4503.
        """
        items = self.items()
        if self.make is None:
            return (conform(batch, self.arrow) for batch in items)
        make = self.make
        # lists of rows until one is empty
        chunks = iter(lambda: list(itertools.islice(items, _CHUNK_ROWS)), [])
        return (conform(make(rows), self.arrow) for rows in chunks)


def _attribute_errors(open_items: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Yield the program's items. An exception of its code is reported as the user's error, which no restart
    repairs.
    """
    try:
        yield from open_items()
    except PenstockError:
        raise
    except Exception as error:
        message = f"the program's rows failed with {type(error).__name__}: {error}"
        raise PenstockError(
            "DAT-4505", message[:200], hint="the registered iterable or function raised it", sqlstate="38000"
        ) from error


def conform(batch: pa.RecordBatch, arrow: pa.Schema) -> pa.RecordBatch:
    """Return a batch with exactly the fields of ``arrow``; columns are matched by name and cast. DAT-4504
    when one is missing or does not fit.
    """
    # the usual case: types and order are right
    if batch.schema.equals(arrow):
        return batch
    columns = []
    for field in arrow:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            raise PenstockError(
                "DAT-4504",
                f"a batch lacks column {field.name}",
                hint=did_you_mean(field.name, batch.schema.names, others=True),
            )
        columns.append(_cast(batch.column(index), field))
    return pa.RecordBatch.from_arrays(columns, schema=arrow)


def _sql_type(arrow: pa.DataType) -> DataType:
    if not isinstance(arrow, pa.BaseExtensionType):
        return from_arrow(arrow)
    # rules of files are imported where a column needs them: most programs' columns do not
    from penstock.engine.formats.file_types import sql_type

    return sql_type(arrow)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type == field.type:
        return column
    from penstock.engine.formats.file_types import fit, read_as

    declared = from_arrow(field.type)
    try:
        # as a file's column: digits beyond microseconds are cut, a UUID is a text
        if fit(column.type, declared) is not None:
            return read_as(column, declared)
        # a later batch of another kind: texts of times, rows with other fields
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise PenstockError(
            "DAT-4504", f"column {field.name} does not fit {field.type}", detail=str(error)[:200]
        ) from error


def _conform_table(table: pa.Table, arrow: pa.Schema) -> pa.Table:
    if table.schema.equals(arrow):
        return table
    return pa.Table.from_batches([conform(batch, arrow) for batch in table.to_batches()], arrow)


def registered_source(source: Any, columns: Sequence[str] | None = None) -> RegisteredSource:
    """Return a source over the program's object: a table, reader, frame, mapping of columns, iterable, or
    function that returns one. Raises DAT-4501.
    """
    # objects that are tables, or become one at once
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    elif isinstance(source, Mapping):
        source = _of_columns(source)
    # by name: pandas is not imported for programs that do not use it
    elif type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        source = pa.Table.from_pandas(source, preserve_index=False)
    if isinstance(source, pa.Table):
        table = source
        return RegisteredSource(table.schema, lambda: iter(table.to_batches()), table=table)
    # a function: each reading calls it again, so it can be replayed
    if callable(source):
        arrow, _, rows = _begin(source(), columns)
        make = partial(rows_to_batch, columns=columns, arrow=arrow) if rows else None
        return RegisteredSource(arrow, lambda: _begin(source(), columns)[1], make=make)
    # a reader: once only
    if isinstance(source, pa.RecordBatchReader):
        return RegisteredSource(source.schema, lambda: iter(source), once=True)
    if not isinstance(source, Iterable) or isinstance(source, str | bytes):
        hint = (
            "register an Arrow table or reader, a pandas frame, or an iterable of dicts, tuples or "
            "record batches"
        )
        raise PenstockError(
            "DAT-4501", f"a value of type {type(source).__name__} cannot be a table", hint=hint
        )
    arrow, items, rows = _begin(source, columns)
    make = partial(rows_to_batch, columns=columns, arrow=arrow) if rows else None
    # an iterator: once only. A list becomes a table, which can be read in ranges
    if not isinstance(source, list | tuple):
        return RegisteredSource(arrow, lambda: items, make=make, once=True)
    batches = list(items) if make is None else [make(list(items))]
    table = pa.Table.from_batches([conform(batch, arrow) for batch in batches], arrow)
    return RegisteredSource(arrow, lambda: iter(table.to_batches()), table=table)


def _of_columns(source: Mapping[str, Any]) -> pa.Table:
    try:
        return pa.table(dict(source))
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
        hint = "a mapping is read as columns: give lists of equal length"
        raise PenstockError(
            "DAT-4501", "these columns do not make a table", detail=str(error)[:200], hint=hint
        ) from error


def _begin(source: Any, columns: Sequence[str] | None) -> tuple[pa.Schema, Iterator[Any], bool]:
    """Read the first items of an iterable. Return its columns, an iterator over all of it, and whether its
    items are Python rows.
    """
    if isinstance(source, pa.Table):
        return source.schema, iter(source.to_batches()), False
    if isinstance(source, pa.RecordBatchReader):
        return source.schema, iter(source), False
    items = iter(source)
    # a list is here already, so all of it decides the types
    head = list(items) if isinstance(source, list | tuple) else _peek(items)
    if not head:
        raise PenstockError(
            "DAT-4501",
            "an empty iterable has no columns",
            hint="register an empty Arrow table with a schema instead",
        )
    if isinstance(head[0], pa.RecordBatch):
        return head[0].schema, itertools.chain(head, items), False
    # the items that were looked at are part of the reading
    return rows_to_batch(head, columns, None).schema, itertools.chain(head, items), True


def _peek(items: Iterator[Any]) -> list[Any]:
    """Read at most 64 items, until each column has shown a value that is not NULL. Then its type is known,
    and no further item is waited for.
    """
    head = list(itertools.islice(items, 1))
    # columns whose values were all NULL so far
    unknown = {index for index, value in enumerate(_values(head[0])) if value is None} if head else set()
    while unknown and len(head) < _PEEK_ROWS:
        more = list(itertools.islice(items, 1))
        if not more:
            break
        head += more
        unknown -= {index for index, value in enumerate(_values(more[0])) if value is not None}
    return head


def _values(item: Any) -> list[Any]:
    if isinstance(item, pa.RecordBatch):
        return []
    return list(item.values()) if isinstance(item, Mapping) else list(item)


def rows_to_batch(rows: list[Any], columns: Sequence[str] | None, arrow: pa.Schema | None) -> pa.RecordBatch:
    """Return Python rows as one batch. Only here are values handled one by one, because the program supplied
    them so.
    """
    try:
        # dicts: columns by name; a key that is missing in a row is NULL
        if isinstance(rows[0], Mapping):
            return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=arrow)
        # names of a namedtuple, else f0, f1, ..
        named = columns if columns is not None else getattr(rows[0], "_fields", ())
        names = [str(name) for name in named] or [f"f{index}" for index in range(len(rows[0]))]
        values = list(zip(*rows, strict=True))
        kinds = [None] * len(names) if arrow is None else list(arrow.types)
        arrays = [pa.array(value, kind) for value, kind in zip(values, kinds, strict=True)]
        return (
            pa.RecordBatch.from_arrays(arrays, names=names)
            if arrow is None
            else pa.RecordBatch.from_arrays(arrays, schema=arrow)
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
        hint = "give dicts or tuples of equal shape, one type a column"
        raise PenstockError(
            "DAT-4501", "these rows do not make a table", detail=str(error)[:200], hint=hint
        ) from error
