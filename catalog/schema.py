"""Schemas: ordered, named, typed columns, and the roles a column may play in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum

import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import DataType, to_arrow


class Role(StrEnum):
    """What a column means to time; lost as soon as an expression computes on it."""

    # Rowtime of Flink: the column of WATERMARK FOR.
    EVENT_TIME = "event time"
    # PROCTIME() in a column: the clock when a row is processed.
    PROCESSING_TIME = "processing time"
    # The columns that TUMBLE, HOP, CUMULATE and SESSION add; only WINDOW_TIME is an event time again.
    WINDOW_START = "window start"
    WINDOW_END = "window end"
    WINDOW_TIME = "window time"


@dataclass(frozen=True)
class Field:
    """One column. ``WINDOW_TIME`` columns are event-time attributes too."""

    name: str
    type: DataType
    nullable: bool = True
    role: Role | None = None

    @property
    def is_event_time(self) -> bool:
        """Whether windows may be cut on this column."""
        return self.role in (Role.EVENT_TIME, Role.WINDOW_TIME)

    @property
    def is_time(self) -> bool:
        """Whether the column is a time attribute, by events or by the clock."""
        return self.is_event_time or self.role is Role.PROCESSING_TIME

    def renamed(self, name: str) -> Field:
        """Return the field under another name."""
        return replace(self, name=name)


@dataclass(frozen=True)
class Schema:
    """Ordered fields; names may repeat inside a plan (after joins) but not in a table."""

    fields: tuple[Field, ...]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, index: int) -> Field:
        return self.fields[index]

    @property
    def names(self) -> list[str]:
        """The column names in order."""
        return [field.name for field in self.fields]

    def index_of(self, name: str) -> int | None:
        """Return the position of the first column of that name, compared without case, or ``None``."""
        folded = name.lower()
        # A linear search: schemas are short, and the first of two equal names wins.
        for index, field in enumerate(self.fields):
            if field.name.lower() == folded:
                return index
        return None

    def select(self, indexes: tuple[int, ...]) -> Schema:
        """Return the schema of the named positions in that order."""
        return Schema(tuple(self.fields[index] for index in indexes))

    def concat(self, other: Schema) -> Schema:
        """Return this schema followed by another."""
        # Names are not made unique: plans refer to columns by position.
        return Schema(self.fields + other.fields)

    def nullable(self) -> Schema:
        """Return the schema with every column nullable, as the null-padded side of an outer join has."""
        return Schema(tuple(replace(field, nullable=True) for field in self.fields))

    def without_roles(self) -> Schema:
        """Return the schema with no time attributes."""
        return Schema(tuple(replace(field, role=None) for field in self.fields))

    def same_layout(self, other: Schema) -> bool:
        """Return whether names and types agree in order (nullability and roles may differ)."""
        # A rule may make a column NOT NULL or end a time attribute.
        return [(f.name, f.type) for f in self.fields] == [(f.name, f.type) for f in other.fields]

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema of batches with these columns; every Arrow field is nullable."""
        # Nullability is the planner's affair: a batch has one layout whether a column is NOT NULL or not.
        return pa.schema([pa.field(field.name, to_arrow(field.type)) for field in self.fields])


def without_event_time(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Return columns without the event times and windows that end where rows come later than their time;
    processing times stay.
    """
    return tuple(
        # A window above would see such rows as late; a processing time is never late.
        field if field.role in (None, Role.PROCESSING_TIME) else replace(field, role=None)
        for field in fields
    )
