"""WITH RECURSIVE in the logical plan: rows of an anchor, and the rows that a term derives from rows, until
no new ones come.

The recursive term is a plan of its own below the node: its leaves stand for the rows of the iteration before
and for the other inputs of the node. Rules see the inputs; the term is rewritten by rules that say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.distribution import SINGLE, InputFacts, Requirement
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, SettingReader
from penstock.planner.logical.plan import (
    NO_KEYS,
    ColumnPruner,
    Keys,
    LogicalPlan,
    Needed,
    Pruned,
    StateBound,
    StateFacts,
)
from penstock.planner.logical.projection import Filter, Project, column_of, select_columns
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.unnest import Unnest
from penstock.planner.logical.windows import demand


@dataclass(frozen=True)
class WorkTable(LogicalPlan):
    """The leaf of a recursive term that stands for the rows of the iteration before."""

    columns: Schema

    @property
    def schema(self) -> Schema:
        return self.columns

    def text(self) -> str:
        return "WorkTable"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        rows = hash_parts("work table")
        kinds = (hash_parts("column", rows, str(i), str(f.type)) for i, f in enumerate(self.columns))
        return Digest(rows, tuple(kinds))


@dataclass(frozen=True)
class TermInput(LogicalPlan):
    """The leaf of a recursive term that stands for input ``port`` of its node, 1 for the first behind the
    anchor. ``kept`` are the columns of that input.
    """

    port: int
    columns: Schema
    kept: tuple[int, ...]

    @property
    def schema(self) -> Schema:
        return self.columns

    def text(self) -> str:
        return f"input {self.port}"

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        columns = sorted(needed)
        kept = tuple(self.kept[i] for i in columns)
        return TermInput(self.port, self.columns.select(tuple(columns)), kept), {
            old: new for new, old in enumerate(columns)
        }

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        rows = hash_parts("term input", str(self.port))
        return Digest(rows, tuple(hash_parts("column", rows, str(i)) for i in self.kept))


@dataclass(frozen=True)
class RecursiveQuery(LogicalPlan):
    """The rows of ``anchor``, and those that ``term`` derives from them, from these again, and so on.

    ``others`` are the inputs of the term, by port from 1 on. ``distinct``: UNION, each row once; else UNION
    ALL, each derivation is a row. More than ``max_iterations`` end the job with RUN-2025.

    Each row of the work table contributes to the term's rows on its own: see ``is_linear``.
    """

    anchor: LogicalPlan
    others: tuple[LogicalPlan, ...]
    term: LogicalPlan
    distinct: bool
    max_iterations: int

    def __post_init__(self) -> None:
        kinds = [field.type for field in self.anchor.schema]
        demand(kinds == [field.type for field in self.term.schema], "a recursive term of other columns")
        demand(is_linear(self.term), "a recursive term that is not linear")

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.anchor, *self.others)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, anchor=inputs[0], others=inputs[1:])

    def map_term(self, rewrite: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
        """Return the node with ``rewrite`` applied to its term as a whole."""
        term = rewrite(self.term)
        return self if term is self.term else replace(self, term=term)

    @cached_property
    def schema(self) -> Schema:
        # a time of the anchor is none of the result: derived rows come later than it
        return Schema(tuple(Field(f.name, f.type) for f in self.anchor.schema))

    @property
    def written_name(self) -> str:
        return "RecursiveQuery"

    def text(self) -> str:
        steps = " <- ".join(_step_texts(self.term))
        word = "UNION" if self.distinct else "UNION ALL"
        ends = "no new row" if self.distinct else "no row"
        return (
            f"RecursiveQuery {word}, until an iteration has {ends}, at most {self.max_iterations:,}: {steps}"
        )

    def operator_name(self) -> str:
        return "recursive query"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        def digest_of(node: LogicalPlan) -> Digest:
            return node.digest(tuple(map(digest_of, node.inputs)), texts)

        term = digest_of(self.term)
        # with the types of all inputs: stored rows are not read into wider ones
        kinds = (str(field.type) for node in self.inputs for field in node.schema)
        below = (part for one in inputs for part in (one.rows, *one.columns))
        rows = hash_parts("recursive", str(self.distinct), term.rows, *term.columns, *below, "", *kinds)
        return Digest(rows, tuple(hash_parts("column", rows, str(i)) for i in range(len(self.schema))))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        return frozenset({frozenset(range(len(self.schema)))}) if self.distinct else NO_KEYS

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return inputs[0] and inserts_only(self.term, (True, *inputs[1:]))

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        # a row may lead to any other, whatever its columns
        return (SINGLE,) * len(inputs)

    def state_bound(self, facts: StateFacts) -> StateBound:
        keeps = "the rows and what leads from one to the next"
        return self._grows(
            facts, keeps, "rows of a recursive query are kept for ever, as any may lead to more"
        )

    def update_cause(self) -> str:
        return "the recursive term retracts a row without a match when its match arrives"

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self.map_term(lambda term: term.transform(lambda node: node.map_expressions(rewrite)))

    @property
    def clock_ports(self) -> tuple[int, ...]:
        return tuple(range(len(self.inputs)))

    @property
    def only_ours(self) -> bool:
        return any(node.only_ours for node in self.term.walk())

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> OperatorFacts:
        return OperatorFacts(tuple(map(derived.insert_only, self.inputs)))

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        """Every column of the rows stays: it may tell two rows apart, or lead to others. Of the other inputs
        only what the term reads is kept.
        """
        every = range(len(self.schema))
        anchor, _ = pruner.narrow(self.anchor, every)
        term, _ = pruner.narrow(self.term, every)
        read = {leaf.port: leaf.kept for leaf in term.walk() if isinstance(leaf, TermInput)}
        others = tuple(pruner.narrow(node, read[port])[0] for port, node in enumerate(self.others, 1))

        def renumbered(node: LogicalPlan) -> LogicalPlan:
            return replace(node, kept=tuple(range(len(node.kept)))) if isinstance(node, TermInput) else node

        pruned = replace(self, anchor=anchor, others=others, term=term.transform(renumbered))
        return pruned, {i: i for i in every}


def split_term(plan: LogicalPlan) -> tuple[LogicalPlan, tuple[LogicalPlan, ...]]:
    """Return a bound term with each largest subplan that reads no work table replaced by a leaf, and these
    subplans, by port.
    """
    others: list[LogicalPlan] = []

    def split(node: LogicalPlan) -> LogicalPlan:
        if isinstance(node, WorkTable):
            return node
        if not reads_work_table(node):
            others.append(node)
            plain = Schema(tuple(replace(field, role=None) for field in node.schema))
            return TermInput(len(others), plain, tuple(range(len(plain))))
        return node.with_inputs(tuple(map(split, node.inputs)))

    return split(plan), tuple(others)


def reads_work_table(plan: LogicalPlan) -> bool:
    """Return whether a plan reads the rows of the iteration before."""
    return any(isinstance(node, WorkTable) for node in plan.walk())


def is_linear(term: LogicalPlan) -> bool:
    """Return whether the rows that a term has of two work tables together are those of each, added up."""
    return first_not_linear(term) is None


def first_not_linear(term: LogicalPlan) -> LogicalPlan | None:
    """Return the first node for which rows of the work table do not contribute one by one; None if there is
    none.
    """
    return next((node for node in _path(term) if not _is_step(node)), None)


# the sides of a join whose rows contribute one by one
_LINEAR_SIDES = {
    JoinKind.INNER: (True, True),
    JoinKind.LEFT: (True, False),
    JoinKind.RIGHT: (False, True),
    JoinKind.FULL: (False, False),
    JoinKind.SEMI: (True, False),
    JoinKind.ANTI: (True, False),
}


def _is_step(node: LogicalPlan) -> bool:
    if isinstance(node, Join):
        sides = tuple(map(reads_work_table, node.inputs))
        # both sides: a pair comes of two rows
        return sides != (True, True) and _LINEAR_SIDES[node.kind][sides.index(True)]
    # a branch without the work table would add its rows again in each iteration
    if isinstance(node, Union):
        return all(map(reads_work_table, node.branches))
    return isinstance(node, WorkTable | Filter | Project | Unnest)


def _path(term: LogicalPlan) -> Iterator[LogicalPlan]:
    """Yield the nodes that rows of the work table pass, the last first."""
    if reads_work_table(term):
        yield term
        for node in term.inputs:
            yield from _path(node)


def with_iteration(term: LogicalPlan) -> LogicalPlan:
    """Return a term whose work table has one more last column, a BIGINT, and that passes it on as its last
    column: the iteration that a row comes from.
    """
    return with_last_column(term, Field("iteration", BIGINT, False))


def with_last_column(term: LogicalPlan, field: Field) -> LogicalPlan:
    """Return a term whose work table has one more last column, and that passes it on as its last column."""
    if isinstance(term, WorkTable):
        return WorkTable(term.columns.concat(Schema((field,))))
    if isinstance(term, Filter):
        return replace(term, input=with_last_column(term.input, field))
    if isinstance(term, Project):
        below = with_last_column(term.input, field)
        last = column_of(below, len(below.schema) - 1)
        return Project(below, (*term.expressions, last), (*term.names, field.name))
    if isinstance(term, Union):
        return Union(tuple(with_last_column(branch, field) for branch in term.branches))
    if isinstance(term, Unnest):
        return _unnest_with_last_column(term, field)
    assert isinstance(term, Join)
    return _join_with_last_column(term, field)


def _unnest_with_last_column(node: Unnest, field: Field) -> LogicalPlan:
    below, width, kept = with_last_column(node.input, field), len(node.input.schema), len(node.keep)
    # a condition is over the input, then the function's columns, which move by the new one
    condition = node.condition and node.condition.remap(_moved(node.condition, width))
    longer = replace(node, input=below, keep=(*node.keep, width), condition=condition)
    order = [i for i in range(len(longer.schema)) if i != kept]
    return select_columns(longer, [*order, kept])


def _join_with_last_column(node: Join, field: Field) -> LogicalPlan:
    if reads_work_table(node.right):
        return replace(node, right=with_last_column(node.right, field))
    width = len(node.left.schema)
    residual = node.residual and node.residual.remap(_moved(node.residual, width))
    longer = replace(node, left=with_last_column(node.left, field), residual=residual)
    order = [i for i in range(len(longer.schema)) if i != width]
    return select_columns(longer, [*order, width])


def _moved(expression: Expression, width: int) -> dict[int, int]:
    """Return the positions of an expression's columns when there is one more behind the first ``width``."""
    return {i: i if i < width else i + 1 for i in expression.columns()}


def inserts_only(term: LogicalPlan, inputs: tuple[bool, ...]) -> bool:
    """Return whether a term never retracts, where ``inputs`` says so of the work table and of each port."""
    if isinstance(term, WorkTable):
        return inputs[0]
    if isinstance(term, TermInput):
        return inputs[term.port]
    return term.insert_only(tuple(inserts_only(node, inputs) for node in term.inputs))


def _step_texts(term: LogicalPlan) -> Iterator[str]:
    """Yield the nodes of a term as EXPLAIN shows them, the last first."""
    if not isinstance(term, TermInput):
        yield term.text()
    for node in term.inputs:
        yield from _step_texts(node)


_REFUSED = {
    "Aggregate": "group or count its own rows, or make them DISTINCT",
    "Over": "compute OVER of its own rows",
    "PartitionTop": "rank its own rows",
    "TopN": "order and limit its own rows",
    "Limit": "limit its own rows",
    "Join": "join its own rows with each other, or pad or exclude other rows by them",
}


def refuse_not_linear(node: LogicalPlan) -> PenstockError:
    """Return the error SQL-1752 for a term with this node."""
    name = type(node).__name__
    message = f"a recursive term cannot {_REFUSED.get(name, f'have {name} over its own rows')}"
    hint = (
        "read the table itself once, by filters, inner joins and table functions; group, rank or limit its "
        "rows in the query below WITH"
    )
    return PenstockError("SQL-1752", message, hint=hint, sqlstate="42P19")
