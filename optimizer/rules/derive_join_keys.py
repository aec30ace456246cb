"""Equalities between the two sides of a join become its keys: ``FROM a, b WHERE a.x = b.y`` is an
equi-join.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.planner.expressions.expression_properties import is_movable
from penstock.planner.expressions.nodes import Call, Column, Expression, conjunction, conjuncts
from penstock.planner.logical.joins.join import BinaryJoin, JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project, column_of, select_columns


def join_keys_from_filter(plan: LogicalPlan) -> LogicalPlan:
    """Move equalities of equal types from a filter over an inner join, and from any join's condition, into
    the join's keys.
    """
    return plan.transform(_rewrite)


def _rewrite(node: LogicalPlan) -> LogicalPlan:
    match node:
        # .. JOIN .. ON a.x = b.y AND a.z < b.z: the equality is a key, the rest stays the residual.
        case BinaryJoin(residual=residual) if residual is not None:
            stay, pairs = _split(node, conjuncts(residual))
            return (
                node
                if not pairs
                else _with_keys(replace(node, residual=conjunction(stay) if stay else None), pairs)
            )
        # FROM a, b WHERE a.x = b.y. Above an outer join a filter also sees its padded rows, so only INNER.
        case Filter(input=BinaryJoin(kind=JoinKind.INNER) as join, predicate=predicate):
            stay, pairs = _split(join, conjuncts(predicate))
            if not pairs:
                return node
            keyed = _with_keys(join, pairs)
            return Filter(keyed, conjunction(stay)) if stay else keyed
    return node


Pairs = list[tuple[Expression, Expression]]


def _split(join: BinaryJoin, parts: tuple[Expression, ...]) -> tuple[tuple[Expression, ...], Pairs]:
    """Return the parts that stay, and as (left, right) operand pairs over each side's own columns those
    that become keys.
    """
    width = len(join.left.schema)
    stay: list[Expression] = []
    pairs: Pairs = []
    for part in parts:
        sides = _sides(part, width)
        if sides is None:
            stay.append(part)
        else:
            # Columns of the right side are counted from the width of the left one in the condition.
            pairs.append((sides[0], sides[1].remap({i: i - width for i in sides[1].columns()})))
    return tuple(stay), pairs


def _sides(part: Expression, width: int) -> tuple[Expression, Expression] | None:
    # The two keys of a pair have one type; an equality of other types stays a condition.
    if not isinstance(part, Call) or part.function != "equal" or part.args[0].type != part.args[1].type:
        return None
    # a.x = b.y and b.y = a.x.
    for left, right in (part.args, part.args[::-1]):
        # Each operand reads one side only, and a constant is no key.
        one_sided = left.columns() and right.columns() and max(left.columns()) < width <= min(right.columns())
        if one_sided and is_movable(left) and is_movable(right):
            return left, right
    return None


def _with_keys(join: BinaryJoin, pairs: Pairs) -> LogicalPlan:
    """Return the join with further keys; operands that are no plain columns are computed below it and
    dropped above it.
    """
    old_left, old_right = len(join.left.schema), len(join.right.schema)
    left, left_keys = _key_columns(join.left, [pair[0] for pair in pairs])
    right, right_keys = _key_columns(join.right, [pair[1] for pair in pairs])
    shift = len(left.schema)
    # Computed keys widen the left side: columns of the right side move by as many.
    positions = {i: i for i in range(old_left)} | {old_left + i: shift + i for i in range(old_right)}
    keyed = replace(
        join,
        left=left,
        right=right,
        left_keys=join.left_keys + left_keys,
        right_keys=join.right_keys + right_keys,
        residual=None if join.residual is None else join.residual.remap(positions),
    )
    width = len(join.schema)
    return (
        keyed if len(keyed.schema) == width else select_columns(keyed, [positions[i] for i in range(width)])
    )


def _key_columns(side: LogicalPlan, operands: list[Expression]) -> tuple[LogicalPlan, tuple[int, ...]]:
    keys: list[int] = []
    computed: list[Expression] = []
    for operand in operands:
        # A plain column is a key where it is; another expression is appended to the side.
        if isinstance(operand, Column):
            keys.append(operand.index)
        else:
            keys.append(len(side.schema) + len(computed))
            computed.append(operand)
    if not computed:
        return side, tuple(keys)
    columns = tuple(column_of(side, i) for i in range(len(side.schema)))
    names = (*side.schema.names, *(f"key_{i}" for i in range(len(computed))))
    return Project(side, columns + tuple(computed), names), tuple(keys)
