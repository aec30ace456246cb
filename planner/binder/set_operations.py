"""UNION, INTERSECT and EXCEPT. Branches are cast to common types; INTERSECT and EXCEPT count each row on both
sides.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.catalog.coercion import common_type_of
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, BOOLEAN
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.scope import Relation
from penstock.planner.binder.subqueries.scalar_subqueries import column
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import (
    FALSE,
    TRUE,
    AggregateCall,
    Call,
    Case,
    Column,
    Expression,
    Literal,
)
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.set_operations import Repeat, Union
from penstock.planner.parser.syntax_nodes import span_of

_ZERO = Literal(BIGINT, False, value=0)


def bind_set_operation(tree: exp.SetOperation, context: BindContext) -> Relation:
    """Return UNION, INTERSECT or EXCEPT. Columns match by position and have the first branch's names. Without
    ALL the rows are distinct.
    """
    distinct = bool(tree.args.get("distinct"))
    if isinstance(tree, exp.Union) and not distinct:
        # A UNION ALL B UNION ALL C is one node of three branches, not two nested ones.
        return united(_branches(tree), "UNION", context)
    pair = [tree.this, tree.args["expression"]]
    if isinstance(tree, exp.Union):
        merged = united(pair, "UNION", context)
        # UNION is UNION ALL grouped by every column.
        different = Aggregate(merged.plan, tuple(range(len(merged.fields))), (), ())
        return Relation(different, different.schema.fields)
    word = "INTERSECT" if isinstance(tree, exp.Intersect) else "EXCEPT"
    # SELECT a FROM t INTERSECT SELECT a FROM u: count each row on both sides, keep it by its counts
    left, right = alike([context.query(node) for node in pair], pair, word)
    counted = _counted(left.plan, right.plan)
    width = len(left.fields)
    mine, theirs = column(counted, width), column(counted, width + 1)
    # With ALL a row occurs min(left, right) times in INTERSECT, left - right times in EXCEPT.
    count = _smaller(mine, theirs) if word == "INTERSECT" else _less(mine, theirs, distinct)
    plan = _repeat_counted(counted, width, count, distinct)
    fields = zip(left.fields, plan.schema, strict=True)
    return Relation(plan, tuple(Field(named.name, field.type, field.nullable) for named, field in fields))


def _branches(tree: exp.Union) -> list[exp.Expr]:
    """Return the branches of a chain of UNION ALL, first to last."""
    branches = []
    node: exp.Expr = tree
    # The parser nests UNION to the left; a branch with its own ORDER BY or LIMIT stays a query.
    while isinstance(node, exp.Union) and not node.args.get("distinct") and not _modified(node, tree):
        branches.append(node.args["expression"])
        node = node.this
    return [*branches, node][::-1]


def _modified(node: exp.Expr, top: exp.Expr) -> bool:
    return node is not top and any(
        node.args.get(key) is not None for key in ("order", "limit", "offset", "with_")
    )


def united(nodes: Sequence[exp.Expr], word: str, context: BindContext) -> Relation:
    """Return the UNION ALL of queries; ``word`` names it in errors."""
    relations = alike([context.query(node) for node in nodes], nodes, word)
    plan = Union(tuple(relation.plan for relation in relations))
    return Relation(plan, _union_fields(relations, plan.schema.fields))


def alike(relations: Sequence[Relation], nodes: Sequence[exp.Expr], word: str) -> list[Relation]:
    """Return the branches cast to common types. Raises SQL-1083 for unequal widths, SQL-1084 for types
    without a common one.
    """
    width = len(relations[0].fields)
    for relation, node in zip(relations, nodes, strict=True):
        if len(relation.fields) != width:
            message = f"the branches of {word} differ in width: {width} columns and {len(relation.fields)}"
            raise PenstockError(
                "SQL-1083",
                message,
                span=span_of(node),
                hint="name the same columns in every branch",
                sqlstate="42601",
            )
    kinds = []
    for i, first in enumerate(relations[0].fields):
        kind = common_type_of([relation.fields[i].type for relation in relations])
        if kind is None:
            listed = ", ".join(dict.fromkeys(str(relation.fields[i].type) for relation in relations))
            message = f'column "{first.name}" of {word} has no common type: {listed}'
            raise PenstockError(
                "SQL-1084", message, span=span_of(nodes[-1]), hint="CAST it in one branch", sqlstate="42804"
            )
        kinds.append(kind)
    names = relations[0].names
    alike = []
    for relation in relations:
        columns = [Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(relation.fields)]
        same = len(relation.plan.schema) == width and all(
            column.type == kind for column, kind in zip(columns, kinds, strict=True)
        )
        # INT UNION ALL BIGINT: the narrower branch is cast beneath the union.
        cast = tuple(coerced(column, kind) for column, kind in zip(columns, kinds, strict=True))
        alike.append(relation if same else Relation(Project(relation.plan, cast, names), relation.fields))
    return alike


def _union_fields(relations: Sequence[Relation], fields: Sequence[Field]) -> tuple[Field, ...]:
    """Return the output fields. A column has a role if every branch has the same one there."""
    merged = []
    for i, field in enumerate(fields):
        roles = {relation.fields[i].role for relation in relations}
        merged.append(
            Field(
                relations[0].fields[i].name,
                field.type,
                field.nullable,
                roles.pop() if len(roles) == 1 else None,
            )
        )
    return tuple(merged)


# counts on both sides


def _counted(left: LogicalPlan, right: LogicalPlan) -> LogicalPlan:
    """Return each distinct row once, with its count on the left and on the right."""
    width = len(left.schema)
    # A side column and two filtered counts: one aggregate, so each distinct row is in state once.
    both = Union((_tagged(left, TRUE), _tagged(right, FALSE)))
    tag = Column(BOOLEAN, False, index=width, name="side")
    # COUNT(*) FILTER (WHERE side), COUNT(*) FILTER (WHERE NOT side)
    other = Call(BOOLEAN, False, function="not", args=(tag,))
    calls = tuple(AggregateCall("count", (), BIGINT, False, filter=keep) for keep in (tag, other))
    return Aggregate(both, tuple(range(width)), calls, ("left_rows", "right_rows"))


def _tagged(plan: LogicalPlan, tag: Literal) -> LogicalPlan:
    columns = tuple(column(plan, i) for i in range(len(plan.schema)))
    return Project(plan, (*columns, tag), (*plan.schema.names, "side"))


def _smaller(mine: Column, theirs: Column) -> Expression:
    # LEAST(left_rows, right_rows)
    less = Call(BOOLEAN, False, function="less", args=(mine, theirs))
    return Case(BIGINT, False, whens=((less, mine),), default=theirs)


def _less(mine: Column, theirs: Column, distinct: bool) -> Expression:
    """Return the count of a row in EXCEPT. Without ALL, one row on the right removes all copies."""
    if not distinct:
        return Call(BIGINT, False, function="subtract", args=(mine, theirs))
    # CASE WHEN right_rows = 0 THEN left_rows ELSE 0 END
    absent = Call(BOOLEAN, False, function="equal", args=(theirs, _ZERO))
    return Case(BIGINT, False, whens=((absent, mine),), default=_ZERO)


def _repeat_counted(counted: LogicalPlan, width: int, count: Expression, distinct: bool) -> LogicalPlan:
    # rows that occur less than once are dropped
    plan = Filter(counted, Call(BOOLEAN, False, function="greater", args=(count, _ZERO)))
    columns, names = tuple(column(plan, i) for i in range(width)), tuple(plan.schema.names[:width])
    return (
        Project(plan, columns, names)
        if distinct
        # ALL: each row is replicated by its count.
        else Repeat(Project(plan, (*columns, count), (*names, "rows")))
    )
