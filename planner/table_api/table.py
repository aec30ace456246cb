"""The Table API: a fluent interface to the same plans. Each method binds at once, so an error is raised at
the call that causes it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.planner.binder.binder import Binder
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.query import bind_query
from penstock.planner.binder.scope import Relation, Scope
from penstock.planner.logical.windows import WINDOW_FUNCTIONS
from penstock.planner.parser.scanner import allow_depth
from penstock.planner.parser.syntax_nodes import AllColumns, Reference, moved
from penstock.planner.table_api.execution import Executable, NewCursor
from penstock.planner.table_api.expressions import ORIGIN, ColumnExpression, col, row_number
from penstock.planner.table_api.from_clause import (
    LEFT,
    RIGHT,
    FromItems,
    FromTable,
    JoinClause,
    derived,
    select_lines,
)
from penstock.planner.table_api.match import matched
from penstock.planner.table_api.pieces import (
    NO_TAIL,
    Item,
    Pieces,
    SqlPiece,
    Tail,
    all_but,
    column_name,
    conjunction,
    free_name,
    item_text,
    listed,
)
from penstock.planner.table_api.process_tables import PartitionedTable
from penstock.planner.table_api.sql_text import Lines, path_text
from penstock.planner.table_api.windows import Length, Window, windowed

Items = Item | Sequence[Item]
# as sqlglot's Join has them
_JOINS = {
    "inner": "INNER",
    "left": "LEFT",
    "right": "RIGHT",
    "full": "FULL",
    "outer": "FULL",
    "semi": "SEMI",
    "anti": "ANTI",
    "cross": "CROSS",
}
# numbers Table objects, so that t["a"] finds its side of a join
_ORIGINS = itertools.count(1)


class Table(Executable):
    """A bound relational expression, immutable: every method returns a new one.

    ``t["a"]`` and ``t.a`` are columns. A method wins over a column of its name: write ``t["count"]``.
    """

    def __init__(
        self,
        binder: Binder,
        relation: Relation,
        source: FromItems,
        sql: Lines | None = None,
        new_cursor: NewCursor | None = None,
        *,
        origin: int | None = None,
    ) -> None:
        self._binder = binder
        self._relation = relation
        self._new_cursor = new_cursor
        self._origin = next(_ORIGINS) if origin is None else origin
        # a finished SELECT is a table in the FROM of the next one; otherwise it is SELECT * FROM source
        self._source = source
        self._sql = sql if sql is not None else select_lines(["*"], source)

    # columns

    def __getitem__(self, name: str) -> ColumnExpression:
        """Return a column; it knows its table, also in a join. Raises SQL-1042 for an unknown one."""
        if not any(name.lower() == known.lower() for known in self.columns):
            hint = did_you_mean(name, self.columns, others=True)
            raise PenstockError("SQL-1042", f'column "{name}" does not exist', hint=hint, sqlstate="42703")
        node = Reference(expressions=[exp.Identifier(this=name, quoted=True)])
        node.meta[ORIGIN] = self._origin
        return ColumnExpression(node)

    def __getattr__(self, name: str) -> ColumnExpression:
        # only for names that are no attribute; those of Python's protocols are never columns
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except PenstockError as error:
            raise AttributeError(f"a Table has no method or column {name!r}: {error.hint or ''}") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in self.columns if name.isidentifier())})

    def __repr__(self) -> str:
        return f"Table({', '.join(f'{field.name} {field.type}' for field in self._relation.fields)})"

    # rows and columns

    def filter(self, *conditions: Item) -> Table:
        """Return the rows for which all conditions are TRUE."""
        pieces = Pieces(conditions)
        with pieces:
            bound = pieces.expressions(self._source.qualify)
            # a subquery is bound with its query
            if len(self._source.tables) == 1 and not any(piece.tree.find(exp.Query) for piece in bound):
                # bound alone, so that errors speak of filter and not of WHERE
                scope = Scope.of(self._source.first.relation, self._source.first.name)
                binder = ExpressionBinder(scope, self._context(self._source), "filter")
                for piece in bound:
                    binder.condition(piece.tree)
            source = replace(self._source, where=(*self._source.where, *bound))
            return self._all_of(source)

    where = filter

    def select(self, *items: Item, **named: Item) -> Table:
        """Return one column per item: a column name, SQL text such as ``"a + 1 AS b"``, or a column
        expression; keywords name theirs.
        """
        if not items and not named:
            raise PenstockError(
                "SQL-1015", "select takes at least one column", hint=f"there is {', '.join(self.columns)}"
            )
        return self._selected(items, named)

    def with_columns(self, *items: Item, **named: Item) -> Table:
        """Return all columns followed by the items. A keyword that is a column's name replaces the column."""
        new = {name.lower() for name in named}
        replaced = [name for name in self.columns if name.lower() in new]
        # SELECT * EXCEPT (a), a + 1 AS a
        star: Item = "*" if not replaced else all_but(replaced)
        return self._selected((star, *items), named)

    def drop(self, *names: str) -> Table:
        """Return all columns except those named."""
        # SELECT * EXCEPT (names)
        return self._selected([all_but(names)], {})

    def rename(self, **names: str) -> Table:
        """Return the columns in their order, some with new names: ``rename(new="old")``."""
        old = {name.lower(): new for new, name in names.items()}
        for name in names.values():
            # refuses an unknown column, with what it may have been
            self[name]
        return self._selected([self[name].alias(old.get(name.lower(), name)) for name in self.columns], {})

    def distinct(self) -> Table:
        """Return the distinct rows."""
        tree = exp.Select(expressions=[AllColumns()], distinct=exp.Distinct())
        return self._bound(tree, select_lines(["*"], self._source, distinct=True))

    # groups and windows

    def group_by(self, *keys: Item, **named: Item) -> GroupedTable:
        """Return the grouped rows; call ``agg`` or ``select`` on them."""
        return GroupedTable(self, keys, named)

    def aggregate(self, *items: Item, **named: Item) -> Table:
        """Return one row of aggregates over all rows."""
        return self._selected(items, named, [])

    agg = aggregate

    def window(self, window: Window) -> WindowedTable:
        """Return each row once per window that contains it. ``group_by`` then groups by the window too."""
        return WindowedTable(self, window)

    def partition_by(self, *keys: str) -> PartitionedTable[Table]:
        """Return the table in partitions, for a process table function: ``.process("f", ..)``."""
        return PartitionedTable(_plain(self), keys, self._binder.context, self._numbered)

    def top(self, n: int, order_by: Items, *, partition_by: Items = (), rank: str | None = None) -> Table:
        """Return the first ``n`` rows of each partition in an order (Top-N), kept up to date over a stream.
        ``rank`` names a column for the row's number.
        """
        name = rank or free_name("row_num", self.columns)
        number = row_number().over(partition_by=listed(partition_by), order_by=listed(order_by))
        numbered = self._unordered().with_columns(number.alias(name))._closed_table()
        best = numbered.filter(col(name) <= n)
        return best if rank is not None else best.drop(name)

    def deduplicate(self, keys: Items, *, order_by: Items) -> Table:
        """Return the first row of each key in an order: by a time attribute the first one, or with
        ``"ts DESC"`` the last one.
        """
        return self.top(1, order_by, partition_by=keys)

    def match_recognize(
        self,
        *,
        order_by: Items,
        pattern: str,
        define: Mapping[str, Item],
        measures: Mapping[str, Item] | None = None,
        partition_by: Items = (),
        after: str = "PAST LAST ROW",
        within: Length | None = None,
        subset: Mapping[str, Sequence[str]] | None = None,
        all_rows: bool = False,
    ) -> Table:
        """Return the matches of a row pattern (MATCH_RECOGNIZE). ``define`` maps variables to conditions,
        ``measures`` maps columns to expressions; both name a variable's column as ``"A.price"``.
        """
        allow_depth()
        source = matched(
            self._as_from(),
            self._binder.context(),
            next(_ORIGINS),
            partition_by=listed(partition_by),
            order_by=listed(order_by),
            measures=measures or {},
            pattern=pattern,
            define=define,
            after=after,
            within=within,
            subset=subset or {},
            all_rows=all_rows,
        )
        return self._of(source)

    # several tables

    def alias(self, name: str) -> Table:
        """Return the table under another name, for conditions and for a join with itself."""
        source = replace(self._as_from(), name=name, ancestors=frozenset())
        origin = next(_ORIGINS)
        items = FromItems(replace(source, origin=origin))
        return Table(self._binder, source.relation, items, None, self._new_cursor, origin=origin)

    def join(
        self,
        other: Table,
        on: Items | None = None,
        how: str = "inner",
        *,
        as_of: Item | None = None,
    ) -> Table:
        """Return the join with another table.

        ``on`` is a column that both have, a list of such columns, or a condition over both. A condition
        names columns as ``a["x"]`` and ``b["y"]``, or in SQL text by table name. Tables without a name,
        or of one name, are ``left`` and ``right``. ``how`` is inner, left, right, full, semi, anti or cross.
        ``as_of``: join the version of that time (FOR SYSTEM_TIME AS OF). Raises SQL-1601 for another kind.
        """
        kind = _JOINS.get(how.lower())
        if kind is None:
            message = f"a join is inner, left, right, full, semi, anti or cross, not {how}"
            hint = did_you_mean(how.lower(), _JOINS)
            raise PenstockError("SQL-1601", message, hint=hint, sqlstate="42601")
        conditions = listed(on)
        if bool(conditions) is (kind == "CROSS"):
            message = "a cross join takes no condition" if conditions else f"a join of kind {how} needs on="
            hint = "leave on= out" if conditions else 'pass on="id", a condition, or how="cross"'
            raise PenstockError("SQL-1001", message, hint=hint, sqlstate="42601")
        left, right = self._sides(other)
        # a time is a column of the left side: left is qualified before the right side is there
        pieces, times = Pieces(conditions), Pieces(listed(as_of))
        using = self._shared(conditions, other)
        clause = JoinClause(right, kind, using=using)
        items = replace(left, joins=(*left.joins, clause))
        with pieces, times:
            bound = [] if using else pieces.expressions(items.qualify)
            time = times.expressions(left.qualify)
            clause = replace(clause, on=conjunction(bound), as_of=time[0] if time else None)
            return self._all_of(replace(left, joins=(*left.joins, clause)))

    def cross_join(self, other: Table) -> Table:
        """Return each row with each row of another table."""
        return self.join(other, how="cross")

    def union(self, other: Table, *, distinct: bool = False) -> Table:
        """Return the rows of both tables (UNION ALL); columns are matched by position."""
        return self._combined(other, exp.Union, "UNION", distinct)

    def intersect(self, other: Table) -> Table:
        """Return the distinct rows that both tables have."""
        return self._combined(other, exp.Intersect, "INTERSECT", True)

    def difference(self, other: Table) -> Table:
        """Return the distinct rows that the other table does not have (EXCEPT)."""
        return self._combined(other, exp.Except, "EXCEPT", True)

    # order

    def order_by(self, *keys: Item, limit: int | None = None, offset: int = 0) -> Table:
        """Return the rows in order, or the first ``limit`` of them after ``offset``. Keys are SQL text such
        as ``"a DESC"`` or column expressions. An endless stream is ordered by time, or with ``limit``.
        """
        if limit is not None or offset:
            return self._first(keys, limit, offset)
        return OrderedTable(self, lambda limit, offset: self._first(keys, limit, offset), keys)

    def limit(self, count: int, offset: int = 0) -> Table:
        """Return the first ``count`` rows after the first ``offset``: in the order of ``order_by`` just
        before, else in arrival order.
        """
        return self._first((), count, offset)

    # names

    def create_view(self, name: str, *, temporary: bool = False, replace: bool = False) -> Table:
        """Create a view of the query and return it as a table. ``replace``: also where the name is a view
        already.
        """
        words = f"CREATE {'OR REPLACE ' if replace else ''}{'TEMPORARY ' if temporary else ''}VIEW"
        self._cursor().execute(f"{words} {path_text(name)} AS\n{self.to_sql()}")
        return open_table(name, self._binder, self._new_cursor)

    # internals

    def _context(self, source: FromItems) -> BindContext:
        allow_depth()
        return source.context(self._binder.context())

    def _of(self, source: FromTable) -> Table:
        items = FromItems(source)
        return Table(self._binder, source.relation, items, None, self._new_cursor, origin=source.origin)

    def _numbered(self, source: FromTable) -> Table:
        return self._of(replace(source, origin=next(_ORIGINS)))

    def _all_of(self, source: FromItems) -> Table:
        """Return SELECT * of a FROM that more can be added to."""
        tree = source.fill(exp.Select(expressions=[AllColumns()]))
        relation = bind_query(tree, self._context(source), nested=False)
        # spans are those of this call's text: a later error must not quote its own text by them
        for piece in (*source.where, *(join.on for join in source.joins if join.on is not None)):
            moved(piece.tree, None)
        return Table(self._binder, relation, source, None, self._new_cursor)

    def _as_from(self) -> FromTable:
        """Return this table as one table of a FROM: itself, or its query in parentheses."""
        source = self._source
        if not source.joins and not source.where:
            return source.first
        # the name of the one table goes on; the parts of a join are not visible outside
        name = None if source.joins else source.first.name
        return derived(name, self._relation, self._sql, self._origin, source)

    def _unordered(self) -> Table:
        return self

    def _closed_table(self) -> Table:
        return self._of(self._as_from())

    def _finished(self, relation: Relation, sql: Lines, source: FromItems) -> Table:
        """Return a finished SELECT, as a table that the next one reads."""
        origin = next(_ORIGINS)
        name = None if source.joins else source.first.name
        table = derived(name, relation, sql, origin, source)
        return Table(self._binder, relation, FromItems(table), sql, self._new_cursor, origin=origin)

    def _bound(self, tree: exp.Select, sql: Lines, text: str = "", nested: bool = False) -> Table:
        context = replace(self._context(self._source), text=text)
        relation = bind_query(self._source.fill(tree), context, nested=nested)
        return self._finished(relation, sql, self._source)

    def _selected(
        self,
        items: Sequence[Item],
        named: Mapping[str, Item],
        keys: Sequence[SqlPiece] | None = None,
        tail: Tail = NO_TAIL,
    ) -> Table:
        """Return SELECT items, with GROUP BY where ``keys`` are not None."""
        pieces, sorting = Pieces(items, named), Pieces(tail.order)
        with pieces, sorting:
            parts = pieces.items(self._source.qualify)
            tree = exp.Select(expressions=[piece.tree for piece in parts])
            context = replace(self._binder.context(), text=pieces.text)
            texts = [item_text(piece, context) for piece in parts]
            clauses = []
            if keys:
                tree.set("group", exp.Group(expressions=[key.tree.copy() for key in keys]))
                clauses.append(f"GROUP BY {', '.join(key.sql for key in keys)}")
            clauses += tail.fill(tree, sorting.sort_items(self._source.qualify))
            return self._bound(tree, select_lines(texts, self._source, clauses=clauses), pieces.text)

    def _first(self, keys: Sequence[Item], limit: int | None, offset: int) -> Table:
        sorting, tree = Pieces(keys), exp.Select(expressions=[AllColumns()])
        with sorting:
            tail = Tail(tuple(keys), limit, offset)
            clauses = tail.fill(tree, sorting.sort_items(self._source.qualify))
            return self._bound(tree, select_lines(["*"], self._source, clauses=clauses))

    def _sides(self, other: Table) -> tuple[FromItems, FromTable]:
        """Return the left FROM and the right table of a join, each table under a name of its own."""
        right = other._as_from()
        left = self._source
        # a condition before this join names columns without table: the right side must not be among them
        if left.where or (left.joins and not (right.name and right.name.lower() not in left.names)):
            left = FromItems(self._as_from())
        # Tables of the catalog are named in ``on`` by their own names, unless both are the same table.
        names = (left.first.name, right.name)
        if not left.joins and (not all(names) or str(names[0]).lower() == str(names[1]).lower()):
            return left.renamed(LEFT), replace(right, name=RIGHT)
        return left, right

    def _shared(self, conditions: Sequence[Item], other: Table) -> tuple[str, ...]:
        """Return the columns of USING: where each argument is a bare name that both tables have."""
        names = [item for item in conditions if isinstance(item, str)]
        both = {name.lower() for name in self.columns} & {name.lower() for name in other.columns}
        if len(names) != len(conditions) or not all(name.lower() in both for name in names):
            return ()
        return tuple(names)

    def _combined(self, other: Table, kind: type[exp.SetOperation], word: str, distinct: bool) -> Table:
        # SELECT * FROM left UNION ALL SELECT * FROM right
        sides = (replace(self._as_from(), name=LEFT), replace(other._as_from(), name=RIGHT))
        queries = [exp.Select(expressions=[AllColumns()]) for _ in sides]
        context = self._binder.context()
        for position, (query, side) in enumerate(zip(queries, sides, strict=True)):
            query.set("from_", exp.From(this=side.tree(position)))
            if side.path is None:
                context = context.with_table(f"\0{position}", side.relation)
        allow_depth()
        relation = bind_query(kind(this=queries[0], expression=queries[1], distinct=distinct), context)
        sql = (*self._query_lines(), word if distinct else f"{word} ALL", *other._query_lines())
        table = derived(None, relation, sql, next(_ORIGINS), FromItems(sides[0], (JoinClause(sides[1], ""),)))
        return Table(self._binder, relation, FromItems(table), sql, self._new_cursor, origin=table.origin)

    def _query_lines(self) -> Lines:
        # in parentheses where it may have clauses that would belong to the whole
        return self._sql if self._source.first.path else select_lines(["*"], FromItems(self._as_from()))


class OrderedTable(Table):
    """A table with an ORDER BY. ``limit``, ``filter`` and one ``select`` keep the order. Other methods are of
    the rows alone, as SQL orders a result and not a table.
    """

    def __init__(self, base: Table, first: Callable[[int | None, int], Table], keys: Sequence[Item]) -> None:
        # base: the rows without the order; first: the ordered query with LIMIT and OFFSET
        self._base, self._first_of, self._keys = base, first, tuple(keys)
        ordered = first(None, 0)
        super().__init__(
            base._binder,
            ordered._relation,
            base._source,
            ordered._sql,
            base._new_cursor,
            origin=base._origin,
        )

    def filter(self, *conditions: Item) -> Table:
        """Return the rows for which all conditions are TRUE, in the same order."""
        return self._check_keys()._base.filter(*conditions).order_by(*self._keys)

    where = filter

    def limit(self, count: int, offset: int = 0) -> Table:
        """Return the first ``count`` rows of the order after the first ``offset``."""
        return self._first_of(count, offset)

    def _as_from(self) -> FromTable:
        return self._base._as_from()

    def _query_lines(self) -> Lines:
        return self._base._query_lines()

    def _unordered(self) -> Table:
        return self._base

    def _selected(
        self,
        items: Sequence[Item],
        named: Mapping[str, Item],
        keys: Sequence[SqlPiece] | None = None,
        tail: Tail = NO_TAIL,
    ) -> Table:
        base = self._base
        # groups have another order; columns of the rows keep this one
        if keys is not None:
            return base._selected(items, named, keys, tail)
        order = self._check_keys()._keys
        return OrderedTable(
            base._selected(items, named),
            lambda limit, offset: base._selected(items, named, None, Tail(order, limit, offset)),
            (),
        )

    def _check_keys(self) -> OrderedTable:
        if not self._keys:
            message = "the columns of an order are gone after the first select"
            hint = "call order_by last, or select all columns at once"
            raise PenstockError("SQL-1064", message, hint=hint, sqlstate="42601")
        return self


class GroupedTable:
    """A table with GROUP BY keys, before its select list."""

    def __init__(self, table: Table, keys: Sequence[Item], named: Mapping[str, Item]) -> None:
        self._table = table
        pieces = Pieces(keys, named)
        with pieces:
            self._keys = [piece.without_alias() for piece in pieces.items(table._source.qualify)]
        self._items, self._named = tuple(keys), dict(named)

    def select(self, *items: Item, **named: Item) -> Table:
        """Return one row per group: keys and aggregates."""
        # SELECT items .. GROUP BY keys
        return self._table._selected(items, named, self._keys)

    def aggregate(self, *items: Item, **named: Item) -> Table:
        """Return the keys, then the items, one row per group: ``agg(n=count())``."""
        return self._table._selected((*self._items, *items), {**self._named, **named}, self._keys)

    agg = aggregate


class WindowedTable(Table):
    """A table under a windowing function."""

    def __init__(self, table: Table, window: Window) -> None:
        allow_depth()
        source = windowed(_plain(table), window, window.partition_by, table._binder.context(), next(_ORIGINS))
        super().__init__(
            table._binder,
            source.relation,
            FromItems(source),
            None,
            table._new_cursor,
            origin=source.origin,
        )
        self._base = table
        self._window = window

    def group_by(self, *keys: Item, **named: Item) -> GroupedTable:
        """Return the rows grouped by window and keys. ``window_start`` and ``window_end`` are added unless
        named.
        """
        # groups of a windowed table are per window: its bounds are keys
        names = [name.lower() for key in (*keys, *named.values()) if (name := column_name(key))]
        bounds = [bound for bound in ("window_start", "window_end") if bound not in names]
        table: Table = self
        # Sessions without ``partition_by`` are per value of the group keys: window the base table again.
        if WINDOW_FUNCTIONS[self._window.function].merging and not self._window.partition_by:
            columns = [name for name in names if name not in ("window_start", "window_end", "window_time")]
            source = windowed(_plain(self._base), self._window, columns, self._binder.context(), self._origin)
            table = self._of(source)
        return GroupedTable(table, (*bounds, *keys), named)


def open_table(name: str, binder: Binder, new_cursor: NewCursor | None = None) -> Table:
    """Return a table or view of the catalog. ``new_cursor`` returns the cursor that runs a finished plan."""
    allow_depth()
    tree = exp.Select(expressions=[AllColumns()])
    tree.set("from_", exp.From(this=exp.Table(this=exp.Identifier(this=name, quoted=True))))
    try:
        relation = bind_query(tree, binder.context(), nested=True)
    except PenstockError as error:
        error.span = None
        raise
    origin = next(_ORIGINS)
    source = FromTable(name.rpartition(".")[2], relation, (path_text(name),), name, origin)
    return Table(binder, relation, FromItems(source), None, new_cursor, origin=origin)


def _plain(table: Table) -> FromTable:
    """Return a table as a windowing function takes it: a name, or a query in parentheses."""
    source = table._as_from()
    if source.path is not None or source.sql[0] == "(":
        return source
    return derived(source.name, source.relation, table._sql, table._origin, FromItems(source))
