"""From lark's trees to the nodes of ALTER TABLE: one method a rule of statements.lark."""

from __future__ import annotations

from typing import Any

from lark import Transformer

from penstock.catalog.errors import PenstockError, Span
from penstock.planner.parser.syntax_nodes import OptionEntry
from penstock.planner.statements import nodes
from penstock.planner.statements.nodes import (
    ComputedColumnDef,
    MetadataColumnDef,
    Name,
    PhysicalColumnDef,
    WatermarkDef,
)

_COLUMNS = (PhysicalColumnDef, ComputedColumnDef, MetadataColumnDef)
Part = nodes.PositionedColumn | WatermarkDef | tuple[Name, ...]


class AlterationBuilder(Transformer):
    """Transforms the rules below ``alter_table``; names, columns and options below them are nodes already."""

    span: Span

    def alter_table(self, children: list[Any]) -> nodes.AlterTable:
        return nodes.AlterTable(children[0], children[1], span=self.span)

    def alter_view(self, children: list[Any]) -> nodes.AlterView:
        return nodes.AlterView(children[0], children[1], span=self.span)

    def set_options(self, children: list[OptionEntry]) -> nodes.SetOptions:
        return nodes.SetOptions(tuple(children))

    def reset_options_of(self, children: list[Any]) -> nodes.ResetOptions:
        return nodes.ResetOptions(
            # keys of options are in lower case; the source is the token without quotes
            tuple(Name(token.source.text.lower(), Span(token.start_pos, token.end_pos)) for token in children)
        )

    def first(self, children: list[Any]) -> bool:
        return True

    def after(self, children: list[Name]) -> Name:
        return children[0]

    def part(self, children: list[Any]) -> Part:
        # a watermark or a primary key has no position
        if not isinstance(children[0], _COLUMNS):
            return children[0]
        # column [FIRST | AFTER other]: `first` returns True, `after` the name
        position = children[1] if len(children) > 1 else None
        return nodes.PositionedColumn(
            children[0], position is True, position if isinstance(position, Name) else None
        )

    def add_parts(self, children: list[Part], modify: bool = False) -> nodes.ChangeParts:
        # ADD (a INT, WATERMARK FOR a AS .., PRIMARY KEY (a) NOT ENFORCED), in any order; keys are tuples
        watermarks = [part for part in children if isinstance(part, WatermarkDef)]
        keys = [part for part in children if isinstance(part, tuple)]
        if len(watermarks) > 1:
            raise PenstockError(
                "SQL-1304", "a table has one watermark, here is a second", span=watermarks[1].column.span
            )
        if len(keys) > 1:
            raise PenstockError(
                "SQL-1304", "a table has one primary key, here is a second", span=keys[1][0].span
            )
        columns = tuple(part for part in children if isinstance(part, nodes.PositionedColumn))
        return nodes.ChangeParts(
            columns, watermarks[0] if watermarks else None, tuple(keys[0]) if keys else (), modify, self.span
        )

    def modify_parts(self, children: list[Part]) -> nodes.ChangeParts:
        return self.add_parts(children, True)

    def drop_columns(self, children: list[Any]) -> nodes.DropColumns | nodes.DropWatermark:
        names = (children[0],) if isinstance(children[0], Name) else tuple(children[0])
        # DROP WATERMARK; a column of that name needs quotes
        if len(names) == 1 and names[0].text.upper() == "WATERMARK" and not names[0].quoted:
            return nodes.DropWatermark(names[0].span)
        return nodes.DropColumns(names)

    def drop_key(self, children: list[Any]) -> nodes.DropKey:
        return nodes.DropKey()

    def rename_column(self, children: list[Name]) -> nodes.RenameColumn:
        return nodes.RenameColumn(children[0], children[1])

    def rename_table(self, children: list[Name]) -> nodes.RenameTable:
        return nodes.RenameTable(children[0])
