"""The Table API: a fluent interface to the same plans. Each method binds at once, so an error is raised at
the call that causes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from sqlglot import exp

from penstock.catalog.errors import PenstockError, SourceText
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.catalog.settings import parse_duration_ms
from penstock.planner.binder.binder import Binder
from penstock.planner.binder.ddl.insert import sink_for
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.query import bind_query
from penstock.planner.binder.relations.tables import bind_source
from penstock.planner.binder.scope import Relation, Scope
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.windows import WINDOW_FUNCTIONS
from penstock.planner.parser.query_parser import parse_expression, parse_item, parse_sort_item
from penstock.planner.parser.scanner import allow_depth
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    Descriptor,
    HostValue,
    IntervalLiteral,
    NamedArgument,
    Reference,
    TableArgument,
    WindowTableFunction,
)
from penstock.planner.statements.nodes import Insert, Name, Query
from penstock.planner.table_api.expressions import ColumnExpression, call, col, count, lit

__all__ = [
    "ColumnExpression",
    "GroupedTable",
    "Table",
    "Window",
    "WindowedTable",
    "call",
    "col",
    "count",
    "cumulate",
    "hop",
    "lit",
    "open_table",
    "session",
    "tumble",
]

Item = str | ColumnExpression
Length = str | timedelta
Runner = Callable[[LogicalPlan], Any]
# names of tables that have none of the catalog: a join is on left.a = right.a
_LEFT, _RIGHT = "left", "right"


@dataclass(frozen=True)
class Window:
    """A windowing function without its table; made by ``tumble``, ``hop``, ``cumulate`` and ``session``."""

    function: str
    time: str
    lengths: tuple[tuple[str, Length], ...]
    partition_by: tuple[str, ...] = ()


def tumble(time: str, size: Length, *, offset: Length | None = None) -> Window:
    """Return tumbling windows: one size, one after the other. ``size`` is a timedelta or text such as ``"10
    minutes"``.
    """
    return Window("TUMBLE", time, _lengths(SIZE=size, OFFSET=offset))


def hop(time: str, slide: Length, size: Length, *, offset: Length | None = None) -> Window:
    """Return hopping windows: one size, a new one every ``slide``."""
    return Window("HOP", time, _lengths(SLIDE=slide, SIZE=size, OFFSET=offset))


def cumulate(time: str, step: Length, size: Length, *, offset: Length | None = None) -> Window:
    """Return cumulative windows: they grow by ``step`` up to ``size`` and then start again."""
    return Window("CUMULATE", time, _lengths(STEP=step, SIZE=size, OFFSET=offset))


def session(time: str, gap: Length, *, partition_by: Sequence[str] = ()) -> Window:
    """Return session windows: they end after ``gap`` without rows, per value of ``partition_by``. It defaults
    to the columns of ``group_by``.
    """
    return Window("SESSION", time, _lengths(GAP=gap), tuple(partition_by))


def _lengths(**lengths: Length | None) -> tuple[tuple[str, Length], ...]:
    return tuple((name, length) for name, length in lengths.items() if length is not None)


class Table:
    """A bound relational expression, immutable: every method returns a new one."""

    def __init__(
        self, binder: Binder, relation: Relation, name: str | None = None, run: Runner | None = None
    ) -> None:
        self._binder = binder
        self._relation = relation
        self._name = name
        self._run = run

    @property
    def schema(self) -> Schema:
        """The columns."""
        return Schema(self._relation.fields)

    @property
    def columns(self) -> list[str]:
        """The column names."""
        return list(self._relation.names)

    def to_plan(self) -> LogicalPlan:
        """Return the logical plan."""
        return self._relation.plan

    def __repr__(self) -> str:
        return f"Table({', '.join(f'{field.name} {field.type}' for field in self._relation.fields)})"

    # rows and columns

    def filter(self, condition: Item) -> Table:
        """Return the rows for which a condition is TRUE."""
        pieces = _Pieces([condition])
        with pieces:
            binder = ExpressionBinder(self._scope(), self._binder.context(), "filter")
            # one condition needs no SELECT around it: it is bound over this table's columns
            predicate: Expression = binder.condition(pieces.expressions()[0])
        return self._next(Relation(Filter(self.to_plan(), predicate), self._relation.fields))

    where = filter

    def select(self, *items: Item) -> Table:
        """Return one column per item: a column name, SQL text such as ``"a + 1 AS b"``, or a column
        expression.
        """
        if not items:
            raise PenstockError(
                "SQL-1015", "select takes at least one column", hint=f"there is {', '.join(self.columns)}"
            )
        return self._selected(items, None)

    def with_columns(self, *items: Item) -> Table:
        """Return all columns followed by the items."""
        return self._selected(("*", *items), None)

    def drop(self, *names: str) -> Table:
        """Return all columns except those named."""
        # SELECT * EXCEPT (names)
        star = AllColumns(except_=[exp.Identifier(this=name, quoted=True) for name in names])
        return self._selected([ColumnExpression(star)], None)

    def distinct(self) -> Table:
        """Return the distinct rows."""
        return self._query(exp.Select(expressions=[AllColumns()], distinct=exp.Distinct()), _Pieces([]))

    # groups and windows

    def group_by(self, *keys: Item) -> GroupedTable:
        """Return the grouped rows; call ``select`` or ``aggregate`` on them."""
        return GroupedTable(self, keys)

    def aggregate(self, *items: Item) -> Table:
        """Return one row of aggregates over all rows."""
        return self._selected(items, [])

    def window(self, window: Window) -> WindowedTable:
        """Return each row once per window that contains it. ``group_by`` then groups by the window too."""
        return WindowedTable(self, window)

    # several tables

    def join(self, other: Table, on: Item, how: str = "inner") -> Table:
        """Return the join with another table. ``on`` names columns as ``left.a`` and ``right.a``, or by table
        name where the names differ. ``how`` is inner, left, right or full; SQL-1601 otherwise.
        """
        # as sqlglot's Join has them
        kinds = {"inner": "INNER", "left": "LEFT", "right": "RIGHT", "full": "FULL"}
        if how.lower() not in kinds:
            raise PenstockError(
                "SQL-1601", f"a join is inner, left, right or full, not {how}", sqlstate="42601"
            )
        # Tables of the catalog are named in ``on`` by their own names, unless both are the same table.
        names = (self._name or _LEFT, other._name or _RIGHT)
        if names[0].lower() == names[1].lower() or not (self._name and other._name):
            names = (_LEFT, _RIGHT)
        pieces = _Pieces([on])
        with pieces:
            condition = pieces.expressions()[0]
            # SELECT * FROM left JOIN right ON condition, where both are common table expressions
            joined = exp.Join(this=_named(names[1]), kind=kinds[how.lower()], on=condition)
            tree = exp.Select(
                expressions=[AllColumns()], from_=exp.From(this=_named(names[0])), joins=[joined]
            )
            context = (
                self._binder.context()
                .with_table(names[0], self._relation)
                .with_table(names[1], other._relation)
            )
            return self._next(bind_query(tree, context))

    def union(self, other: Table) -> Table:
        """Return the rows of both tables (UNION ALL); columns are matched by position."""
        # SELECT * FROM left UNION ALL SELECT * FROM right
        tree = exp.Union(this=_all_of(_LEFT), expression=_all_of(_RIGHT), distinct=False)
        context = self._binder.context().with_table(_LEFT, self._relation).with_table(_RIGHT, other._relation)
        return self._next(bind_query(tree, context))

    # order

    def order_by(self, *keys: Item, limit: int | None = None, offset: int = 0) -> Table:
        """Return the rows in order, or the first ``limit`` of them after ``offset``. Keys are SQL text such
        as ``"a DESC"`` or column expressions.
        """
        pieces = _Pieces(keys)
        with pieces:
            tree = exp.Select(expressions=[AllColumns()], order=exp.Order(expressions=pieces.sort_items()))
        return self._query(_limited(tree, limit, offset), pieces)

    def limit(self, count: int, offset: int = 0) -> Table:
        """Return the first ``count`` rows in arrival order, after the first ``offset``."""
        return self._query(_limited(exp.Select(expressions=[AllColumns()]), count, offset), _Pieces([]))

    # execution

    def execute(self) -> Any:
        """Run the query and return its result; only for tables of a connection."""
        return self._runner()(Sink(self.to_plan(), None))

    def insert_into(self, name: str) -> Any:
        """Insert the rows into a table, columns matched by position; only for tables of a connection."""
        return self._runner()(self.to_sink(name))

    def to_sink(self, name: str) -> Sink:
        """Return the plan that writes the rows into a table."""
        statement = Insert(Name(name), Query("", exp.Select()))
        try:
            return sink_for(statement, self._binder.catalog.table(name), self._relation)
        except PenstockError as error:
            # no statement was written whose position a span could be
            error.span = None
            raise

    def _runner(self) -> Runner:
        if self._run is None:
            raise PenstockError(
                "CLI-6030", "this table belongs to no connection", hint="open it with connection.table(name)"
            )
        return self._run

    # internals

    def _next(self, relation: Relation) -> Table:
        return Table(self._binder, relation, self._name, self._run)

    def _scope(self) -> Scope:
        return Scope.of(self._relation, self._name)

    def _selected(self, items: Sequence[Item], keys: Sequence[Item] | None) -> Table:
        pieces = _Pieces([*items, *(keys or ())])
        with pieces:
            trees = pieces.items()
            tree = exp.Select(expressions=trees[: len(items)])
            # Keys are parsed with the items, so that errors quote all arguments as one text.
            if keys:
                tree.set("group", exp.Group(expressions=[_unaliased(key) for key in trees[len(items) :]]))
        return self._query(tree, pieces)

    def _query(self, tree: exp.Select, pieces: _Pieces) -> Table:
        name = self._name or _LEFT
        with pieces:
            # This table is the FROM of the query, as a common table expression of its name.
            tree.set("from_", exp.From(this=_named(name)))
            return self._next(
                bind_query(tree, self._binder.context().with_table(name, self._relation), nested=False)
            )


class GroupedTable:
    """A table with GROUP BY keys, before its select list."""

    def __init__(self, table: Table, keys: Sequence[Item]) -> None:
        self._table = table
        self._keys = tuple(keys)

    def select(self, *items: Item) -> Table:
        """Return one row per group: keys and aggregates."""
        # SELECT items .. GROUP BY keys
        return self._table._selected(items, self._keys)

    def aggregate(self, *items: Item) -> Table:
        """Return the keys, then the items, one row per group."""
        return self._table._selected((*self._keys, *items), self._keys)


class WindowedTable(Table):
    """A table under a windowing function."""

    def __init__(self, table: Table, window: Window) -> None:
        super().__init__(
            table._binder, _windowed(table, window, window.partition_by), table._name, table._run
        )
        self._base = table
        self._window = window

    def group_by(self, *keys: Item) -> GroupedTable:
        """Return the rows grouped by window and keys. ``window_start`` and ``window_end`` are added unless
        named.
        """
        # groups of a windowed table are per window: its bounds are keys
        named = [key.lower() for key in keys if isinstance(key, str)]
        bounds = [bound for bound in ("window_start", "window_end") if bound not in named]
        table: Table = self
        # Sessions without ``partition_by`` are per value of the group keys: window the base table again.
        if WINDOW_FUNCTIONS[self._window.function].merging and not self._window.partition_by:
            columns = [
                name
                for key in keys
                if (name := _column_name(key))
                and name.lower() not in ("window_start", "window_end", "window_time")
            ]
            table = self._next(_windowed(self._base, self._window, columns))
        return GroupedTable(table, (*bounds, *keys))


def open_table(name: str, binder: Binder, run: Runner | None = None) -> Table:
    """Return a table or view of the catalog. ``run`` executes a finished plan (a Sink) and returns its
    result.
    """
    allow_depth()
    try:
        relation = bind_query(_all_of(name), binder.context(), nested=True)
    except PenstockError as error:
        error.span = None
        raise
    return Table(binder, relation, name, run)


class _Pieces:
    """The arguments of one method: SQL texts and column expressions. As a context manager it adds their text
    to errors.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = list(items)
        self._text = ", ".join(item if isinstance(item, str) else "<expression>" for item in items)
        starts, at = [], 0
        for item in items:
            starts.append(at)
            # The arguments are joined by ", ", so spans in each refer to one common text.
            at += len(item if isinstance(item, str) else "<expression>") + 2
        self._starts = starts

    def __enter__(self) -> _Pieces:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, PenstockError) and self._text:
            # the error quotes the arguments, with its caret below the one at fault
            error.with_source(SourceText(self._text))

    def _parsed(self, parse: Callable[[str, int, int | None], exp.Expr]) -> list[exp.Expr]:
        trees = []
        for item, start in zip(self._items, self._starts, strict=True):
            # A copy, because one expression may be used in several trees.
            if isinstance(item, ColumnExpression):
                trees.append(item.tree.copy())
            elif isinstance(item, str):
                trees.append(parse(self._text, start, start + len(item)))
            else:
                message = f"a column is a name, SQL text or a column expression, not {type(item).__name__}"
                hint = (
                    "call it: col('n').sum(), col('n').desc()"
                    if callable(item)
                    else "wrap a constant in lit(..)"
                )
                raise PenstockError("SQL-1014", message, hint=hint)
        return trees

    def items(self) -> list[exp.Expr]:
        """Return the trees of select items."""
        return self._parsed(parse_item)

    def expressions(self) -> list[exp.Expr]:
        """Return the trees of plain expressions."""
        return self._parsed(parse_expression)

    def sort_items(self) -> list[exp.Expr]:
        """Return the trees of ORDER BY items."""
        # a bare column is ascending, NULLs first, as in SQL
        ordered = (exp.Ordered,)
        return [
            t if isinstance(t, ordered) else exp.Ordered(this=t, desc=False, nulls_first=True)
            for t in self._parsed(parse_sort_item)
        ]


def _named(name: str) -> exp.Table:
    return exp.Table(this=exp.Identifier(this=name, quoted=True))


def _all_of(name: str) -> exp.Select:
    return exp.Select(expressions=[AllColumns()], from_=exp.From(this=_named(name)))


def _unaliased(tree: exp.Expr) -> exp.Expr:
    return tree.this if isinstance(tree, exp.Alias) else tree


def _limited(tree: exp.Select, limit: int | None, offset: int) -> exp.Select:
    # A HostValue is a Python value in a tree, checked by the binder as a literal is.
    for key, value in (("limit", limit), ("offset", offset or None)):
        # OFFSET 0 is no clause
        if value is not None:
            node = HostValue()
            node.meta["value"] = value
            tree.set(key, node)
    return tree


def _column_name(item: Item) -> str | None:
    # only a plain column can be a key of PARTITION BY
    tree = item.tree if isinstance(item, ColumnExpression) else parse_item(item)
    return tree.expressions[-1].name if isinstance(tree, Reference) else None


def _windowed(table: Table, window: Window, partition_by: Sequence[str]) -> Relation:
    name = table._name or _LEFT
    partition = [exp.Identifier(this=column, quoted=True) for column in partition_by]
    # TUMBLE(TABLE t PARTITION BY a, DESCRIPTOR(time), SIZE => ..)
    arguments: list[exp.Expr] = [TableArgument(this=_named(name), partition=partition)]
    arguments.append(Descriptor(expressions=[exp.Identifier(this=window.time, quoted=True)]))
    arguments += [
        NamedArgument(this=argument, expression=_length(length)) for argument, length in window.lengths
    ]
    function = WindowTableFunction(this=window.function, expressions=arguments)
    return bind_source(function, table._binder.context().with_table(name, table._relation)).relation


def _length(length: Length) -> exp.Expr:
    # "10 minutes" is a duration as in settings; another text is that of an INTERVAL: "1 day 2 hours"
    milliseconds = parse_duration_ms(length) if isinstance(length, str) else None
    if isinstance(length, str) and milliseconds is None:
        return IntervalLiteral(this=length)
    node = HostValue()
    node.meta["value"] = length if milliseconds is None else timedelta(milliseconds=milliseconds)
    return node
