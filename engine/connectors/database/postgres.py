"""PostgreSQL, through psycopg 3: a connection, and rows as the text of COPY in both directions. Keys of a
lookup are sent as arrays."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.secrets import redact_url
from penstock.catalog.types import Binary, DataType, Decimal, Double, Float, String
from penstock.engine.connectors.database.database import (
    BATCH_ROWS,
    PLACEHOLDER,
    Select,
    conflict_text,
    failed,
    insert_text,
    quoted,
    quoted_table,
    select_text,
    shown,
)
from penstock.engine.connectors.database.row_conversion import rows_of
from penstock.engine.formats.decoded_batch import empty_columns

# no text is written like this: COPY always quotes texts, and never the NULL marker
NULL_MARK = "\\N"
# ends a batch of wide rows before it has BATCH_ROWS of them
_BATCH_BYTES = 8 << 20
# Arrow names the column at fault only by its position, in its message
_COLUMN = re.compile(r"CSV column #(\d+)")


def copy_text(select: str, fields: tuple[Field, ...]) -> str:
    """Return the COPY of a SELECT. Texts are always quoted and the NULL marker never is, so a text cannot be
    read as NULL.
    """
    texts = ", ".join(quoted(field.name) for field in fields if isinstance(field.type, String))
    return (
        f"COPY ({select}) TO STDOUT (FORMAT csv, NULL '{NULL_MARK}', ENCODING "
        f"'UTF8'{f', FORCE_QUOTE ({texts})' if texts else ''})"
    )


def copied(
    lines: Iterable[bytes | memoryview], fields: tuple[Field, ...], table: str
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a COPY, one message per row. DAT-4704 names the column whose values do not fit its
    type.
    """
    pending: list[bytes | memoryview] = []
    size = 0
    # one message a row; parsed in batches, since a call of Arrow per row would dominate
    for line in lines:
        pending.append(line)
        size += len(line)
        if len(pending) >= BATCH_ROWS or size >= _BATCH_BYTES:
            yield csv_rows(pending, fields, table)
            pending, size = [], 0
    if pending:
        yield csv_rows(pending, fields, table)


def csv_rows(lines: Sequence[bytes | memoryview], fields: tuple[Field, ...], table: str) -> pa.RecordBatch:
    """Return the rows of a piece of a COPY in FORMAT csv, which ends where a row does. DAT-4704."""
    if not fields:
        return empty_columns(len(lines))
    schema = Schema(fields).to_arrow()
    text = b"".join(lines)
    # positions as names: _COLUMN finds the field by them, whatever the declared names are
    names = [str(position) for position in range(len(fields))]
    # one block, so that a record never spans two
    read = pyarrow.csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False)
    convert = pyarrow.csv.ConvertOptions(
        column_types={
            name: _read_as(field.type, kind)
            for name, field, kind in zip(names, fields, schema.types, strict=True)
        },
        # PostgreSQL's text form of booleans
        true_values=["t"],
        false_values=["f"],
        null_values=[NULL_MARK],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    try:
        read_rows = pyarrow.csv.read_csv(
            pa.py_buffer(text), read_options=read, parse_options=parse, convert_options=convert
        )
    except pa.ArrowInvalid as error:
        position = _COLUMN.search(str(error))
        raise unfit(fields[int(position[1])] if position else fields[0], table, error) from error
    columns = [
        _exact(column.combine_chunks(), field, table)
        for column, field in zip(read_rows.columns, fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _read_as(kind: DataType, arrow: pa.DataType) -> pa.DataType:
    """Return the type Arrow parses. Decimals may have excess zeros and bytes are hexadecimal, so both are
    read as texts first.
    """
    return pa.string() if isinstance(kind, Decimal | Binary) else arrow


def _exact(column: pa.Array, field: Field, table: str) -> pa.Array:
    if isinstance(field.type, Binary):
        return bytes_of_hexadecimal(column)
    try:
        return (
            column.cast(Schema((field,)).to_arrow().field(0).type)
            if isinstance(field.type, Decimal)
            else column
        )
    except pa.ArrowInvalid as error:
        raise unfit(field, table, error) from error


def unfit(field: Field, table: str, error: Exception) -> PenstockError:
    """Return the error of a column whose values do not fit its declared type."""
    message = f"column {field.name} of {table} holds what is no {field.type}"
    return PenstockError(
        "DAT-4704",
        message,
        detail=str(error)[:200],
        hint="declare it as STRING to see it",
        kind=Kind.EXTERNAL,
    )


def bytes_of_hexadecimal(texts: pa.Array) -> pa.Array:
    """Decode a text column of ``\\x`` and two digits per byte. The digits of a column are contiguous, and so
    are the bytes, hence one call decodes all.
    """
    # without the \x in front of each value
    digits = pc.utf8_slice_codeunits(texts, 2)
    valid, offsets, values = digits.buffers()
    # two digits a byte: half of the offsets of the texts are the offsets of the bytes
    halved = np.frombuffer(offsets, np.int32)[: len(digits) + 1] // 2
    whole = binascii.unhexlify(memoryview(values)[: int(halved[-1]) * 2]) if values is not None else b""
    return pa.Array.from_buffers(
        pa.binary(), len(digits), [valid, pa.py_buffer(halved.astype(np.int32)), pa.py_buffer(whole)]
    )


# seconds to connect, libpq's own option
CONNECT_S = 10
SESSION = (
    "-c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=postgres -c extra_float_digits=3 -c bytea_output=hex"
)
"""Session settings for the text form of values. Every value can be read back exactly, whatever the server's
defaults are.
"""
COLUMNS = (
    "WITH RECURSIVE base AS (SELECT attnum, attname::text AS name, atttypid AS kind, atttypmod AS modifier "
    "FROM pg_attribute WHERE attrelid = to_regclass({}) AND attnum > 0 AND NOT attisdropped UNION ALL SELECT "
    "attnum, name, typbasetype, typtypmod FROM base JOIN pg_type ON pg_type.oid = kind WHERE typtype = 'd') "
    "SELECT name, format_type(kind, modifier) FROM base JOIN pg_type ON pg_type.oid = kind WHERE typtype <> "
    "'d' ORDER BY attnum"
)
"""Names and types of a table's columns; of a domain the type it is made of, as its values are."""
# temporary tables are private to a connection, so one name is enough
_BESIDE = "penstock_beside"
# the array type of a parameter for each Arrow type of a key
_ARRAYS = {
    pa.int8(): "int2",
    pa.int16(): "int2",
    pa.int32(): "int4",
    pa.int64(): "int8",
    pa.string(): "text",
    pa.bool_(): "bool",
    pa.date32(): "date",
    pa.binary(): "bytea",
}
# SQLSTATE connection_failure, for a driver error that has none
_LOST = "08006"
# SQLSTATEs: connection, idle too long, rolled back, out of resources, locked, cancelled, shutting down
TRANSIENT = ("08", "25P03", "40", "53", "55P03", "57014", "57P")
# not the server's protocol, a constraint, a database that was dropped
FOR_GOOD = ("08P01", "40002", "57P04")
# refusals while connecting, which have a message but no SQLSTATE
REFUSED = ("authentication failed", "does not exist", "pg_hba.conf", "no password supplied")


class PostgresConnection:
    """One connection to a server."""

    bytes_type = "BYTEA"

    def __init__(self, url: str, username: str | None, password: str | None, *, writes: bool = False) -> None:
        """DAT-4700 without psycopg, DAT-4701 when the server cannot be reached."""
        try:
            import psycopg
        except ImportError as error:
            hint = "pip install 'penstock[postgres]'"
            raise PenstockError(
                "DAT-4700",
                "the connector postgres needs psycopg, which is not installed",
                hint=hint,
                kind=Kind.EXTERNAL,
            ) from error
        self._driver: Any = psycopg
        self._secret = password
        credentials: dict[str, Any] = {
            key: value for key, value in (("user", username), ("password", password)) if value is not None
        }
        try:
            self.connection: Any = psycopg.connect(
                url,
                # a transaction is begun explicitly, and a read needs none
                autocommit=True,
                connect_timeout=CONNECT_S,
                application_name="penstock",
                options=SESSION,
                **credentials,
            )
            # never prepare statements by itself
            self.connection.prepare_threshold = None
            self.connection.read_only = not writes
        except psycopg.Error as error:
            raise self._failed(f"no connection to {redact_url(url)}", error, "DAT-4701") from error

    def columns(self, table: str) -> dict[str, str]:
        return dict(self.ask(COLUMNS.format("%s"), [quoted_table(table)]))

    def tables(self) -> list[str]:
        text = (
            "SELECT c.relname::text FROM pg_class c WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND "
            "pg_table_is_visible(c.oid)"
        )
        return [
            name
            for (name,) in self.ask(f"{text} AND c.relnamespace <> 'pg_catalog'::regnamespace ORDER BY 1", [])
        ]

    def text(self, select: Select) -> str:
        return shown(*select_text(select, "%s", _item), "%s")

    def rows(self, select: Select) -> Iterator[pa.RecordBatch]:
        text, values = select_text(select, "%s", _item)
        try:
            # COPY takes no parameters: the driver writes the values into the text
            whole = self._driver.ClientCursor(self.connection).mogrify(text, values)
            with self.connection.cursor() as cursor, cursor.copy(copy_text(whole, select.fields)) as copy:
                yield from copied(copy, select.fields, select.table)
        except self._driver.Error as error:
            raise self.failure(f"the rows of {select.table} cannot be read", error) from error

    def look_up(self, select: Select, keys: pa.RecordBatch) -> pa.RecordBatch:
        text, values = select_text(select, "%s", _item)
        names = ", ".join(map(quoted, keys.schema.names))
        arrays = ", ".join(f"%s::{_ARRAYS[kind]}[]" for kind in keys.schema.types)
        # WHERE (k1, k2) IN (SELECT * FROM unnest(array of k1, array of k2)): one parameter a key column
        text += f"{' AND' if select.conditions else ' WHERE'} ({names}) IN (SELECT * FROM unnest({arrays}))"
        return rows_of(
            self.ask(text, [*values, *(column.to_pylist() for column in keys.columns)]),
            select.fields,
            select.table,
        )

    def pushes(self, kind: DataType, operator: str) -> bool:
        # neither floats nor texts are compared there: only whether a text is NULL
        return not isinstance(kind, Float | Double) and (
            not isinstance(kind, String) or operator in ("IS NULL", "IS NOT NULL")
        )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        try:
            with self.connection.transaction():
                yield
        except self._driver.Error as error:
            raise self.failure("the PostgreSQL server refuses a transaction", error) from error

    def run(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        # from the placeholder ? of all databases to psycopg's %s
        return self.ask(text.replace("%", "%%").replace("?", "%s"), list(values))

    def change(self, text: str, values: Sequence[Any]) -> int:
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(text.replace("%", "%%").replace(PLACEHOLDER, "%s"), list(values))
                return cursor.rowcount
        except self._driver.Error as error:
            raise self.failure("the PostgreSQL server does not take the change", error) from error

    def locked(self, text: str) -> str:
        return f"{text} FOR UPDATE"

    def insert(self, table: str, rows: pa.RecordBatch) -> None:
        names = ", ".join(map(quoted, rows.schema.names))
        try:
            with (
                self.connection.cursor() as cursor,
                # an unquoted empty value is NULL, the default of FORMAT csv
                cursor.copy(f"COPY {quoted_table(table)} ({names}) FROM STDIN (FORMAT csv)") as copy,
            ):
                copy.write(csv_text(rows))
        except self._driver.Error as error:
            raise self.failure(f"{table} takes no rows", error) from error

    def replace(self, table: str, keys: Sequence[str], rows: pa.RecordBatch) -> None:
        # COPY cannot upsert: copy into a temporary table, then INSERT .. SELECT .. ON CONFLICT
        names = list(map(quoted, rows.schema.names))
        self._beside(table, rows)
        text = insert_text(quoted_table(table), names, f"SELECT {', '.join(names)} FROM {_BESIDE}")
        self.run(text + conflict_text(names, list(map(quoted, keys))))
        self.run(f"DROP TABLE {_BESIDE}")

    def delete(self, table: str, keys: pa.RecordBatch) -> None:
        self._beside(table, keys)
        same = " AND ".join(f"t.{quoted(name)} = k.{quoted(name)}" for name in keys.schema.names)
        self.run(f"DELETE FROM {quoted_table(table)} AS t USING {_BESIDE} AS k WHERE {same}")
        self.run(f"DROP TABLE {_BESIDE}")

    def _beside(self, table: str, rows: pa.RecordBatch) -> None:
        """Copy rows into a temporary table whose columns have the types of the target's."""
        names = ", ".join(map(quoted, rows.schema.names))
        self.run(
            f"CREATE TEMPORARY TABLE {_BESIDE} ON COMMIT DROP AS SELECT {names} FROM "
            f"{quoted_table(table)} LIMIT 0"
        )
        self.insert(_BESIDE, rows)

    def close(self) -> None:
        self.connection.close()

    def ask(self, text: str, values: list[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        try:
            # binary results: numbers and times need no parsing of texts
            with self.connection.cursor(binary=True) as cursor:
                cursor.execute(text, values)
                return cursor.fetchall() if cursor.description is not None else []
        except self._driver.Error as error:
            raise self.failure("the PostgreSQL server does not answer as asked", error) from error

    def failure(self, what: str, error: Exception) -> PenstockError:
        """Return a server error as a PenstockError; its SQLSTATE decides whether it is transient."""
        return self._failed(what, error, "DAT-4705")

    def _failed(self, what: str, error: Exception, code: str) -> PenstockError:
        lost = isinstance(error, self._driver.OperationalError) and not any(
            word in str(error) for word in REFUSED
        )
        # an operational error without a state is a lost connection, unless connecting was refused
        state = getattr(error, "sqlstate", None) or (_LOST if lost else "58000")
        transient = state.startswith(TRANSIENT) and not state.startswith(FOR_GOOD)
        return failed(
            what,
            error,
            self._redact,
            state=f"SQLSTATE {state}",
            sqlstate=state,
            code=code,
            transient=transient,
            hint="correct 'url', 'username' and 'password'; is the server up?"
            if code == "DAT-4701"
            else None,
        )

    def _redact(self, text: str) -> str:
        return redact_url(text.replace(self._secret, "******") if self._secret else text)


def csv_text(rows: pa.RecordBatch) -> memoryview:
    """Return rows as COPY reads them: every value is quoted, and NULL is empty."""
    columns = [
        _hexadecimal(c)
        if pa.types.is_binary(c.type)
        else c.cast(pa.string())
        if pa.types.is_decimal(c.type)
        else c
        for c in rows.columns
    ]
    sink = pa.BufferOutputStream()
    options = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")
    pa.csv.write_csv(pa.RecordBatch.from_arrays(columns, names=rows.schema.names), sink, options)
    return memoryview(sink.getvalue())


def _hexadecimal(column: pa.Array) -> pa.Array:
    """Encode bytes as the server reads them from text. The bytes of a column are contiguous, and so are the
    digits, hence one call encodes all.
    """
    # a slice becomes an array of its own, with offsets from 0
    column = pa.concat_arrays([column, pa.array([], column.type)])
    valid, offsets, values = column.buffers()
    # a column without any byte has no buffer of values
    if column.offset or values is None:
        return pa.array(
            [None if value is None else "\\x" + value.hex() for value in column.to_pylist()], pa.string()
        )
    doubled = np.frombuffer(offsets, np.int32)[: len(column) + 1].astype(np.int32) * 2
    digits = pa.py_buffer(binascii.hexlify(memoryview(values)))
    texts = pa.Array.from_buffers(pa.string(), len(column), [valid, pa.py_buffer(doubled), digits])
    return pc.binary_join_element_wise("\\x", texts, "")


def _item(field: Field) -> str:
    return f"{quoted(field.name)}::text" if isinstance(field.type, String) else quoted(field.name)
