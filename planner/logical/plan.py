"""The base of logical plan nodes: frozen nodes, a closed set.

A node derives its own properties from those of its inputs: EXPLAIN line, digest, keys, changelog mode,
partitioning, requirements. Recursion and caches are in ``penstock.optimizer.properties``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import ClassVar, Protocol

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.catalog.types import Array, Binary, DataType, Map, Row, String
from penstock.planner.expressions.expression_properties import is_movable, reads_only, without
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.distribution import (
    ANY,
    UNKNOWN,
    InputFacts,
    Partitioning,
    Requirement,
    SubtaskHint,
)
from penstock.planner.logical.node_digest import Digest, ExactTexts
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, SettingReader

Keys = frozenset[frozenset[int]]
"""Unique keys: sets of columns in which no two rows are equal. The empty set as a key: at most one row."""

NO_KEYS: Keys = frozenset()

Conditions = tuple[Expression, ...]
"""The ANDed parts of a condition, in the order of the text."""


Needed = frozenset[int]
"""The columns of a node that nodes above it read."""


class StateFacts(Protocol):
    """Facts that bound a node's state; ``PlanFacts`` of the optimizer implements them."""

    default_ttl_ms: int
    """The time to live of state without a hint, in milliseconds (0: for ever)."""

    def finite(self, node: LogicalPlan) -> bool:
        """Return whether a node's output is finite."""
        ...

    def bounded(self, node: LogicalPlan) -> bool:
        """Return whether a node reads bounded tables only."""
        ...

    def insert_only(self, node: LogicalPlan) -> bool:
        """Return whether a node never retracts a row."""
        ...

    def tells_time(self, node: LogicalPlan) -> bool:
        """Return whether a plan contains a watermark assigner."""
        ...


@dataclass(frozen=True)
class StateBound:
    """The state of a node in words: what it ``keeps`` between rows (None: nothing) and why it ``grows``
    without bound (None: it does not). ``ttl`` is the time to live of entries.
    """

    keeps: str | None
    grows: str | None = None
    ttl: str | None = None


class ColumnPruner(Protocol):
    """The recursion of the rule ``prune_columns``: a node prunes its inputs through it.

    ``keeps_ties``: columns that only break ties of an order stay. ``keeps_watermarks``: the event time that
    nobody reads stays.
    """

    @property
    def keeps_ties(self) -> bool: ...

    @property
    def keeps_watermarks(self) -> bool: ...

    def prune(self, node: LogicalPlan, needed: Needed) -> Pruned:
        """Return a node whose output has at least the needed columns, and their new positions."""
        ...

    def narrow(self, node: LogicalPlan, needed: Iterable[int]) -> Pruned:
        """Return a node whose output has exactly the needed columns, for rows in state or on an edge."""
        ...


@dataclass(frozen=True)
class LogicalPlan:
    """Base of plan nodes."""

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        """The input nodes, by port."""
        return ()

    @property
    def schema(self) -> Schema:
        """The output columns."""
        raise AssertionError(type(self))

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        """Return the same node over other inputs."""
        return self

    @property
    def only_ours(self) -> bool:
        """Whether no bounded backend supports this node. Our own runtime then runs it over
        bounded rows too.
        """
        return False

    @property
    def goes_by_time(self) -> bool:
        """Whether the node needs the event time of its input."""
        return False

    def transform(self, rewrite: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
        """Return the plan rebuilt bottom-up through ``rewrite``; this is the only recursion over plans."""
        inputs = self.inputs
        changed = tuple(node.transform(rewrite) for node in inputs)
        # an unchanged node stays the same object: properties are remembered by identity
        same = all(new is old for new, old in zip(changed, inputs, strict=True))
        return rewrite(self if same else self.with_inputs(changed))

    def walk(self) -> Iterator[LogicalPlan]:
        """Yield this node and all nodes below it, parents first."""
        yield self
        # a shared node is yielded once for each reader
        for node in self.inputs:
            yield from node.walk()

    def text(self) -> str:
        """Return the node's line of EXPLAIN, with columns by name."""
        raise AssertionError(type(self))

    def operator_name(self) -> str:
        """Return the short name of the node's operator."""
        return type(self).__name__.lower()

    @property
    def written_name(self) -> str:
        """The kind of the node in operator ids and in EXPLAIN's JSON. Checkpoints store operator ids, so this
        name stays when a class is renamed.
        """
        return type(self).__name__

    @property
    def subplans(self) -> tuple[LogicalPlan, ...]:
        """The plans that the rows are computed from: the inputs, or the subplan that a backend computes
        first.
        """
        return self.inputs

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        """Return the digest of the rows and of each column, from the digests of the subplans. Operator ids
        derive from it: what it hashes, and in which order, must never change.
        """
        raise AssertionError(type(self))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        """Return the unique keys of the output, from those of the subplans."""
        # a node that does not say otherwise may emit equal rows
        return NO_KEYS

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        """Return the key lists that the output is hash-partitioned by, from those of the inputs."""
        # unknown is always safe: exchange_placement then inserts an edge
        return UNKNOWN

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        """Return whether the node never retracts a row, from the same property of each input.
        ``loaded_first`` are the ports that are read to their end before the others.
        """
        # a node without state passes retractions on and makes none
        return all(inputs)

    def emits_upserts(self, inputs: tuple[bool, ...]) -> bool:
        """Return whether an update is one row that replaces that of its key, without the row before it, from
        the same property of each input.
        """
        # only projections, exchanges and a sink are above a node that the rule changelog_modes marks
        return any(inputs)

    def state_bound(self, facts: StateFacts) -> StateBound:
        """Return the state between rows and its bound, time to live aside.

        Finite inputs bound every state.
        """
        return StateBound(None)

    def state_ttl_ms(self, facts: StateFacts) -> int:
        """Return the time to live of an entry since its last row, in milliseconds. An entry is a group, a
        partition or the versions of a key. 0 means for ever, or until event time frees it.
        """
        return 0

    def _grows(self, facts: StateFacts, keeps: str, why: str) -> StateBound:
        """Return the bound of a state that grows with every row for the reason ``why``, unless all inputs are
        finite.
        """
        return StateBound(keeps, None if all(map(facts.finite, self.inputs)) else why)

    no_history: ClassVar[str | None] = "this operator"
    """The name of the node in errors of WITH HISTORY; None where a backend may compute its history, from
    which its state continues. A new node refuses history by default.
    """

    @property
    def is_row_wise(self) -> bool:
        """Whether each output row derives from one input row, or is a partial result."""
        return False

    @property
    def history_needs_time(self) -> bool:
        """Whether the node can only continue from a history whose watermark is known."""
        return False

    def refuse_updates(self, port: int) -> PenstockError | None:
        """Return the error for an input that retracts rows; None for a node that accepts retractions."""
        return None

    @property
    def unsteady_function(self) -> str | None:
        """The name of a function, besides those of expressions, that may return other rows for a retraction
        than for the insertion.
        """
        return None

    def update_cause(self) -> str:
        """Return in words why the node retracts rows although its inputs do not."""
        return f"{self.written_name} retracts rows"

    @property
    def clock_ports(self) -> tuple[int, ...]:
        """The inputs whose rows the node stores. Below them the current time is read once for each row."""
        return ()

    @property
    def pair_condition(self) -> Expression | None:
        """The residual condition on pairs of rows of a join, besides equal keys; None for other nodes."""
        return None

    @property
    def drops_late_rows(self) -> bool:
        """Whether rows behind the watermark are dropped; a retraction may then be dropped too."""
        return False

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        """Return the node without unneeded columns, and the new position of each needed column.

        By default a node reads and emits every column.
        """
        # children may still drop columns below them
        every = (pruner.narrow(child, range(len(child.schema))) for child in self.inputs)
        whole = self.with_inputs(tuple(child for child, _ in every))
        return whole, {i: i for i in range(len(whole.schema))}

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        """Return the node with ``rewrite`` applied to each of its expressions as a whole; the node itself if
        none changes. Analyses read the expressions through it, so it must visit every one.
        """
        return self

    keeps_written_expressions: ClassVar[bool] = False
    """Whether rules leave the expressions as the binder wrote them. The operator ids in older checkpoints
    hash them unsimplified, so a simpler spelling would lose the state.
    """

    def simplify_expressions(self, simplify: Callable[[Expression], Expression]) -> LogicalPlan:
        """Return the node with each expression replaced by an equal, simpler one; the node itself if it keeps
        its expressions as written.
        """
        return self if self.keeps_written_expressions else self.map_expressions(simplify)

    @property
    def reevaluating_ports(self) -> tuple[int, ...]:
        """The inputs whose retractions evaluate the node's expressions a second time. If one of them retracts
        rows, the expressions must be deterministic.
        """
        return tuple(range(len(self.inputs)))

    def _changed(self, **fields: object) -> LogicalPlan:
        """Return the node with new values of these fields; the node itself if they are equal."""
        # by value: a rewrite may return an equal expression
        same = all(getattr(self, name) == value for name, value in fields.items())
        return self if same else replace(self, **fields)  # type: ignore[arg-type]  # names of the node's fields

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        """Return for each input a map from output columns to input columns, for filters. The columns are
        constant over an input row or over a group, so a filter on them drops the same rows below.
        """
        return ({},) * len(self.inputs)

    def pass_filters(self, parts: Conditions) -> tuple[Conditions, tuple[Conditions, ...]]:
        """Split the ANDed parts of a filter above the node. Return the parts that stay above, and for each
        input the parts that move below, over its columns.

        By default a part moves below when it reads only filterable columns and never raises. It may meet rows
        there that it did not meet above.
        """
        # each part moves below one input at most: parts that have moved are taken out of stay
        stay, below = parts, []
        for columns in self.filterable_columns():
            passed = tuple(p for p in stay if p.columns() and reads_only(p, columns.keys()) and is_movable(p))
            stay = without(stay, passed)
            below.append(tuple(part.remap(dict(columns)) for part in passed))
        return stay, tuple(below)

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        """Return the distribution that each input must have. ``copied`` is the side of a join that every
        subtask receives.
        """
        return (ANY,) * len(self.inputs)

    @property
    def keeps_state(self) -> bool:
        """Whether checkpoints must include the node's operator."""
        return True

    def drops_late(self, facts: OperatorFacts) -> bool:
        """Return whether the node's operator drops late rows of its input; they then appear in
        ``<job>$late``.
        """
        return False

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> OperatorFacts:
        """Return the facts that the node's operator needs besides the node over the schemas of its inputs."""
        return OperatorFacts(tuple(map(derived.insert_only, self.inputs)))


@dataclass(frozen=True)
class ParallelNode(LogicalPlan):
    """Base of nodes whose operator may have its own number of subtasks, by a hint.

    No digest has the hint, for it changes no row: state is restored at another number of it.
    """

    subtasks: SubtaskHint | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class UnaryNode(LogicalPlan):
    """Base of nodes with one input; the schema is the input's by default."""

    input: LogicalPlan

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        # __post_init__ checks the node again over its new input
        return replace(self, input=inputs[0])


@dataclass(frozen=True)
class PassThroughNode(UnaryNode):
    """Base of nodes that pass rows on or drop them. The input's columns come first at their positions, and no
    row is emitted more often than it arrived.
    """

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        return inputs[0]

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return inputs[0]


Pruned = tuple[LogicalPlan, dict[int, int]]
"""A node without unneeded columns, and the new position of each needed column."""


def cheapest_column(schema: Schema) -> int:
    """Return the cheapest column to keep where only the number of rows matters. Texts and nested columns come
    last.
    """

    def weight(kind: DataType) -> int:
        # fixed width, variable width, nested
        return 2 if isinstance(kind, Array | Map | Row) else 1 if isinstance(kind, String | Binary) else 0

    return min(range(len(schema)), key=lambda i: (weight(schema[i].type), i))
