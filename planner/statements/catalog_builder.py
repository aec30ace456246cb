"""From lark's trees to the statements about catalogs and databases: one method a rule of statements.lark."""

from __future__ import annotations

from typing import Any

from lark import Transformer

from penstock.catalog.errors import Span
from penstock.planner.parser.syntax_nodes import OptionEntry
from penstock.planner.statements import catalog_nodes as nodes
from penstock.planner.statements.nodes import Name


class PlaceBuilder(Transformer):
    """The rules of catalogs and databases; names and options are built already, words stand as flags with
    a name.
    """

    span: Span

    def create_catalog(self, children: list[Any]) -> nodes.CreateCatalog:
        options = [
            option
            for child in children
            if isinstance(child, tuple)
            for option in child
            if isinstance(option, OptionEntry)
        ]
        return nodes.CreateCatalog(
            _name(children), tuple(options), _has(children, "if_not_exists"), span=self.span
        )

    def drop_catalog(self, children: list[Any]) -> nodes.DropCatalog:
        return nodes.DropCatalog(_name(children), _has(children, "if_exists"), span=self.span)

    def create_database(self, children: list[Any]) -> nodes.CreateDatabase:
        return nodes.CreateDatabase(_name(children), _has(children, "if_not_exists"), span=self.span)

    def drop_database(self, children: list[Any]) -> nodes.DropDatabase:
        return nodes.DropDatabase(
            _name(children), _has(children, "if_exists"), _has(children, "cascade"), span=self.span
        )

    def use_catalog(self, children: list[Any]) -> nodes.Use:
        return nodes.Use(_name(children), True, span=self.span)

    def use(self, children: list[Any]) -> nodes.Use:
        return nodes.Use(_name(children), span=self.span)


def _name(children: list[Any]) -> Name:
    return next(child for child in children if isinstance(child, Name))


def _has(children: list[Any], flag: str) -> bool:
    return any(getattr(child, "name", None) == flag for child in children)
