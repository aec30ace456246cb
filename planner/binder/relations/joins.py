"""Joins: equalities between the sides become keys, the rest a residual condition. USING outputs each shared
column once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Role
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.relations.join_conditions import (
    Roles,
    bounds_times,
    join_time,
    key_pair,
    time_roles,
    with_keys,
)
from penstock.planner.binder.relations.lookup_join import (
    LookupSide,
    in_terms_of,
    lookup_keys,
    lookup_plan,
    refuse_computed,
    refuse_keyless,
    reject_reloaded,
    resolve_lookup,
)
from penstock.planner.binder.relations.snapshot_join import bind_snapshot
from penstock.planner.binder.relations.table_functions import bind_table_function
from penstock.planner.binder.relations.tables import Source, bind_source, one_row
from penstock.planner.binder.relations.temporal_join import as_of_column, split_keys, versions
from penstock.planner.binder.scope import Combine, FromClause, Halves, Hinted, Relation, Scope, ScopeColumn
from penstock.planner.binder.select_hints import BlockHints, table_name
from penstock.planner.expressions.nodes import Column, Expression, conjunction, conjuncts
from penstock.planner.logical.joins.interval_join import IntervalJoin, as_interval_join
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.joins.snapshot_join import SnapshotJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project, select_columns
from penstock.planner.logical.scan import bounded
from penstock.planner.logical.unnest import Unnest
from penstock.planner.parser.syntax_nodes import (
    AsOf,
    JoinedTables,
    LateralQuery,
    SnapshotTable,
    TableFunctionCall,
    consume,
    set_span,
    span_of,
)

# FROM a, b is CROSS JOIN, and CROSS JOIN an inner join without condition: WHERE may still make it a key
_KINDS = {
    "INNER": JoinKind.INNER,
    "CROSS": JoinKind.INNER,
    "COMMA": JoinKind.INNER,
    "LEFT": JoinKind.LEFT,
    "RIGHT": JoinKind.RIGHT,
    "FULL": JoinKind.FULL,
    "SEMI": JoinKind.SEMI,
    "ANTI": JoinKind.ANTI,
}


def bind_from(
    tree: exp.Expr, joins: Sequence[exp.Expr], context: BindContext, hints: BlockHints | None = None
) -> FromClause:
    """Bind FROM and its joins, left to right. ``hints`` apply to the first table and to the right sides: a
    joined left side has no name.
    """
    hints = hints or BlockHints()
    left, first = _first(tree, context, hints), table_name(tree)
    if not isinstance(tree, JoinedTables):
        hints.subtasks.add_source(tree, left.plan)
    for join in joins:
        # Joins are left-deep: each one takes all rows so far as its left side.
        consume(join, "this", "kind", "on", "using", "natural", "asof", "match_condition")
        # CROSS JOIN UNNEST(..), LATERAL TABLE(f(..)), LATERAL VIEW explode(..)
        if isinstance(join.this, TableFunctionCall):
            left = _with_function(left, join, context)
            continue
        # CROSS JOIN LATERAL (SELECT ..)
        if isinstance(join.this, LateralQuery):
            left = _with_query(left, join, context)
            continue
        # JOIN LATERAL SNAPSHOT(input => TABLE t, ..)
        if isinstance(join.this, SnapshotTable) and join.this.args.get("lateral"):
            left = _with_snapshot(left, join, context)
            continue
        # Any other join, with FOR SYSTEM_TIME AS OF or without
        right = _right(join.this, context, hints)
        _refuse_same_name(left.scope, right, join)
        name, below = table_name(join.this), left.plan
        hinted = partial(hints.on_join, below=below, left=first, right=name)
        left, first = _joined(left, right, join, context, hinted), None
        # those of temporal, lookup and ASOF joins, which are made without ``hinted``
        left = replace(left, plan=hints.subtasks.on_join(left.plan, below, name))
    return left


def _right(tree: exp.Expr, context: BindContext, hints: BlockHints) -> Source:
    # a JOIN (b JOIN c ON ..)
    if isinstance(tree, JoinedTables):
        joined = bind_from(tree.this, tree.args["joins"], context, hints)
        relation = Relation(joined.plan, joined.plan.schema.fields)
        return Source(relation, None, joined=joined.scope)
    table = tree.this if isinstance(tree, AsOf) else tree
    source = bind_source(table, context)
    hints.subtasks.add_source(table, source.relation.plan)
    return source


def _first(tree: exp.Expr, context: BindContext, hints: BlockHints) -> FromClause:
    # (a JOIN b ON ..) JOIN c
    if isinstance(tree, JoinedTables):
        return bind_from(tree.this, tree.args["joins"], context, hints)
    # FROM UNNEST(ARRAY[1, 2]): joined to the one row of a query without FROM
    if isinstance(tree, TableFunctionCall):
        plan, scope = bind_table_function(one_row(), Scope(), tree, context, False)
        return FromClause(plan, scope)
    # FROM LATERAL (SELECT ..): there is nothing on its left that it could read
    if isinstance(tree, LateralQuery):
        return context.binder.lateral(FromClause(one_row(), Scope()), tree, JoinKind.INNER, context)
    source = bind_source(tree, context)
    return FromClause(source.relation.plan, source.scope)


def _with_query(left: FromClause, join: exp.Expr, context: BindContext) -> FromClause:
    """Join the input with LATERAL (query): for each row the rows of the query."""
    kind = _lateral_kind(left, join, "LATERAL")
    source = context.binder.lateral(left, join.this, kind, context)
    condition = _on_of(source, join, context)
    if condition is None:
        return source
    # A LEFT JOIN's condition decides what is padded, so the query is bound again with it inside.
    if kind is JoinKind.LEFT:
        return context.binder.lateral(left, join.this, kind, context, condition)
    return FromClause(Filter(source.plan, condition), source.scope)


def _with_snapshot(left: FromClause, join: exp.Expr, context: BindContext) -> FromClause:
    """Join the input with LATERAL SNAPSHOT(..): each row with the table's rows as they are when
    it arrives.
    """
    _lateral_kind(left, join, "SNAPSHOT", may_share=True)
    snapshot = bind_snapshot(join.this, context)
    _refuse_same_name(left.scope, snapshot.source, join)
    return _joined(left, snapshot.source, join, context, snapshot.joined)


def _lateral_kind(left: FromClause, join: exp.Expr, what: str, may_share: bool = False) -> JoinKind:
    kind, alias = _KINDS[str(join.args["kind"])], join.this.args.get("alias")
    # may_share: LATERAL SNAPSHOT is a table, so USING (k) has columns on both sides
    shares = join.args.get("using") or join.args.get("natural")
    if kind not in (JoinKind.INNER, JoinKind.LEFT) or (shares and not may_share):
        hint = (
            "write JOIN or LEFT JOIN"
            if may_share
            else "write CROSS JOIN, or LEFT JOIN .. ON TRUE to keep rows without any"
        )
        raise PenstockError(
            "SQL-1601",
            f"{what} is joined by {'JOIN' if may_share else 'CROSS JOIN'} or LEFT JOIN",
            span=span_of(join),
            hint=hint,
            sqlstate="0A000",
        )
    if alias is not None:
        _reject_duplicate_table(left.scope, alias.this.name, join)
    return kind


def _on_of(source: FromClause, join: exp.Expr, context: BindContext) -> Expression | None:
    """Return the bound ON of a lateral join, ``None`` for none or TRUE."""
    tree = join.args.get("on")
    # LEFT JOIN LATERAL (..) ON TRUE
    if tree is None or (isinstance(tree, exp.Boolean) and tree.this):
        return None
    return ExpressionBinder(source.scope, context, "ON").condition(tree)


def _with_function(left: FromClause, join: exp.Expr, context: BindContext) -> FromClause:
    """Join the input with a table function: for each row the rows it returns. Time attributes survive,
    because no row is delayed.
    """
    kind = _lateral_kind(left, join, "a table function")
    plan, function_scope = bind_table_function(
        left.plan, left.scope, join.this, context, kind is JoinKind.LEFT
    )
    # f(t.x) appends its columns behind those of t
    source = FromClause(plan, Scope(left.scope.columns + function_scope.columns))
    condition = _on_of(source, join, context)
    if condition is None:
        return source
    # LEFT JOIN: the node tests the condition itself, because a filter above would drop padded rows.
    if isinstance(plan, Unnest) and plan.outer:
        return FromClause(replace(plan, condition=condition), source.scope)
    return FromClause(Filter(plan, condition), source.scope)


def _refuse_same_name(scope: Scope, right: Source, join: exp.Expr) -> None:
    for name in right.scope.tables:
        _reject_duplicate_table(scope, name, join)


def _reject_duplicate_table(scope: Scope, name: str, join: exp.Expr) -> None:
    # FROM t JOIN t: t.x would be ambiguous
    # what has no name is never qualified
    if name and scope.has_table(name):
        hint = f"give one of them an alias: {name} AS other"
        raise PenstockError(
            "SQL-1045",
            f'table name "{name}" occurs twice in FROM',
            span=span_of(join.this),
            hint=hint,
            sqlstate="42712",
        )


def _joined(
    left: FromClause, right: Source, join: exp.Expr, context: BindContext, hinted: Hinted
) -> FromClause:
    kind = _KINDS[str(join.args["kind"])]
    other = FromClause(right.relation.plan, right.scope)
    # which node joins: a function of the condition's AND-ed parts, chosen below and called at the end
    combine = partial(_on, left, other, kind, hinted)
    # AS OF an event time joins versions; AS OF a processing time looks up, or joins a bounded table.
    if isinstance(join.this, AsOf):
        time = as_of_column(join.this, left.scope, other.plan, kind, context)
        if time is not None:
            combine = partial(_temporal, left, other, kind, join.this, time.index)
        # FOR SYSTEM_TIME AS OF proc_time of a table that a connector can query by key
        elif (looked := resolve_lookup(other.plan)) is not None:
            combine = partial(_lookup, left, other, kind, hinted, join.this, looked)
        else:
            # a bounded table is loaded once and joined; one that says it is read again would be stale
            reject_reloaded(other.plan, join.this)
    if join.args.get("asof"):
        combine = partial(context.binder.asof, left, other, kind, join, context)
    # NATURAL JOIN is USING with all shared names.
    using = _shared_names(left.scope, right, join) if join.args.get("natural") else join.args.get("using")
    if using:
        # USING (a, b)
        # ASOF JOIN t USING (k, ts): k is equal and the last column is the nearest, as in DuckDB
        nearest = {"asof", "using"} <= join.args.keys() and not join.args.get("match_condition")
        return _using(left, other, kind, using, combine, context, nearest)
    condition = join.args.get("on")
    parts: tuple[Expression, ...] = ()
    # ON .. IN (SELECT ..), ON .. = (SELECT ..)
    asof = bool(join.args.get("asof"))
    if condition is not None and not asof and any(isinstance(n, exp.Subquery) for n in condition.walk()):
        return _on_subqueries(left, other, kind, join, context, hinted)
    # ON a.k = b.k AND ..; CROSS JOIN has no parts
    if condition is not None:
        parts = conjuncts(
            ExpressionBinder(left.scope.beside(right.scope, len(left.plan.schema)), context, "ON").condition(
                condition
            )
        )
    return combine(parts)


def _on_subqueries(
    left: FromClause, right: FromClause, kind: JoinKind, join: exp.Expr, context: BindContext, hinted: Hinted
) -> FromClause:
    if isinstance(join.this, AsOf | SnapshotTable):
        hint = "put it among the conditions of WHERE"
        raise PenstockError(
            "SQL-1601",
            "a subquery in the ON of a temporal or snapshot join is not supported",
            span=span_of(join),
            hint=hint,
            sqlstate="0A000",
        )
    return context.binder.join_with_subqueries(
        left, right, kind, join.args["on"], lambda a, b, parts: _on(a, b, kind, hinted, parts), context
    )


def _shared_names(scope: Scope, right: Source, join: exp.Expr) -> list[exp.Identifier]:
    """Return the columns that NATURAL JOIN compares: those with one name on both sides. Raises SQL-1726 when
    there is none.
    """
    # a column that an earlier USING merged is found once, under its shared name
    shown = dict.fromkeys(column.field.name for column in right.scope.columns if not column.merged)
    names = [name for name in shown if scope.find(name)]
    if not names:
        hint = "write the condition with ON; CROSS JOIN pairs every row with every row"
        raise PenstockError(
            "SQL-1726",
            "NATURAL JOIN of tables that share no column name",
            span=span_of(join),
            hint=hint,
            sqlstate="42702",
        )
    # Errors in shared names point to the join, because the query does not spell them.
    identifiers = [exp.to_identifier(name) for name in names]
    span = span_of(join)
    return [set_span(name, span.start, span.end) if span is not None else name for name in identifiers]


def _on(
    left: FromClause, right: FromClause, kind: JoinKind, hinted: Hinted, parts: tuple[Expression, ...]
) -> FromClause:
    # a bounded side is loaded first, so no time bound is needed to free its rows
    times = (
        None
        if bounded(left.plan) or bounded(right.plan)
        else (time_roles(left.scope), time_roles(right.scope))
    )
    width = len(left.plan.schema)
    plan = hinted(join_on(left.plan, right.plan, kind, parts, times))
    # An interval or snapshot join emits each row in time: time attributes survive.
    if holds_timed(plan):
        return FromClause(plan, shown_scope(left, right, kind, width).with_roles_of(plan.schema))
    # WHERE may still bound the time of an inner join, so its sides are recorded.
    # WHERE after an outer join filters padded rows too, so it must not move into the condition
    inner = kind is JoinKind.INNER and times is not None
    return FromClause(
        plan, _visible(left, right, kind, width), Halves(left, right, parts, hinted) if inner else None
    )


def _temporal(
    left: FromClause, right: FromClause, kind: JoinKind, tree: AsOf, time: int, parts: tuple[Expression, ...]
) -> FromClause:
    """Return the temporal join with the version that was valid at a time of the left side. Equalities on
    columns outside the version's key become residual conditions.
    """
    width = len(left.plan.schema)
    versioned = versions(tree, right.plan, left.plan.schema[time].type)
    equal = [(part, pair) for part in parts if (pair := key_pair(part, width)) is not None]
    # Equalities on the versions' key become join keys; the others are tested on the valid version.
    keyed, others = split_keys([pair for _, pair in equal], versioned, tree)
    # ON r.k = l.k AND r.x = l.y, key (k): the second equality is a test of the version, not a key
    tests = [part for part in parts if key_pair(part, width) is None] + [equal[i][0] for i in others]
    # Computed keys are projected behind each side's columns, so the residual's right columns move.
    wide_left, left_keys = with_keys(left.plan, [equal[i][1][0] for i in keyed])
    wide_right, right_keys = with_keys(versioned.plan, [equal[i][1][1] for i in keyed])
    added = len(wide_left.schema) - width
    moved = {i: i if i < width else i + added for i in range(width + len(right.plan.schema))}
    residual = conjunction(tuple(part.remap(moved) for part in tests)) if tests else None
    plan: LogicalPlan = TemporalJoin(
        wide_left, wide_right, kind, left_keys, right_keys, time, versioned.time, versioned.ties, residual
    )
    if added or len(wide_right.schema) > len(right.plan.schema):
        # drop the computed keys, so that the output is left columns ++ right columns again
        plan = select_columns(plan, list(moved.values()))
    return FromClause(plan, shown_scope(left, right, kind, width).with_roles_of(plan.schema))


def _lookup(
    left: FromClause,
    right: FromClause,
    kind: JoinKind,
    hinted: Hinted,
    tree: AsOf,
    looked: LookupSide,
    parts: tuple[Expression, ...],
) -> FromClause:
    """Return the lookup join, which queries a database for the rows of each key."""
    width = len(left.plan.schema)
    refuse_computed(looked, kind, tree)
    # the right side may be a view over the table: conditions are rewritten over the table's own columns
    conditions = in_terms_of(parts, looked, width)
    keyed = lookup_keys([(part, pair) for part in conditions if (pair := key_pair(part, width)) is not None])
    if not keyed:
        raise refuse_keyless(tree)
    # Conditions over the table alone filter in the database; the rest is tested on each joined row.
    of_table = [part for part in conditions if part.columns() and min(part.columns()) >= width]
    tests = [part for part in conditions if part not in of_table and all(part is not key for key, _ in keyed)]
    wide_left, left_keys = with_keys(left.plan, [mine for _, (mine, _) in keyed])
    added = len(wide_left.schema) - width
    moved = {i: i if i < width else i + added for i in range(width + len(looked.scan.schema))}
    # below: positions in the table alone; moved: positions in the wider left side ++ the table
    below = {i: i - width for i in moved}
    keys = [(index, theirs) for index, (_, (_, theirs)) in zip(left_keys, keyed, strict=True)]
    plan = hinted(
        lookup_plan(
            wide_left,
            looked,
            kind,
            keys,
            [part.remap(below) for part in of_table],
            [part.remap(moved) for part in tests],
        )
    )
    # the view's columns are computed above the join, from the columns that were looked up
    shift = {i: i + width + added for i in range(len(looked.scan.schema))}
    mine = [Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(left.plan.schema)]
    table_columns = [column.remap(shift) for column in looked.columns]
    # A LEFT JOIN pads the table's columns with NULLs.
    table_columns = [replace(c, nullable=True) if kind is JoinKind.LEFT else c for c in table_columns]
    shown = Project(plan, (*mine, *table_columns), tuple(left.plan.schema.names + right.plan.schema.names))
    return FromClause(
        shown,
        shown_scope(left, FromClause(right.plan, right.scope.without_roles()), kind, width).with_roles_of(
            shown.schema
        ),
    )


def push_time_conditions(
    source: FromClause, parts: tuple[Expression, ...]
) -> tuple[FromClause, tuple[Expression, ...]]:
    """Push conditions of WHERE into inner joins that they turn into interval joins. Return the new FROM and
    the remaining conditions.
    """
    halves = source.halves
    # FROM has one table, or its last join is no inner join of streams
    if halves is None:
        return source, parts
    width = len(halves.left.plan.schema)
    of_left = tuple(part for part in parts if part.columns() and max(part.columns()) < width)
    # a JOIN b JOIN c: conditions over a and b alone go to the inner join of these.
    left, rest_of_left = push_time_conditions(halves.left, of_left)
    remaining = tuple(part for part in parts if part not in of_left or part in rest_of_left)
    # Try the join with WHERE's equalities and time bounds in its condition.
    shared = tuple(part for part in remaining if _is_key(part, width) or bounds_times(part, width))
    # only a trial: plans are values, so the join as it was is still in source
    joined = _on(left, halves.right, JoinKind.INNER, halves.hinted, (*halves.parts, *shared))
    # They bound it: it is an interval join, and these conditions are done.
    if holds_timed(joined.plan):
        remaining = tuple(part for part in remaining if part not in shared)
    # Nothing was pushed anywhere: the plan remains as it was.
    elif left is halves.left:
        return source, parts
    else:
        joined = _on(left, halves.right, JoinKind.INNER, halves.hinted, halves.parts)
    # The new join may have time attributes that the old one dropped; names and USING stay.
    # positions are those of the old join: pushing conditions neither adds nor moves columns
    by_index = {c.index: c for c in joined.scope.columns}
    columns = tuple(replace(by_index[c.index], table=c.table, merged=c.merged) for c in source.scope.columns)
    return FromClause(joined.plan, Scope(columns, source.scope.outer), joined.halves), remaining


def _is_key(part: Expression, width: int) -> bool:
    # l.a = r.b, possibly with expressions on both sides, is a key. Everything else is residual.
    pair = key_pair(part, width)
    return pair is not None and all(isinstance(side, Column) for side in pair)


def holds_timed(plan: LogicalPlan) -> bool:
    """Return whether the plan's topmost join preserves time attributes. A projection that drops computed keys
    may be above it.
    """
    return isinstance(plan.input if isinstance(plan, Project) else plan, IntervalJoin | SnapshotJoin)


def shown_scope(left: FromClause, right: FromClause, kind: JoinKind, width: int) -> Scope:
    """Return the output scope of a join; columns have the roles of its inputs."""
    mine, theirs = left.scope, right.scope
    # Only the left row is emitted, so there is nothing of the right side to show.
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return mine
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        mine = mine.nullable()
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        theirs = theirs.nullable()
    return mine.beside(theirs, width)


def _visible(left: FromClause, right: FromClause, kind: JoinKind, width: int) -> Scope:
    """Return the output scope of a join without time bounds.

    A time attribute survives only on a side whose rows still arrive in time: never padded with NULLs, joined
    to a bounded table. A join of two streams emits old rows late.
    """
    left_bounded, right_bounded = bounded(left.plan), bounded(right.plan)
    # left times survive beside a bounded right side, unless the join pads left columns (RIGHT, FULL)
    if not (right_bounded and kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)):
        left = FromClause(left.plan, left.scope.without_roles())
    # right times likewise; of two bounded sides the right one is loaded first: only the left keeps its time
    if not (left_bounded and kind in (JoinKind.INNER, JoinKind.RIGHT)) or (
        right_bounded and kind is JoinKind.INNER
    ):
        right = FromClause(right.plan, right.scope.without_roles())
    return shown_scope(left, right, kind, width)


def join_on(
    left: LogicalPlan,
    right: LogicalPlan,
    kind: JoinKind,
    parts: Sequence[Expression],
    times: tuple[Roles, Roles] | None = None,
) -> LogicalPlan:
    """Return the join with the equalities among ``parts`` (over left ++ right) as keys. Keys that are no
    plain columns are projected beneath.

    ``times``: the time columns of each side. Where the conditions bound them enough, the result is an
    interval join.
    """
    width = len(left.schema)
    keys: list[tuple[Expression, Expression]] = []
    tests = []
    for part in parts:
        pair = key_pair(part, width)
        if pair is None:
            tests.append(part)
        else:
            keys.append(pair)
    wide_left, left_keys = with_keys(left, [key for key, _ in keys])
    wide_right, right_keys = with_keys(right, [key for _, key in keys])
    added = len(wide_left.schema) - width
    moved = {i: i if i < width else i + added for i in range(width + len(right.schema))}
    residual = conjunction(tuple(part.remap(moved) for part in tests)) if tests else None
    join = Join(wide_left, wide_right, kind, left_keys, right_keys, residual)
    # a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts, or equal window bounds on both sides
    time = None if times is None else join_time(parts, width, *times, kind)
    plan: LogicalPlan = join if time is None else as_interval_join(join, time)
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return select_columns(plan, range(width)) if added else plan
    if added or len(wide_right.schema) > len(right.schema):
        plan = select_columns(plan, list(moved.values()))
    return plan


# USING


def _using(
    left: FromClause,
    right: FromClause,
    kind: JoinKind,
    names: Sequence[exp.Identifier],
    combine: Combine,
    context: BindContext,
    nearest: bool,
) -> FromClause:
    width = len(left.plan.schema)
    binder = ExpressionBinder(Scope(), context, "USING")
    parts: list[Expression] = []
    shared = []
    for name in names:
        mine, _ = left.scope.resolve([name])
        theirs, _ = right.scope.resolve([name])
        # USING (k) is ON l.k = r.k; unequal types are cast as = casts them
        compared = "greater_equal" if nearest and name is names[-1] else "equal"
        parts.append(binder.call(compared, [_read(mine, 0), _read(theirs, width)], span_of(name)))
        # The shared column is a time attribute only if both sides say so.
        same = mine.field.role if mine.field.role is theirs.field.role else None
        shared.append((replace(mine.field, name=name.name, role=same), mine.index, theirs.index + width))
    joined = combine(tuple(parts))
    if kind is JoinKind.FULL:
        # a row may have either side only, so neither column alone is the shared one
        return _full_using(joined, shared, binder)
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        # SEMI and ANTI: the right columns are not visible, so nothing is shared
        return joined
    # The shared column is the right one after RIGHT JOIN, else the left; the other needs its table's name.
    visible = {theirs if kind is JoinKind.RIGHT else mine for _, mine, theirs in shared}
    hidden = {index for _, mine, theirs in shared for index in (mine, theirs)} - visible
    columns = tuple(replace(c, merged=True) if c.index in hidden else c for c in joined.scope.columns)
    # SELECT *: the shared columns come first, each once
    first = tuple(c for c in columns if c.index in visible)
    return replace(joined, scope=Scope(first + tuple(c for c in columns if c.index not in visible)))


def _read(column: ScopeColumn, offset: int) -> Column:
    return Column(
        column.field.type, column.field.nullable, index=column.index + offset, name=column.field.name
    )


def _full_using(
    joined: FromClause, shared: Sequence[tuple[Field, int, int]], binder: ExpressionBinder
) -> FromClause:
    """Bind the USING columns of a FULL JOIN: COALESCE(left, right), projected above the join.

    In a window join both sides of a row belong to one window, so shared window bounds keep their roles.
    """
    fields = joined.plan.schema.fields
    expressions: list[Expression] = [
        Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(fields)
    ]
    names = [f.name for f in fields]
    lasting = (Role.WINDOW_START, Role.WINDOW_END) if holds_timed(joined.plan) else ()
    merged = []
    for field, mine, theirs in shared:
        value = binder.call("coalesce", [expressions[mine], expressions[theirs]], None)
        role = field.role if field.role in lasting else None
        merged.append(
            ScopeColumn(len(expressions), replace(field, type=value.type, nullable=value.nullable, role=role))
        )
        expressions.append(value)
        names.append(field.name)
    hidden = {index for _, mine, theirs in shared for index in (mine, theirs)}
    columns = tuple(replace(c, merged=True) if c.index in hidden else c for c in joined.scope.columns)
    return FromClause(Project(joined.plan, tuple(expressions), tuple(names)), Scope(tuple(merged) + columns))
