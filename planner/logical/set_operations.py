"""UNION ALL in the logical plan, and Repeat, which ends INTERSECT ALL and EXCEPT ALL."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.catalog.types import BIGINT
from penstock.planner.expressions.expression_properties import is_movable, without
from penstock.planner.logical.distribution import (
    Partitioning,
)
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.plan import ColumnPruner, Conditions, LogicalPlan, Needed, Pruned, UnaryNode
from penstock.planner.logical.windows import (
    demand,
)


@dataclass(frozen=True)
class Union(LogicalPlan):
    """UNION ALL of inputs of one layout."""

    no_history = None

    branches: tuple[LogicalPlan, ...]

    def __post_init__(self) -> None:
        types = [[field.type for field in branch.schema] for branch in self.branches]
        demand(len(types) >= 2 and all(kinds == types[0] for kinds in types), "a union of unlike inputs")

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return self.branches

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, branches=inputs)

    @cached_property
    def schema(self) -> Schema:
        fields = []
        for position, first in enumerate(self.branches[0].schema):
            others = [branch.schema[position] for branch in self.branches]
            # a time attribute of a union is one in every branch
            role = first.role if all(other.role is first.role for other in others) else None
            fields.append(replace(first, nullable=any(other.nullable for other in others), role=role))
        return Schema(tuple(fields))

    def text(self) -> str:
        return f"Union {len(self.branches)} inputs"

    @property
    def keeps_state(self) -> bool:
        return False

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        # columns too: two projections of one input have the same rows
        branches = (part for one in inputs for part in (one.rows, *texts.ties(one.columns)))
        rows = hash_parts("union", *branches)
        columns = [one.columns for one in inputs]
        parts = (texts.union_column(i, columns) for i in range(len(self.schema)))
        return Digest(rows, tuple(hash_parts("column", rows, *one) for one in parts))

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        # rows of a key share a subtask only if every branch is partitioned alike
        return frozenset.intersection(*inputs)

    def pass_filters(self, parts: Conditions) -> tuple[Conditions, tuple[Conditions, ...]]:
        # into every branch at once; columns are the same by position
        passed = tuple(part for part in parts if is_movable(part))
        return without(parts, passed), (passed,) * len(self.branches)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        # narrow: all branches must end up with one layout
        pruned = [pruner.narrow(branch, needed) for branch in self.branches]
        return Union(tuple(branch for branch, _ in pruned)), pruned[0][1]


@dataclass(frozen=True)
class Repeat(UnaryNode):
    """Replicate each row as often as its last column says, a BIGINT above zero; that column is dropped."""

    no_history = None

    def __post_init__(self) -> None:
        demand(self.input.schema.fields[-1].type == BIGINT, "a repetition by what is no count")

    @property
    def keeps_state(self) -> bool:
        return False

    @cached_property
    def schema(self) -> Schema:
        return Schema(self.input.schema.fields[:-1])

    def text(self) -> str:
        return f"Repeat by {self.input.schema.names[-1]}"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        # the count decides how often a row occurs, so it is part of the rows
        *columns, count = inputs[0].columns
        return Digest(hash_parts("repeat", inputs[0].rows, count), tuple(columns))
