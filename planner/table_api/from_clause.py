"""FROM of a Table API query: its tables, joins and conditions, as a syntax tree and as SQL text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.scope import Relation
from penstock.planner.parser.syntax_nodes import AsOf, Reference
from penstock.planner.table_api.expressions import ORIGIN
from penstock.planner.table_api.pieces import SqlPiece
from penstock.planner.table_api.sql_text import Lines, indented, name_text, names_text

# names of tables that have none of the catalog: a join is on left.a = right.a
LEFT, RIGHT = "left", "right"


@dataclass(frozen=True)
class FromTable:
    """One table of FROM: of the catalog by its ``path``, else a bound ``relation`` with its text.

    ``origin`` is the number of the Table object it comes from and ``ancestors`` those of the objects
    before it. ``t["a"]`` finds its side of a join by them.
    """

    name: str | None
    relation: Relation
    sql: Lines
    path: str | None = None
    origin: int = 0
    ancestors: frozenset[int] = frozenset()

    def tree(self, position: int) -> exp.Expr:
        """Return the table reference; ``position`` is the table's own among those of FROM."""
        # a derived table is a common table expression; NUL keeps its name apart from those of the catalog
        name = self.path if self.path is not None else f"\0{position}"
        node = exp.Table(this=exp.Identifier(this=name, quoted=True))
        node.set("alias", exp.TableAlias(this=exp.Identifier(this=self.name or LEFT, quoted=True)))
        return node

    def text(self) -> Lines:
        """Return the table with its alias, which is left out where it is the table's own name."""
        name = self.name or LEFT
        if self.path is not None and self.path.rpartition(".")[2] == name:
            return self.sql
        return (*self.sql[:-1], f"{self.sql[-1]} AS {name_text(name)}")


@dataclass(frozen=True)
class JoinClause:
    """One join: its right table, its kind, and a condition or the columns of USING."""

    table: FromTable
    kind: str
    on: SqlPiece | None = None
    using: tuple[str, ...] = ()
    as_of: SqlPiece | None = None

    def tree(self, position: int) -> exp.Expr:
        """Return the join's syntax tree."""
        table = self.table.tree(position)
        if self.as_of is not None:
            table = AsOf(this=table, expression=self.as_of.tree.copy())
        node = exp.Join(this=table, kind=self.kind)
        if self.using:
            node.set("using", [exp.Identifier(this=name, quoted=True) for name in self.using])
        elif self.on is not None:
            node.set("on", self.on.tree.copy())
        return node

    def text(self) -> Lines:
        """Return the join's lines."""
        # SEMI and ANTI are of the left side's rows
        word = {"INNER": "JOIN", "SEMI": "LEFT SEMI JOIN", "ANTI": "LEFT ANTI JOIN"}.get(self.kind)
        word = word or f"{self.kind} JOIN"
        lines = list(self.table.text())
        lines[0] = f"{word} {lines[0]}"
        if self.as_of is not None:
            lines[-1] += f" FOR SYSTEM_TIME AS OF {self.as_of.sql}"
        if self.using:
            lines[-1] += f" USING ({names_text(self.using)})"
        elif self.on is not None:
            lines[-1] += f" ON {self.on.sql}"
        return tuple(lines)


@dataclass(frozen=True)
class FromItems:
    """FROM and WHERE of one SELECT. Until something else is made of them, more joins and conditions are
    added to the same SELECT.
    """

    first: FromTable
    joins: tuple[JoinClause, ...] = ()
    where: tuple[SqlPiece, ...] = ()

    @property
    def tables(self) -> tuple[FromTable, ...]:
        """All tables, left to right."""
        return (self.first, *(join.table for join in self.joins))

    @property
    def names(self) -> list[str]:
        """The names by which the tables are visible."""
        return [(table.name or LEFT).lower() for table in self.tables]

    def origins(self) -> frozenset[int]:
        """Return the numbers of all Table objects that the rows come from."""
        return frozenset().union(*({table.origin, *table.ancestors} for table in self.tables))

    def fill(self, tree: exp.Select) -> exp.Select:
        """Set FROM, the joins and WHERE of a SELECT; returns it."""
        tree.set("from_", exp.From(this=self.first.tree(0)))
        if self.joins:
            tree.set("joins", [join.tree(position) for position, join in enumerate(self.joins, 1)])
        if self.where:
            condition = self.where[0].tree.copy()
            for piece in self.where[1:]:
                condition = exp.And(this=condition, expression=piece.tree.copy())
            tree.set("where", condition)
        return tree

    def context(self, context: BindContext) -> BindContext:
        """Return a bind context in which the derived tables are known."""
        for position, table in enumerate(self.tables):
            if table.path is None:
                context = context.with_table(f"\0{position}", table.relation)
        return context

    def text(self) -> Lines:
        """Return the lines of FROM, the joins and WHERE."""
        lines = list(self.first.text())
        lines[0] = f"FROM {lines[0]}"
        for join in self.joins:
            lines += indented(join.text())
        # a condition in SQL text may be an OR
        for word, piece in zip(["WHERE", *["  AND"] * len(self.where)], self.where, strict=False):
            lines.append(f"{word} {piece.sql if len(self.where) == 1 else f'({piece.sql})'}")
        return tuple(lines)

    def qualify(self, tree: exp.Expr) -> exp.Expr:
        """Name the table of each reference that ``t["a"]`` made, where FROM has several tables."""
        if len(self.tables) > 1:
            for node in list(tree.find_all(Reference)):
                table = self._table_of(node.meta.get(ORIGIN))
                if table is not None:
                    name = exp.Identifier(this=table.name or LEFT, quoted=True)
                    node.set("expressions", [name, *node.expressions])
        return tree

    def _table_of(self, origin: int | None) -> FromTable | None:
        if origin is None:
            return None
        # the object itself, before tables that were made of it: bid.join(totals_of_bid, ..)
        for found in (
            [table for table in self.tables if table.origin == origin],
            [table for table in self.tables if origin in table.ancestors],
        ):
            if len(found) == 1:
                return found[0]
        return None

    def renamed(self, name: str) -> FromItems:
        """Return FROM with another name for its first table."""
        return replace(self, first=replace(self.first, name=name))


def derived(name: str | None, relation: Relation, sql: Lines, origin: int, before: FromItems) -> FromTable:
    """Return a query in parentheses as a table of FROM."""
    return FromTable(name, relation, ("(", *indented(sql), ")"), None, origin, before.origins() - {origin})


def select_lines(
    items: Sequence[str],
    from_items: FromItems,
    *,
    distinct: bool = False,
    clauses: Sequence[str] = (),
) -> Lines:
    """Return the lines of a SELECT; ``clauses`` are those behind WHERE, one a line."""
    word = "SELECT DISTINCT" if distinct else "SELECT"
    listed: Lines = (f"{word} {', '.join(items)}",)
    # a long list has a line for each item
    if len(listed[0]) > 100 and len(items) > 1:
        listed = (word, *("  " + item + ("," if at < len(items) else "") for at, item in enumerate(items, 1)))
    return (*listed, *from_items.text(), *clauses)
