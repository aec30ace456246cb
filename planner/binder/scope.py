"""Scopes: the columns visible at one point of a query, by table and name. ``FromClause`` is a bound FROM: a
plan with its scope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.other_dialects import COLUMN_HINTS
from penstock.catalog.schema import Field, Schema, without_event_time
from penstock.catalog.types import Foreign
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.parser.syntax_nodes import span_of

# characters that separate the fields of csv files
_DELIMITERS = (";", "\t", "|", ",")


@dataclass(frozen=True)
class Relation:
    """A bound plan and its output fields. Roles are the binder's own: a join of two streams drops them from
    the fields, though the plan's schema still has them.
    """

    plan: LogicalPlan
    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(field.name for field in self.fields)

    def renamed(self, names: Sequence[str]) -> Relation:
        """Return the relation with its columns renamed."""
        return Relation(
            self.plan, tuple(field.renamed(name) for field, name in zip(self.fields, names, strict=True))
        )


@dataclass(frozen=True)
class ScopeColumn:
    """A visible column: its position in the input, its field and its table name. A ``merged`` column (USING)
    is visible with its table name only. ``qualifier``: what FROM wrote before the table's name, such as the
    database of ``db.t``.
    """

    index: int
    field: Field
    table: str | None = None
    merged: bool = False
    qualifier: tuple[str, ...] = ()

    def table_path_length(self, parts: Sequence[exp.Identifier]) -> int:
        """Return how many of ``parts`` name the column's table by its qualifier too: 2 for ``db.t``; 0 if
        they do not.
        """
        names = [part.name.lower() for part in parts]
        path = [name.lower() for name in (*self.qualifier, self.table or "")]
        # catalog.db.t may be called db.t too
        lengths = range(len(path), 1, -1)
        return next((n for n in lengths if len(names) > n and names[:n] == path[-n:]), 0)


def check_readable(column: ScopeColumn, span: Span | None) -> None:
    """Refuse to read a column of a type that this engine does not have: SQL-1207."""
    if isinstance(column.field.type, Foreign):
        name = column.field.name
        message = f'column "{name}" is of the type {column.field.type}, which has no like here'
        hint = "leave it out, or read a view of the other system that casts it to STRING or BINARY"
        raise PenstockError("SQL-1207", message, span=span, hint=hint, sqlstate="0A000")


@dataclass(frozen=True)
class Scope:
    """The visible columns, in the order of ``*``. In a subquery ``outer`` is the scope of the outer query; a
    name is resolved in it last.
    """

    columns: tuple[ScopeColumn, ...] = ()
    outer: Scope | None = None

    @staticmethod
    def of(relation: Relation, table: str | None, qualifier: tuple[str, ...] = ()) -> Scope:
        """Return the scope of one relation under a table name."""
        # by position: the plan may have more columns behind those of the relation
        return Scope(
            tuple(
                ScopeColumn(index, field, table, qualifier=qualifier)
                for index, field in enumerate(relation.fields)
            )
        )

    @property
    def tables(self) -> list[str]:
        """The visible table names, in order."""
        return list(dict.fromkeys(column.table for column in self.columns if column.table is not None))

    def beside(self, other: Scope, offset: int) -> Scope:
        """Return this scope followed by another whose columns are shifted right by ``offset``."""
        return Scope(
            self.columns + tuple(replace(column, index=column.index + offset) for column in other.columns)
        )

    def without_roles(self) -> Scope:
        """Return the scope without event times. Processing times stay, because no operator delays
        the clock.
        """
        # the columns keep their types: only windows and OVER cannot go by them any more
        fields = without_event_time([column.field for column in self.columns])
        return Scope(
            tuple(replace(column, field=field) for column, field in zip(self.columns, fields, strict=True))
        )

    def with_roles_of(self, schema: Schema) -> Scope:
        """Return the scope with only those time roles that the plan's schema has too."""
        plain = self.without_roles().columns
        return Scope(
            tuple(
                c if c.field.role is schema[c.index].role else lost
                for c, lost in zip(self.columns, plain, strict=True)
            )
        )

    def nullable(self) -> Scope:
        """Return the scope with every column nullable."""
        return Scope(
            tuple(replace(column, field=replace(column.field, nullable=True)) for column in self.columns)
        )

    def find(self, name: str, table: str | None = None) -> list[ScopeColumn]:
        """Return the columns of a name, in one table or in all."""
        folded = name.lower()
        if table is None:
            # A column merged by USING is visible once without its table.
            return [c for c in self.columns if c.field.name.lower() == folded and not c.merged]
        # t.x, also of a column that USING merged
        return [
            c
            for c in self.columns
            if c.field.name.lower() == folded and c.table is not None and c.table.lower() == table.lower()
        ]

    def has_table(self, name: str) -> bool:
        """Return whether a table of that name is visible."""
        return any(table.lower() == name.lower() for table in self.tables)

    def resolves(self, parts: Sequence[exp.Identifier]) -> bool:
        """Return whether a path begins with a visible table or column."""
        return (
            (len(parts) > 1 and self.has_table(parts[0].name))
            or bool(self.find(parts[0].name))
            or self._qualified_table(parts) > 0
        )

    def sees(self, parts: Sequence[exp.Identifier]) -> bool:
        """Return whether a path begins with a column or table of this scope or of the outer one."""
        return self.resolves(parts) or (self.outer is not None and self.outer.resolves(parts))

    def _qualified_table(self, parts: Sequence[exp.Identifier]) -> int:
        return max((column.table_path_length(parts) for column in self.columns), default=0)

    def resolve(self, parts: Sequence[exp.Identifier]) -> tuple[ScopeColumn, int]:
        """Return the column of a path and how many parts of the path it consumed; the rest are fields of
        rows. Raises SQL-1042, 1043 or 1044 with candidates.
        """
        # A name that only the outer query knows makes the subquery correlated.
        if self.outer is not None and not self.resolves(parts) and self.outer.resolves(parts):
            return self.outer.resolve(parts)
        first = parts[0].name
        # t.c, before c.field: a table's name wins over a row column of that name.
        if len(parts) > 1 and self.has_table(first):
            return self._one(self.find(parts[1].name, first), parts[:2]), 2
        # c, or c.field of a row column
        matches = self.find(first)
        # db.t.c, where db is neither a table nor a column
        if not matches and (length := self._qualified_table(parts)):
            name = parts[length].name.lower()
            within = [c for c in self.columns if c.table_path_length(parts) == length]
            matches = [c for c in within if c.field.name.lower() == name]
            return self._one(matches, parts[length - 1 : length + 1]), length + 1
        # a.b, where a is neither a table nor a column
        if not matches and len(parts) > 1:
            raise self._no_table(parts[0])
        return self._one(matches, parts[:1]), 1

    def _one(self, matches: list[ScopeColumn], parts: Sequence[exp.Identifier]) -> ScopeColumn:
        if len(matches) == 1:
            check_readable(matches[0], span_of(parts[-1]))
            return matches[0]
        name, span = parts[-1].name, span_of(parts[-1])
        if not matches:
            raise self._no_column(parts[-1], parts[0].name if len(parts) > 1 else None)
        tables = [column.table for column in matches if column.table is not None]
        # The same table shows the name twice, so no qualifier helps.
        if len(set(tables)) < len(matches):
            raise PenstockError(
                "SQL-1043",
                f'column "{name}" names {len(matches)} columns of one table',
                span=span,
                hint="rename them with AS in FROM",
            )
        hint = f"write {' or '.join(f'{table}.{name}' for table in tables)}"
        raise PenstockError(
            "SQL-1043",
            f'column "{name}" is in {" and in ".join(tables)}',
            span=span,
            hint=hint,
            sqlstate="42702",
        )

    def _no_column(self, part: exp.Identifier, table: str | None) -> PenstockError:
        name = part.name
        # Columns of internal tables, such as GROUP BY's window, are no suggestions.
        named = [c for c in self.columns if not (c.table or "").startswith("$")]
        within = [c.field.name for c in named if table is None or (c.table or "").lower() == table.lower()]
        where = f" in {table}" if table else f" in {self.tables[0]}" if len(self.tables) == 1 else ""
        if not self.columns:
            hint: str | None = COLUMN_HINTS.get(name.lower(), "there is no FROM, so no column can be read")
            if part.args.get("quoted"):
                hint = f"text is in single quotes: '{name}'"
        else:
            hint = _column_hint(part, within, qualified=table is not None)
        return PenstockError(
            "SQL-1042",
            f'column "{name}" does not exist{where}',
            span=span_of(part),
            hint=hint,
            sqlstate="42703",
        )

    def _no_table(self, part: exp.Identifier) -> PenstockError:
        hint = did_you_mean(part.name, self.tables, others=True)
        return PenstockError(
            "SQL-1044", f'table "{part.name}" is not in FROM', span=span_of(part), hint=hint, sqlstate="42P01"
        )


def _column_hint(part: exp.Identifier, known: Sequence[str], *, qualified: bool) -> str | None:
    name = part.name
    if (hint := did_you_mean(name, known)) is not None or qualified:
        return hint or did_you_mean(name, known, others=True)
    if name.lower() in ("window_start", "window_end", "window_time"):
        return "a window function has it: FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)"
    if name.lower() in COLUMN_HINTS:
        return COLUMN_HINTS[name.lower()]
    # item;price: the header was read as one column
    for column in known:
        mark = next((mark for mark in _DELIMITERS if name in column.split(mark)), name)
        if mark not in (column, name):
            return f"the file's delimiter is {mark}: write delim => '{mark}', or 'csv.delimiter' = '{mark}'"
    others = did_you_mean(name, known, others=True)
    # "ann", or customer = ann: a text was meant
    compared = part.parent is not None and isinstance(part.parent.parent, exp.Binary | exp.In)
    if part.args.get("quoted") or compared:
        return f"{others}; a text is written in single quotes: '{name}'"
    return others


@dataclass(frozen=True)
class FromClause:
    """A bound FROM: a plan and the visible columns. ``halves``: the inputs of an inner join that conditions
    of WHERE may turn into an interval join.
    """

    plan: LogicalPlan
    scope: Scope
    halves: Halves | None = None


@dataclass(frozen=True)
class Halves:
    """The sides of an inner join, its conditions over left ++ right, and the function that
    applies its hints.
    """

    left: FromClause
    right: FromClause
    parts: tuple[Expression, ...]
    hinted: Hinted


Combine = Callable[[tuple[Expression, ...]], FromClause]
"""Joins two known sides on conditions over left ++ right."""


JoinSides = Callable[[FromClause, FromClause, tuple[Expression, ...]], FromClause]
"""Joins two sides on conditions over left ++ right."""


Hinted = Callable[[LogicalPlan], LogicalPlan]
"""Returns a join with the hints for its sides applied."""
