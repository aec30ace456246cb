"""ALTER TABLE as the parser gives it: a table's name and one change of its declaration."""

from __future__ import annotations

from dataclasses import field

from penstock.catalog.errors import Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.parser.syntax_nodes import NOWHERE, OptionEntry
from penstock.planner.statements.nodes import (
    ColumnDef,
    Name,
    Statement,
    WatermarkDef,
)


@dataclass(frozen=True)
class SetOptions:
    """SET ('key' = 'value', ..): these options get these values."""

    options: tuple[OptionEntry, ...]


@dataclass(frozen=True)
class ResetOptions:
    """RESET ('key', ..): these options have their defaults again."""

    keys: tuple[Name, ...]


@dataclass(frozen=True)
class PlacedColumn:
    """A column and where it goes: ``first``, after another, or (neither) last; a modified one stays where
    it is.
    """

    column: ColumnDef
    first: bool = False
    after: Name | None = None


@dataclass(frozen=True)
class ChangeParts:
    """ADD or (``modify``) MODIFY columns, the watermark, the primary key."""

    columns: tuple[PlacedColumn, ...] = ()
    watermark: WatermarkDef | None = None
    primary_key: tuple[Name, ...] = ()
    modify: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class DropColumns:
    """DROP column or DROP (column, ..)."""

    names: tuple[Name, ...]


@dataclass(frozen=True)
class DropWatermark:
    """DROP WATERMARK."""

    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class DropKey:
    """DROP PRIMARY KEY."""


@dataclass(frozen=True)
class RenameColumn:
    """RENAME old TO new."""

    old: Name
    new: Name


@dataclass(frozen=True)
class RenameTable:
    """RENAME TO new."""

    new: Name


Alteration = (
    SetOptions
    | ResetOptions
    | ChangeParts
    | DropColumns
    | DropWatermark
    | DropKey
    | RenameColumn
    | RenameTable
)


@dataclass(frozen=True)
class AlterTable(Statement):
    """ALTER TABLE: one change."""

    name: Name
    change: Alteration
