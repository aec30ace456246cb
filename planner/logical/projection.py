"""Filter and Project in the logical plan: expressions over single rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import Boolean, Null, is_integer
from penstock.planner.expressions.expression_properties import (
    is_deterministic,
    reads_clock,
    select_in_turn,
    without,
)
from penstock.planner.expressions.nodes import (
    Cast,
    Column,
    Expression,
    columns_read,
    expression_role,
    inline,
)
from penstock.planner.logical.distribution import (
    Partitioning,
    move_keys,
)
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.node_text import expression_text, labelled
from penstock.planner.logical.plan import (
    ColumnPruner,
    Conditions,
    Keys,
    LogicalPlan,
    Needed,
    PassThroughNode,
    Pruned,
    UnaryNode,
)
from penstock.planner.logical.windows import (
    demand,
)


def _reads_inside(expression: Expression, schema: Schema) -> bool:
    return all(0 <= index < len(schema) for index in expression.columns())


@dataclass(frozen=True)
class Filter(PassThroughNode):
    """Keep the rows whose predicate is TRUE."""

    no_history = None

    predicate: Expression

    def __post_init__(self) -> None:
        # WHERE NULL has the type NULL
        demand(isinstance(self.predicate.type, Boolean | Null), "a filter's predicate is not BOOLEAN")
        demand(_reads_inside(self.predicate, self.input.schema), "a filter reads outside its input")

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema

    def text(self) -> str:
        return f"Filter {expression_text(self.predicate, self.input.schema)}"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        below = inputs[0]
        # a filter changes which rows there are, not what a column is
        predicate = texts.expression(self.predicate, below.columns)
        return Digest(hash_parts("filter", below.rows, predicate), below.columns)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self._changed(predicate=rewrite(self.predicate))

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        # a filter has the columns of its input; a projection above drops those that only it reads
        child, positions = pruner.prune(self.input, needed | self.predicate.columns())
        return Filter(child, self.predicate.remap(positions)), positions

    @property
    def is_row_wise(self) -> bool:
        return True


@dataclass(frozen=True)
class Project(UnaryNode):
    """Compute one column per expression. A bare Column keeps its role (time attributes survive renaming);
    a bare PROCTIME() is processing time.
    """

    no_history = None

    expressions: tuple[Expression, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        demand(len(self.expressions) == len(self.names), "a projection with unequal names and expressions")
        demand(
            all(_reads_inside(e, self.input.schema) for e in self.expressions),
            "a projection reads outside its input",
        )

    @cached_property
    def schema(self) -> Schema:
        fields = []
        for name, expression in zip(self.names, self.expressions, strict=True):
            fields.append(
                Field(
                    name,
                    expression.type,
                    expression.nullable,
                    expression_role(expression, self.input.schema.fields),
                )
            )
        return Schema(tuple(fields))

    def text(self) -> str:
        items = zip(self.expressions, self.names, strict=True)
        return f"Project {', '.join(labelled(expression_text(e, self.input.schema), n) for e, n in items)}"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        below = inputs[0]
        # a projection changes no row: the same rows under other columns
        return Digest(below.rows, tuple(texts.column(e, below.columns) for e in self.expressions))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        positions: dict[int, int] = {}
        for index, expression in enumerate(self.expressions):
            # CAST of an integer to another width keeps different values different, so a key stays a key
            whole = (
                isinstance(expression, Cast)
                and not expression.safe
                and is_integer(expression.type)
                and is_integer(expression.arg.type)
            )
            source = expression.children[0] if whole else expression  # unlike whole numbers stay unlike
            if isinstance(source, Column):
                # SELECT k, k AS k2: the first copy stands for the key
                positions.setdefault(source.index, index)
        return frozenset(frozenset(positions[i] for i in key) for key in inputs[0] if key <= positions.keys())

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        positions: dict[int, int] = {}
        for index, expression in enumerate(self.expressions):
            # a computed column says nothing about which subtask a row is in
            if isinstance(expression, Column):
                positions.setdefault(expression.index, index)
        return move_keys(inputs[0], positions)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self._changed(expressions=tuple(map(rewrite, self.expressions)))

    def pass_filters(self, parts: Conditions) -> tuple[Conditions, tuple[Conditions, ...]]:
        # WHERE over RAND() AS r must stay above: below, the call would be computed a second time
        steady = {i for i, expression in enumerate(self.expressions) if is_deterministic(expression)}
        passed = select_in_turn(parts, steady)
        return without(parts, passed), (tuple(inline(part, self.expressions) for part in passed),)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        """Where no column is needed, one stays so that rows stay: a bare column if there is one."""
        # SELECT COUNT(*) FROM (SELECT a, b ..)
        keep = sorted(needed)
        if not keep and self.expressions:
            plain = [i for i, e in enumerate(self.expressions) if isinstance(e, Column)]
            keep = [plain[0] if plain else 0]
        child, positions = pruner.prune(self.input, columns_read(self.expressions[i] for i in keep))
        expressions = tuple(self.expressions[i].remap(positions) for i in keep)
        pruned = Project(child, expressions, tuple(self.names[i] for i in keep))
        return pruned, {old: new for new, old in enumerate(keep)}

    @property
    def is_row_wise(self) -> bool:
        return True

    def refuse_updates(self, port: int) -> PenstockError | None:
        # SELECT CURRENT_TIMESTAMP of updates: the retraction would carry another time
        if not any(map(reads_clock, self.expressions)):
            return None
        return clock_over_updates(
            "the current time cannot be selected beside rows that are retracted: the retraction "
            "would have a later time"
        )


def column_of(plan: LogicalPlan, index: int) -> Column:
    """Return a reference to a column of a node's output."""
    field = plan.schema[index]
    return Column(field.type, field.nullable, index=index, name=field.name)


def select_columns(
    plan: LogicalPlan, indexes: Sequence[int], names: Sequence[str] | None = None
) -> LogicalPlan:
    """Return the named positions of a node in that order; the node itself when that changes nothing."""
    schema = plan.schema
    wanted = tuple(names) if names is not None else tuple(schema[i].name for i in indexes)
    # an identity projection is none
    if list(indexes) == list(range(len(schema))) and list(wanted) == schema.names:
        return plan
    return Project(plan, tuple(column_of(plan, i) for i in indexes), wanted)


def clock_over_updates(message: str) -> PenstockError:
    """Return the error SQL-1315 of a plan that reads the clock for rows that are retracted."""
    hint = (
        "read the clock before the rows are grouped or joined, or window the rows so that each is "
        "emitted once"
    )
    return PenstockError("SQL-1315", message, hint=hint, sqlstate="0A000")
