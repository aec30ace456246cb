"""The bind context of one statement: catalog, settings, parameters, common table expressions, and the views
being expanded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol
from zoneinfo import ZoneInfo

from sqlglot import exp

from penstock.catalog.catalog import Catalog
from penstock.catalog.errors import Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.functions.registry import is_aggregate
from penstock.catalog.python_functions import PythonAggregate
from penstock.catalog.settings import Settings
from penstock.catalog.tables import View
from penstock.planner.binder.parameters import Parameters
from penstock.planner.binder.scope import FromClause, JoinSides, Relation, Scope
from penstock.planner.expressions.nodes import Expression, OuterColumn
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.parser.syntax_nodes import LateralQuery


class NestedBinder(Protocol):
    """Binds queries within queries. FROM and expressions call it, so that they need not import the modules
    above them.
    """

    def query(self, tree: exp.Expr, context: BindContext) -> Relation:
        """Return a nested query as a relation."""

    def lateral(
        self,
        left: FromClause,
        tree: LateralQuery,
        kind: JoinKind,
        context: BindContext,
        condition: Expression | None = None,
    ) -> FromClause:
        """Return rows joined with a query that may read them; ``condition`` is over both."""

    def join_with_subqueries(
        self,
        left: FromClause,
        right: FromClause,
        kind: JoinKind,
        tree: exp.Expr,
        join: JoinSides,
        context: BindContext,
    ) -> FromClause:
        """Return the join on a condition that contains subqueries."""

    def asof(
        self,
        left: FromClause,
        right: FromClause,
        kind: JoinKind,
        join: exp.Expr,
        context: BindContext,
        parts: tuple[Expression, ...],
    ) -> FromClause:
        """Return the ASOF join on conditions over both sides."""


@dataclass(frozen=True)
class BindContext:
    """The context passed down through one statement. ``binder`` binds nested queries, so that no module needs
    to import the whole binder.

    ``follows``: materialized views are read as changelogs, not as their current rows. ``text`` is the query's
    text; it begins ``text_start`` characters into the statement. ``notes``: what is said to the user of
    clauses that have no effect; all contexts of a statement share it. ``watermark_calls`` is shared as well
    and has an entry for each CURRENT_WATERMARK.

    ``enclosing``: the scopes of the queries around this one, the outermost first.
    """

    catalog: Catalog
    settings: Settings
    binder: NestedBinder
    parameters: Parameters = ()
    common_tables: Mapping[str, Relation] = field(default_factory=dict)
    views: tuple[str, ...] = ()
    text: str = ""
    text_start: int = 0
    follows: bool = False
    notes: list[str] = field(default_factory=list, compare=False)
    watermark_calls: list[str] = field(default_factory=list, compare=False)
    enclosing: tuple[Scope, ...] = ()

    def written(self, span: Span | None) -> str:
        """Return the text of a span on one line, the name of a column without an alias."""
        # a tree without a position, or a query without a text
        if span is None or not self.text:
            return ""
        # line breaks and indentation of the text are not part of a column's name
        return " ".join(self.text[span.start - self.text_start : span.end - self.text_start].split())

    def note(self, text: str) -> None:
        """Tell the user of a clause without effect, once. Views were noted when they were created."""
        if not self.views and text not in self.notes:
            self.notes.append(text)

    def is_aggregate(self, name: str) -> bool:
        """Return whether a name is an aggregate function, built in or registered in Python."""
        return is_aggregate(name) or isinstance(self.catalog.functions.find(name), PythonAggregate)

    def query(self, tree: exp.Expr) -> Relation:
        """Bind a nested query."""
        return self.binder.query(tree, self)

    def inside(self, scope: Scope) -> BindContext:
        """Return the context of a subquery that may read the columns of ``scope``."""
        return replace(self, enclosing=(*self.enclosing, scope))

    @property
    def level(self) -> int:
        """The number of queries around this one; it is the level of this query's columns in a subquery."""
        return len(self.enclosing)

    def outer_column(
        self, parts: Sequence[exp.Identifier], span: Span | None
    ) -> tuple[OuterColumn, int] | None:
        """Return the column of a path in the nearest query around this one that knows it, and how many parts
        of the path it consumed; ``None`` if no query does.
        """
        for level in reversed(range(self.level)):
            if self.enclosing[level].resolves(parts):
                column, used = self.enclosing[level].resolve(parts)
                field = column.field
                kind, nullable = field.type, field.nullable
                outer = OuterColumn(
                    kind, nullable, span=span, level=level, index=column.index, name=field.name
                )
                return outer, used
        return None

    def with_table(self, name: str, relation: Relation) -> BindContext:
        """Return the context with one more common table expression."""
        return replace(self, common_tables={**self.common_tables, name.lower(): relation})

    def inside_view(self, view: View) -> BindContext:
        """Return the context of a view's query: no common table expressions, no parameters, its own text.
        Names resolve in the namespace where the view was created.
        """
        # the path of CREATE VIEW: a later USE does not change what the view's names mean
        name, text, catalog = view.name, view.query, self.catalog.at(view.path)
        return replace(
            self,
            catalog=catalog,
            common_tables={},
            parameters=(),
            enclosing=(),
            views=(*self.views, name.lower()),
            text=text,
            text_start=0,
        )

    @property
    def zone(self) -> ZoneInfo:
        """The session's time zone."""
        return ZoneInfo(str(self.settings.get("table.local-time-zone")))
