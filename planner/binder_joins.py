"""Joins: equalities between the sides become keys, the rest a residual condition; USING shows its columns once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from catalog.errors import PenstockError
from planner.bind_context import BindContext
from planner.binder_expressions import ExpressionBinder
from planner.binder_tables import Source, bind_source, bounded
from planner.expressions import Call, Column, Expression, conjunction, conjuncts
from planner.logical import Join, JoinKind, LogicalPlan, Project
from planner.scope import Scope, ScopeColumn
from planner.syntax import consume, span_of

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


@dataclass(frozen=True)
class FromClause:
    """What FROM gives: a plan and the columns in reach."""

    plan: LogicalPlan
    scope: Scope


def bind_from(tree: exp.Expr, joins: Sequence[exp.Expr], context: BindContext) -> FromClause:
    """Return the rows of FROM with its joins, left to right."""
    source = bind_source(tree, context)
    left = FromClause(source.relation.plan, source.scope)
    for join in joins:
        consume(join, "this", "kind", "on", "using")
        right = bind_source(join.this, context)
        _refuse_same_name(left.scope, right, join)
        left = _joined(left, right, join, context)
    return left


def _refuse_same_name(scope: Scope, right: Source, join: exp.Expr) -> None:
    if right.name is not None and scope.has_table(right.name):
        hint = f"give one of them an alias: {right.name} AS other"
        raise PenstockError("SQL-1045", f'table name "{right.name}" stands twice in FROM', span=span_of(join.this), hint=hint, sqlstate="42712")


def _joined(left: FromClause, right: Source, join: exp.Expr, context: BindContext) -> FromClause:
    kind = _KINDS[str(join.args["kind"])]
    width = len(left.plan.schema)
    scope = _visible(left, right, kind, width)
    using = join.args.get("using")
    if using:
        return _using(left, right, kind, using, scope, context)
    condition = join.args.get("on")
    parts: tuple[Expression, ...] = ()
    if condition is not None:
        parts = conjuncts(ExpressionBinder(left.scope.beside(right.scope, width), context, "ON").condition(condition))
    return FromClause(join_on(left.plan, right.relation.plan, kind, parts), scope)


def _visible(left: FromClause, right: Source, kind: JoinKind, width: int) -> Scope:
    """The columns after a join. Time attributes live on only where every row still comes in its time: on a side that is never padded with NULLs,
    when the other side is a bounded table (a join of two streams gives old rows late)."""
    mine, theirs = left.scope, right.scope
    left_bounded, right_bounded = bounded(left.plan), bounded(right.relation.plan)
    if not (right_bounded and kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)):
        mine = mine.without_roles()
    if not (left_bounded and kind in (JoinKind.INNER, JoinKind.RIGHT)) or (right_bounded and kind is JoinKind.INNER):
        theirs = theirs.without_roles()
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return mine
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        mine = mine.nullable()
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        theirs = theirs.nullable()
    return mine.beside(theirs, width)


def join_on(left: LogicalPlan, right: LogicalPlan, kind: JoinKind, parts: Sequence[Expression]) -> LogicalPlan:
    """Return the join with the equalities among ``parts`` (over left ++ right) as keys; keys that are no columns are computed beneath."""
    width = len(left.schema)
    keys: list[tuple[Expression, Expression]] = []
    rest = []
    for part in parts:
        pair = key_pair(part, width)
        if pair is None:
            rest.append(part)
        else:
            keys.append(pair)
    wide_left, left_keys = with_keys(left, [key for key, _ in keys])
    wide_right, right_keys = with_keys(right, [key for _, key in keys])
    added = len(wide_left.schema) - width
    moved = {i: i if i < width else i + added for i in range(width + len(right.schema))}
    residual = conjunction(tuple(part.remap(moved) for part in rest)) if rest else None
    plan: LogicalPlan = Join(wide_left, wide_right, kind, left_keys, right_keys, residual)
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return _columns(plan, range(width)) if added else plan
    if added or len(wide_right.schema) > len(right.schema):
        plan = _columns(plan, list(moved.values()))
    return plan


def _columns(plan: LogicalPlan, positions: Sequence[int]) -> LogicalPlan:
    fields = [plan.schema[i] for i in positions]
    expressions = tuple(Column(f.type, f.nullable, index=i, name=f.name) for i, f in zip(positions, fields, strict=True))
    return Project(plan, expressions, tuple(f.name for f in fields))


def key_pair(part: Expression, width: int) -> tuple[Expression, Expression] | None:
    """Return the (left, right) sides of an equality between the two inputs, the right one over its own columns, or ``None``."""
    if not isinstance(part, Call) or part.function != "equal":
        return None
    first, second = part.args
    for left, right in ((first, second), (second, first)):
        mine, theirs = left.columns(), right.columns()
        if mine and theirs and max(mine) < width <= min(theirs):
            return left, right.remap({i: i - width for i in theirs})
    return None


def with_keys(plan: LogicalPlan, keys: Sequence[Expression]) -> tuple[LogicalPlan, tuple[int, ...]]:
    """Return the plan with keys that are no columns computed at its end, and the keys' positions."""
    fields = plan.schema.fields
    expressions: list[Expression] = [Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(fields)]
    names = [f.name for f in fields]
    positions = []
    for key in keys:
        if isinstance(key, Column):
            positions.append(key.index)
            continue
        positions.append(len(expressions))
        expressions.append(key)
        names.append(f"key{len(positions)}")
    if len(expressions) == len(fields):
        return plan, tuple(positions)
    return Project(plan, tuple(expressions), tuple(names)), tuple(positions)


# USING


def _using(left: FromClause, right: Source, kind: JoinKind, names: Sequence[exp.Identifier], scope: Scope, context: BindContext) -> FromClause:
    width = len(left.plan.schema)
    binder = ExpressionBinder(Scope(), context, "USING")
    parts, shared = [], []
    for name in names:
        mine, _ = left.scope.resolve([name])
        theirs, _ = right.scope.resolve([name])
        a = _read(mine, 0)
        b = _read(theirs, width)
        parts.append(binder.call("equal", [a, b], span_of(name)))
        shared.append((name.name, mine.index, theirs.index + width))
    plan = join_on(left.plan, right.relation.plan, kind, parts)
    if kind is JoinKind.FULL:
        return _full_using(plan, shared, scope, binder)
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return FromClause(plan, scope)
    kept = {theirs if kind is JoinKind.RIGHT else mine for _, mine, theirs in shared}
    hidden = {index for _, mine, theirs in shared for index in (mine, theirs)} - kept
    columns = tuple(replace(c, merged=True) if c.index in hidden else c for c in scope.columns)
    first = tuple(c for c in columns if c.index in kept)
    return FromClause(plan, Scope(first + tuple(c for c in columns if c.index not in kept)))


def _read(column: ScopeColumn, offset: int) -> Column:
    return Column(column.field.type, column.field.nullable, index=column.index + offset, name=column.field.name)


def _full_using(plan: LogicalPlan, shared: Sequence[tuple[str, int, int]], scope: Scope, binder: ExpressionBinder) -> FromClause:
    """A FULL JOIN's shared column is the left value, or the right one where the left is missing; it is computed above the join."""
    fields = plan.schema.fields
    expressions: list[Expression] = [Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(fields)]
    names = [f.name for f in fields]
    merged = []
    for name, mine, theirs in shared:
        value = binder.call("coalesce", [expressions[mine], expressions[theirs]], None)
        field = replace(fields[mine], name=name, type=value.type, nullable=value.nullable, role=None)
        merged.append(ScopeColumn(len(expressions), field))
        expressions.append(value)
        names.append(name)
    hidden = {index for _, mine, theirs in shared for index in (mine, theirs)}
    columns = tuple(replace(c, merged=True) if c.index in hidden else c for c in scope.columns)
    return FromClause(Project(plan, tuple(expressions), tuple(names)), Scope(tuple(merged) + columns))
