"""Tables of the program: Arrow, pandas and iterables under a name, with an event-time column where one is
named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from penstock.catalog.catalog import Catalog
from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Role, Schema
from penstock.catalog.settings import parse_duration_ms
from penstock.catalog.tables import CatalogTable, WatermarkRule
from penstock.catalog.types import DAY_TIME_INTERVAL, is_timestamp
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.planner.expressions.nodes import Call, Column, Expression, Literal


def register(
    catalog: Catalog,
    registered: RegisteredTables,
    name: str,
    source: Any,
    *,
    time_column: str | None = None,
    delay: timedelta | str | float | None = None,
    stream: bool | None = None,
    registered_name: Callable[[str], str] = str,
) -> None:
    """Declare a temporary table over a source of the program, taking the place of a registered table of that
    name.

    ``delay``: how far the watermark stays behind (seconds when a number). ``stream`` None: a stream when the
    source is an iterator or a function, or has a time column. ``registered_name``: by which name the rows of
    a table are registered. Raises CLI-6040 for a bad name, CLI-6041 for a
    bad time column, CLI-6042 for a bad delay.
    """
    if not name or not isinstance(name, str):
        raise PenstockError("CLI-6040", "a registered table needs a name", sqlstate="42602")
    # with catalog and database: USE may change between the registration and the query
    name = catalog.qualified(name)
    existing = catalog.find(name)
    # a program may register a name again, in a loop or a notebook
    if isinstance(existing, CatalogTable) and existing.temporary and existing.connector == "registered":
        catalog.drop_table(name)
    elif existing is not None and existing.temporary:
        raise PenstockError(
            "SQL-1302",
            f'"{existing.name}" exists already',
            hint=f"DROP it first: {existing.name} was not registered",
            sqlstate="42P07",
        )
    # after the check of the name: a refused one registers nothing
    rows_of = registered_name(name)
    source_schema = registered.register(rows_of, source)
    options = {"connector": "registered", "name": rows_of}
    # a collection is bounded; an iterator, or rows with a time column, are read as a stream
    if stream if stream is not None else time_column is not None or _is_stream(source):
        options["source.replay"] = "true"
    schema, watermark = _with_time(source_schema, time_column, delay)
    catalog.create_table(
        CatalogTable(name, source_schema, schema, options, watermark=watermark, temporary=True)
    )


def unregister(catalog: Catalog, registered: RegisteredTables, name: str) -> None:
    """Remove a registered table and its rows. Raises SQL-1041 when no table has that name, and CLI-6043 when
    the table was not registered.
    """
    table = catalog.table(name)
    if table.connector != "registered":
        raise PenstockError(
            "CLI-6043",
            f'"{name}" was not registered',
            hint=f"DROP TABLE {name} removes a table that was created",
            sqlstate="42809",
        )
    catalog.drop_table(name)
    registered.unregister(table.options["name"])


def _is_stream(source: Any) -> bool:
    """Return whether a source gives its rows as it runs: an iterator or a function, not a collection."""
    return callable(source) or (
        isinstance(source, Iterable)
        and not isinstance(source, list | tuple | Mapping)
        # a pandas frame is iterable too, over the names of its columns
        and not hasattr(source, "columns")
    )


def _with_time(
    schema: Schema, time_column: str | None, delay: timedelta | str | float | None
) -> tuple[Schema, WatermarkRule | None]:
    """Return the schema with its event-time role, and the watermark rule."""
    if time_column is None:
        if delay is not None:
            raise PenstockError(
                "CLI-6041", "a delay needs a time column", hint="pass time_column=", sqlstate="42601"
            )
        return schema, None
    position = schema.index_of(time_column)
    if position is None:
        hint = did_you_mean(time_column, schema.names, others=True)
        raise PenstockError("CLI-6041", f'there is no column "{time_column}"', hint=hint, sqlstate="42703")
    column = schema[position]
    if not is_timestamp(column.type):
        hint = "an event time is a TIMESTAMP or TIMESTAMP_LTZ"
        raise PenstockError(
            "CLI-6041",
            f'column "{column.name}" is {column.type}, not a timestamp',
            hint=hint,
            sqlstate="42804",
        )
    behind = _delay(delay)
    watermark: Expression = Column(column.type, column.nullable, index=position, name=column.name)
    text = column.name
    # without a delay the watermark is the column itself
    if behind:
        distance = Literal(DAY_TIME_INTERVAL, False, value=behind)
        # WATERMARK FOR column AS column - delay
        watermark = Call(column.type, column.nullable, function="subtract", args=(watermark, distance))
        text = f"{column.name} - INTERVAL '{behind.total_seconds():f}".rstrip("0").rstrip(".") + "' SECOND"
    fields = list(schema.fields)
    fields[position] = replace(column, role=Role.EVENT_TIME)
    return Schema(tuple(fields)), WatermarkRule(column.name, watermark, text)


def _delay(delay: timedelta | str | float | None) -> timedelta:
    if isinstance(delay, str):
        milliseconds = parse_duration_ms(delay)
        if milliseconds is None:
            raise PenstockError(
                "CLI-6042",
                f"'{delay}' is no delay",
                hint="write '5 s', '100 ms' or pass a timedelta",
                sqlstate="22007",
            )
        return timedelta(milliseconds=milliseconds)
    if isinstance(delay, timedelta):
        return delay
    # a number is seconds
    return timedelta(seconds=delay or 0)
