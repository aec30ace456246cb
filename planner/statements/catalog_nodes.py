"""Statements about catalogs and databases."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.parser.syntax_nodes import OptionEntry
from penstock.planner.statements.nodes import Name, Statement


@dataclass(frozen=True)
class CreateCatalog(Statement):
    """CREATE CATALOG name WITH (..)."""

    name: Name
    options: tuple[OptionEntry, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropCatalog(Statement):
    """DROP CATALOG name."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True)
class CreateDatabase(Statement):
    """CREATE DATABASE [catalog.]name."""

    name: Name
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropDatabase(Statement):
    """DROP DATABASE [catalog.]name [CASCADE]."""

    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Use(Statement):
    """USE [catalog.]database, or USE CATALOG name."""

    name: Name
    catalog: bool = False


PlaceStatement = CreateCatalog | DropCatalog | CreateDatabase | DropDatabase | Use
