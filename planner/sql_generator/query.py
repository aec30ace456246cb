"""A bounded plan as one SQL text: one select per node. Columns are addressed by position (c0, c1, ..), so
repeated names are harmless.
"""

from __future__ import annotations

from functools import cached_property

from sqlglot import exp

from penstock.catalog.coercion import is_orderable
from penstock.catalog.connectors.registry import takes_filter
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.python_functions import PythonAggregate, PythonScalar
from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT
from penstock.planner.expressions.nodes import Expression, Literal
from penstock.planner.logical.aggregate import Aggregate, CountWindowAggregate, Phase, WindowAggregate
from penstock.planner.logical.emit import Emit
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.joins.join import BinaryJoin, JoinKind
from penstock.planner.logical.joins.nearest_join import NearestJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.recursive_query import RecursiveQuery, TermInput, WorkTable, with_iteration
from penstock.planner.logical.scan import BoundedInput, HistoryScan, Scan, Values
from penstock.planner.logical.set_operations import Repeat, Union
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Limit, Sort, TemporalSort, TopN
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.logical.unnest import Unnest
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import AttachedWindow
from penstock.planner.sql_generator import temporal_join as temporal
from penstock.planner.sql_generator import windows
from penstock.planner.sql_generator.dialect import Flavour
from penstock.planner.sql_generator.expressions import Columns, aggregate_sql, expression_sql, sort_key_sql
from penstock.planner.sql_generator.nearest_join import nearest_select
from penstock.planner.sql_generator.nested_selects import nest_ctes
from penstock.planner.sql_generator.over import over_select, top_select, with_ties
from penstock.planner.sql_generator.unnest import unnest_select
from penstock.planner.sql_generator.windows import ROWS, aliased, column, named


@dataclass(frozen=True)
class ScannedTable:
    """The columns of a table that a query reads, by position in its ``source_schema``.

    ``predicate``, over those columns, is a filter that a reader may apply; the query applies it too.
    ``splits`` are those to read, None for all.
    """

    table: CatalogTable
    columns: tuple[int, ...]
    predicate: Expression | None = None
    splits: tuple[str, ...] | None = None

    @property
    def schema(self) -> Schema:
        """The relation's columns."""
        return self.table.source_schema.select(self.columns)


@dataclass(frozen=True)
class BoundedQuery:
    """SQL over relations ``t_0, t_1, ..`` that the backend registers, with columns under their own names.

    The result has columns c0, c1, .. for ``schema``, in wire types. A result without columns has one constant
    column.
    """

    ctes: tuple[tuple[str, exp.Expr], ...]
    select: exp.Expr
    recursive: bool
    flavour: Flavour
    relations: tuple[ScannedTable, ...]
    schema: Schema

    # written when it is needed: most plans are only asked whether a backend has words for them
    @cached_property
    def text(self) -> str:
        """The whole query."""
        dialect, ctes, select = self.flavour.dialect, list(self.ctes), self.select
        if self.flavour.nests_selects:
            ctes, select = nest_ctes(ctes, select)
        if not ctes:
            return select.sql(dialect)
        listed = ",\n".join(f"{name} AS ({body.sql(dialect)})" for name, body in ctes)
        return f"WITH {'RECURSIVE ' if self.recursive else ''}{listed}\n{select.sql(dialect)}"

    @property
    def python_functions(self) -> tuple[PythonScalar | PythonAggregate, ...]:
        """The functions that the backend registers before the query."""
        return tuple(self.flavour.python_functions.values())


def bounded_query(plan: LogicalPlan, flavour: Flavour) -> BoundedQuery:
    """Return the SQL of a bounded plan. Raise BND-5101 for an expression without a spelling, BND-5102 for a
    node that no backend runs.
    """
    if isinstance(plan, Sink) and plan.table is None:
        plan = plan.input
    writer = _PlanText(flavour)
    # An order at the top goes into the outermost select: a CTE promises none.
    root = writer.relation(plan.input if isinstance(plan, Sort | TopN) else plan)
    items = [exp.alias_(flavour.wire(column(i), field.type), f"c{i}") for i, field in enumerate(plan.schema)]
    select = exp.select(*(items or [_NOTHING.copy()])).from_(aliased(root))
    if isinstance(plan, Sort | TopN):
        select = writer.sorted(select, plan)
    return BoundedQuery(
        tuple(writer.ctes), select, writer.recursive, flavour, tuple(writer.relations), plan.schema
    )


# A select needs a column: rows without columns have this one, so that their number is right.
_NOTHING = exp.alias_(exp.Literal.number("1"), "nothing")


def positional(table: str) -> Columns:
    """Return a function from positions to the columns c0, c1, .. of one relation."""
    return lambda index: exp.column(f"c{index}", table=table)


class _PlanText:
    """Writes nodes bottom-up as CTEs; a node that is used twice is written once."""

    def __init__(self, flavour: Flavour) -> None:
        self.flavour = flavour
        self.ctes: list[tuple[str, exp.Expr]] = []
        self.relations: list[ScannedTable] = []
        self.recursive = False
        self._prefix = "n"
        self._written: dict[int, str] = {}
        # by port: what the leaves of a recursive term stand for
        self._leaves: tuple[str, ...] = ()

    def relation(self, plan: LogicalPlan) -> str:
        """Return the name of the CTE of a node's rows."""
        # By identity, as a node may be below several others.
        known = self._written.get(id(plan))
        if known is None:
            known = self._written[id(plan)] = self._write(plan)
        return known

    def add(self, select: exp.Expr) -> str:
        """Append a CTE and return its name."""
        name = self._next_name()
        self.ctes.append((name, select))
        return name

    def _next_name(self) -> str:
        return f"{self._prefix}{len(self.ctes)}"

    def _write(self, plan: LogicalPlan) -> str:
        match plan:
            # nodes of streaming only: over bounded rows they change nothing
            case WatermarkAssign() | Exchange() | Sink() | Emit() | TemporalSort():
                return self.relation(plan.inputs[0])
            case BoundedInput(plan=inner):
                return self.relation(inner)
            case WorkTable():
                return self._leaves[0]
            case TermInput(port=port):
                return self._leaves[port]
        return self.add(self._select(plan))

    def _refuse_maps(self, plan: Aggregate | WindowAggregate) -> None:
        """Refuse maps as keys: backends compare the order of their entries, or refuse them themselves."""
        keys = [plan.input.schema[key].type for key in plan.keys]
        distinct = [arg.type for call in plan.aggregates if call.distinct for arg in call.args]
        if not all(map(is_orderable, (*keys, *distinct))):
            raise self.flavour.refusal("a MAP as a key of groups")

    def _select(self, plan: LogicalPlan) -> exp.Expr:
        if isinstance(plan, Aggregate | WindowAggregate):
            self._refuse_maps(plan)
        match plan:
            case Scan():
                return self._scan(plan)
            case Values():
                return self._values(plan)
            case Filter(input=source, predicate=predicate):
                return self._rows(source).where(self._expression(predicate))
            case Project():
                return self._project(plan)
            case WindowTable():
                return self._window_table(plan)
            case WindowAggregate():
                return self._window_aggregate(plan)
            case Aggregate() | CountWindowAggregate():
                return self._aggregate(plan)
            case NearestJoin():
                return nearest_select(self, plan, self.relation(plan.left), self.relation(plan.right))
            case BinaryJoin():
                return self._join(plan)
            case TemporalJoin():
                return self._temporal_join(plan)
            case Union(branches=branches):
                return exp.union(*(self._rows(branch) for branch in branches), distinct=False, copy=False)
            case Over():
                return over_select(plan, self.relation(plan.input), self.flavour)
            case PartitionTop():
                return self._partition_top(plan)
            case Sort() | TopN():
                return self.sorted(self._rows(plan.input), plan)
            case Repeat():
                return self._repeat(plan)
            case Unnest():
                return unnest_select(plan, self.relation(plan.input), self.flavour, self.add)
            case Limit(input=source, limit=limit, offset=offset):
                return _cut(self._rows(source), limit, offset)
            case RecursiveQuery():
                return self._recursive_query(plan)
        raise PenstockError(
            "BND-5102",
            f"a {type(plan).__name__} cannot be part of a bounded query",
            kind=Kind.INTERNAL,
            sqlstate="0A000",
        )

    def _expression(self, expression: Expression, columns: Columns = column) -> exp.Expr:
        return expression_sql(expression, columns, self.flavour)

    def _rows(self, plan: LogicalPlan) -> exp.Select:
        """All columns of a node's rows."""
        return exp.select(*(_columns(len(plan.schema)) or [_NOTHING.copy()])).from_(
            aliased(self.relation(plan))
        )

    def sorted(self, select: exp.Select, plan: Sort | TopN) -> exp.Select:
        """Return a select over a node's input with its order. For TopN, all orderable columns break ties, and
        the limit applies.
        """
        # ORDER BY alone promises no order of ties, TopN has to choose like the engine
        keys = with_ties(plan.keys, plan.input) if isinstance(plan, TopN) else plan.keys
        select = select.order_by(*(sort_key_sql(key, column, self.flavour) for key in keys))
        return _cut(select, plan.limit, plan.offset) if isinstance(plan, TopN) else select

    def _partition_top(self, plan: PartitionTop) -> exp.Expr:
        width = len(plan.input.schema)
        ranked = self.add(top_select(plan, self.relation(plan.input), self.flavour, f"c{width}"))
        select = exp.select(*_columns(len(plan.schema))).from_(aliased(ranked))
        return select.where(exp.LTE(this=column(width), expression=exp.Literal.number(str(plan.limit))))

    def _scan(self, plan: Scan) -> exp.Expr:
        # COUNT(*) reads no column: take the first, if there is one
        columns = tuple(sorted(set(plan.columns))) or (0,)[: len(plan.table.source_schema)]
        splits = plan.splits if isinstance(plan, HistoryScan) else None
        # equal scans read one relation
        # The predicate is in the query, too: a reader may ignore it.
        relation = ScannedTable(plan.table, columns, _asked_of_connector(plan, columns), splits)
        if relation not in self.relations:
            self.relations.append(relation)
        source = plan.table.source_schema

        def read(index: int) -> exp.Expr:
            field = source[plan.columns[index]]
            return self.flavour.from_wire(
                exp.column(exp.to_identifier(field.name, quoted=True), table=ROWS), field.type
            )

        items = [exp.alias_(read(i), f"c{i}") for i in range(len(plan.columns))]
        select = exp.select(*(items or [_NOTHING.copy()])).from_(
            aliased(f"t_{self.relations.index(relation)}")
        )
        return select if plan.predicate is None else select.where(self._expression(plan.predicate, read))

    def _values(self, plan: Values) -> exp.Expr:
        width = len(plan.schema)
        # VALUES without rows: typed NULLs WHERE FALSE
        if not plan.rows:
            nulls = [
                exp.alias_(exp.Cast(this=exp.null(), to=self.flavour.kind(f.type)), f"c{i}")
                for i, f in enumerate(plan.schema)
            ]
            return exp.select(*(nulls or [_NOTHING.copy()])).where(exp.false())
        # rows without columns: one constant per row
        if not width:
            return (
                exp.union(*([exp.select(_NOTHING.copy())] * len(plan.rows)), distinct=False)
                if len(plan.rows) > 1
                else exp.select(_NOTHING.copy())
            )
        rows = [
            exp.Tuple(expressions=[self.flavour.literal(literal) for literal in row]) for row in plan.rows
        ]
        alias = exp.TableAlias(
            this=exp.to_identifier(ROWS), columns=[exp.to_identifier(f"c{i}") for i in range(width)]
        )
        return exp.select(*_columns(width)).from_(exp.Values(expressions=rows, alias=alias))

    def _project(self, plan: Project) -> exp.Expr:
        items = [exp.alias_(self._expression(e), f"c{i}") for i, e in enumerate(plan.expressions)]
        return exp.select(*(items or [_NOTHING.copy()])).from_(aliased(self.relation(plan.input)))

    def _join(self, plan: BinaryJoin) -> exp.Expr:
        width = len(plan.left.schema)
        left, right = positional("l"), positional("r")
        pairs = zip(plan.left_keys, plan.right_keys, strict=True)
        # ON l.a = r.b AND .. AND residual
        parts: list[exp.Expr] = [exp.EQ(this=left(a), expression=right(b)) for a, b in pairs]
        if plan.residual is not None:
            parts.append(
                self._expression(plan.residual, lambda i: left(i) if i < width else right(i - width))
            )
        items = [exp.alias_(left(i), f"c{i}") for i in range(width)]
        # SEMI and ANTI joins have the left columns only.
        if plan.kind not in (JoinKind.SEMI, JoinKind.ANTI):
            items += [exp.alias_(right(i), f"c{width + i}") for i in range(len(plan.right.schema))]
        side, kind = self.flavour.join_words[plan.kind]
        # A cross join is a join ON TRUE.
        condition = exp.and_(*parts, copy=False) if parts else exp.true()
        joined = exp.Join(this=aliased(self.relation(plan.right), "r"), side=side, kind=kind, on=condition)
        select = exp.select(*(items or [_NOTHING.copy()])).from_(aliased(self.relation(plan.left), "l"))
        select.append("joins", joined)
        return select

    def _recursive_query(self, plan: RecursiveQuery) -> exp.Expr:
        """The anchor UNION [ALL] the term, whose own nodes are CTEs inside it: backends read the work table
        there only. UNION ALL counts iterations in one more column, so that there is a bound.
        """
        if plan.distinct and not self.flavour.recursive_union:
            raise self.flavour.refusal("WITH RECURSIVE with UNION")
        width = len(plan.schema)
        anchor, term = self._rows(plan.anchor), plan.term
        inner = _PlanText(self.flavour)
        inner.relations = self.relations
        others = [self.relation(node) for node in plan.others]
        # nothing is added in between: the name is that of the CTE this select becomes
        name = self._next_name()
        inner._prefix, inner._leaves = f"{name}_", (name, *others)
        if not plan.distinct:
            term = with_iteration(term)
            anchor = anchor.select(
                exp.alias_(self.flavour.literal(Literal(BIGINT, False, value=0)), f"c{width}")
            )
        root = inner.relation(term)
        step = exp.select(*_columns(width)).from_(aliased(root))
        if not plan.distinct:
            following = self.flavour.next_iteration(column(width), plan.max_iterations)
            step = step.select(exp.alias_(following, f"c{width}"))
        for cte, body in inner.ctes:
            step = step.with_(cte, as_=body, copy=False)
        self.recursive = True
        return exp.union(anchor, step.subquery(), distinct=plan.distinct, copy=False)

    def _temporal_join(self, plan: TemporalJoin) -> exp.Expr:
        """A plain join with versions that end where the next one begins."""
        width, other = len(plan.left.schema), len(plan.right.schema)
        # Versions of a key: one for each time, each ends where the next one begins.
        first = self.add(temporal.first_of_times(plan, self.relation(plan.right), self.flavour))
        versions = self.add(temporal.with_ends(plan, first, self.flavour))
        left, right = positional("l"), positional("r")
        parts: list[exp.Expr] = [
            exp.EQ(this=left(a), expression=right(b))
            for a, b in zip(plan.left_keys, plan.right_keys, strict=True)
        ]
        parts += temporal.in_force(left(plan.left_time), right(plan.right_time), right(other))
        if plan.residual is not None:
            parts.append(
                self._expression(plan.residual, lambda i: left(i) if i < width else right(i - width))
            )
        items = [left(i) for i in range(width)] + [right(i) for i in range(other)]
        select = exp.select(*(exp.alias_(item, f"c{i}") for i, item in enumerate(items))).from_(
            aliased(self.relation(plan.left), "l")
        )
        side, kind = self.flavour.join_words[plan.kind]
        select.append(
            "joins",
            exp.Join(this=aliased(versions, "r"), side=side, kind=kind, on=exp.and_(*parts, copy=False)),
        )
        return select

    def _repeat(self, plan: Repeat) -> exp.Expr:
        width = len(plan.schema)
        times = exp.alias_(
            self.flavour.explode_series(exp.Literal.number("1"), column(width), 1), f"c{width}"
        )
        repeated = self.add(exp.select(*_columns(width), times).from_(aliased(self.relation(plan.input))))
        return exp.select(*(_columns(width) or [_NOTHING.copy()])).from_(aliased(repeated))

    def _aggregates(self, plan: Aggregate | CountWindowAggregate | WindowAggregate) -> list[exp.Expr]:
        """Keys, then aggregates, as select items."""
        items: list[exp.Expr] = [column(key) for key in plan.keys]
        items += [aggregate_sql(call, column, self.flavour) for call in plan.aggregates]
        return [exp.alias_(item, f"c{i}") for i, item in enumerate(items)]

    def _aggregate(self, plan: Aggregate | CountWindowAggregate) -> exp.Expr:
        select = exp.select(*(self._aggregates(plan) or [_NOTHING.copy()])).from_(
            aliased(self.relation(plan.input))
        )
        return select.group_by(*(column(key) for key in plan.keys)) if plan.keys else select

    def _window_table(self, plan: WindowTable) -> exp.Expr:
        width, kind = len(plan.input.schema), plan.input.schema[plan.window.time_column].type
        windowed = windows.assign(self, self.relation(plan.input), plan.input.schema, plan.window)
        bounds = windows.bounds(self.flavour, named("s"), named("e"), kind)
        return exp.select(
            *_columns(width), *(exp.alias_(b, f"c{width + i}") for i, b in enumerate(bounds))
        ).from_(aliased(windowed))

    def _window_aggregate(self, plan: WindowAggregate) -> exp.Expr:
        items, keys = self._aggregates(plan), [column(key) for key in plan.keys]
        schema, source = plan.input.schema, self.relation(plan.input)
        # GROUP BY the window columns of the rows
        if isinstance(plan.window, AttachedWindow):
            start, end = column(plan.window.start_column), column(plan.window.end_column)
            kind = schema[plan.window.end_column].type
            time = self.flavour.from_epoch_us(windows.earlier(self.flavour.epoch_us(end.copy(), kind)), kind)
            bounds, groups = [start, end, time], [start, end]
        else:
            kind = schema[plan.window.time_column].type
            # GROUP BY the slice
            if plan.phase is Phase.LOCAL:
                source = windows.assign(self, source, schema, plan.window.slices())
                bounds, groups = [self.flavour.from_epoch_us(named("e"), kind)], [named("e")]
            else:
                source = windows.assign(self, source, schema, plan.window)
                groups = [named("s"), named("e")]
                bounds = windows.bounds(self.flavour, groups[0], groups[1], kind)
        items += [exp.alias_(bound.copy(), f"c{len(items) + i}") for i, bound in enumerate(bounds)]
        return exp.select(*items).from_(aliased(source)).group_by(*keys, *(group.copy() for group in groups))


def _asked_of_connector(plan: Scan, columns: tuple[int, ...]) -> Expression | None:
    """The predicate that a database or a table's files are asked for, over the columns read."""
    if plan.predicate is None or not takes_filter(plan.table):
        return None
    return plan.predicate.remap({place: columns.index(column) for place, column in enumerate(plan.columns)})


def _columns(width: int) -> list[exp.Expr]:
    return [exp.alias_(column(i), f"c{i}") for i in range(width)]


def _cut(select: exp.Select, limit: int | None, offset: int) -> exp.Select:
    if limit is not None:
        select = select.limit(limit)
    return select.offset(offset) if offset else select
