"""The logical plan: a closed set of frozen nodes.

A node answers for itself alone, given the answers of its inputs: its line of EXPLAIN, its digest, its keys,
changelog mode, partitioning and requirements. Recursion and caches are in ``penstock.optimizer.properties``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
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
)
from penstock.planner.logical.node_digest import Digest, ExactTexts
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, SettingReader

Keys = frozenset[frozenset[int]]
"""Sets of columns no two rows of a node agree on; the empty set: there is at most one row."""

NO_KEYS: Keys = frozenset()

Conditions = tuple[Expression, ...]
"""The ANDed parts of a condition, in the order they are written."""


Needed = frozenset[int]
"""The columns of a node that something above it reads."""


class StateFacts(Protocol):
    """Facts that bound a node's state; implemented by ``PlanFacts`` of the optimizer."""

    default_ttl_ms: int
    """How long state lives untouched where no hint says otherwise, milliseconds; 0: for ever."""

    def finite(self, node: LogicalPlan) -> bool:
        """Return whether a node's rows end by themselves."""
        ...

    def bounded(self, node: LogicalPlan) -> bool:
        """Return whether a node reads bounded tables only."""
        ...

    def insert_only(self, node: LogicalPlan) -> bool:
        """Return whether a node never retracts a row."""
        ...

    def tells_time(self, node: LogicalPlan) -> bool:
        """Return whether a watermark is assigned in a plan."""
        ...


@dataclass(frozen=True)
class StateBound:
    """What a node keeps (None: nothing between rows), why it grows as long as rows come (None: it does
    not), and how long entries live untouched.
    """

    keeps: str | None
    grows: str | None = None
    ttl: str | None = None


class ColumnPruner(Protocol):
    """The recursion of the rule ``prune_columns``, as a node asks it to prune its inputs."""

    def prune(self, node: LogicalPlan, needed: Needed) -> Pruned:
        """Return a node that gives at least the needed columns, and where each of these is."""
        ...

    def narrow(self, node: LogicalPlan, needed: Iterable[int]) -> Pruned:
        """Return a node that gives exactly the needed columns, for rows that an edge or state holds."""
        ...


@dataclass(frozen=True)
class LogicalPlan:
    """Base of plan nodes."""

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        """The nodes rows come from, by port."""
        return ()

    @property
    def schema(self) -> Schema:
        """The columns of the rows this node gives."""
        raise AssertionError(type(self))

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        """Return the same node over other inputs."""
        return self

    @property
    def only_ours(self) -> bool:
        """Whether no bounded backend has a word for this node, so that our own runtime runs it over
        bounded rows too.
        """
        return False

    @property
    def goes_by_time(self) -> bool:
        """Whether the node needs the event time of its input."""
        return False

    def transform(self, rewrite: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
        """Return the plan rebuilt bottom-up through ``rewrite``; the one recursion over plans."""
        inputs = self.inputs
        changed = tuple(node.transform(rewrite) for node in inputs)
        same = all(new is old for new, old in zip(changed, inputs, strict=True))
        return rewrite(self if same else self.with_inputs(changed))

    def walk(self) -> Iterator[LogicalPlan]:
        """Yield this node and all nodes below it, parents first."""
        yield self
        for node in self.inputs:
            yield from node.walk()

    def text(self) -> str:
        """Return one line saying what the node does, columns by name: EXPLAIN's line."""
        raise AssertionError(type(self))

    def operator_name(self) -> str:
        """Return the short name of the operator that runs the node."""
        return type(self).__name__.lower()

    @property
    def written_name(self) -> str:
        """The name of the node's kind in operator ids and in EXPLAIN's JSON. Checkpoints hold what is made of
        it, so it stays when a class is renamed.
        """
        return type(self).__name__

    @property
    def subplans(self) -> tuple[LogicalPlan, ...]:
        """The plans its rows are computed from: its inputs, or what a backend computes first."""
        return self.inputs

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        """Return what the rows and each column mean, given what those of the subplans do. Operator ids are
        made of it: what it hashes, and in which order, never changes.
        """
        raise AssertionError(type(self))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        """Return what identifies the rows, given what identifies those of the subplans."""
        return NO_KEYS

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        """Return by whose hash the rows lie over their subtasks, given how those of the inputs lie."""
        return UNKNOWN

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        """Return whether rows are never retracted, given the same of each input. ``loaded_first``: the ports
        that are read to their end before the others.
        """
        return all(inputs)

    def state_bound(self, facts: StateFacts) -> StateBound:
        """Return what the node keeps between rows and what bounds it, without its time to live.

        Inputs that end bound everything.
        """
        return StateBound(None)

    def state_ttl_ms(self, facts: StateFacts) -> int:
        """Return how long a group, a partition or the versions of a key are kept untouched, milliseconds; 0:
        for ever, or as long as time says.
        """
        return 0

    def _grows(self, facts: StateFacts, keeps: str, why: str) -> StateBound:
        """Return the bound of a state that grows as long as rows come, for a reason."""
        return StateBound(keeps, None if all(map(facts.finite, self.inputs)) else why)

    no_history: ClassVar[str | None] = "this operator"
    """What statements call a node whose history no backend computes; None where a backend may compute it, so
    that the node's state goes on from there. A new node refuses until it says otherwise.
    """

    @property
    def is_row_wise(self) -> bool:
        """Whether each row the node gives is made of one row of its input, or is a partial result."""
        return False

    @property
    def history_needs_time(self) -> bool:
        """Whether the node goes on from a history only if that tells how far event time has come."""
        return False

    def refuse_updates(self, port: int) -> PenstockError | None:
        """Return the error for an input whose rows are retracted, None for a node that takes retractions."""
        return None

    @property
    def unsteady_function(self) -> str | None:
        """The name of a function, beside those of expressions, that may give other rows for a retraction."""
        return None

    def update_cause(self) -> str:
        """Return in words why the node retracts rows though its inputs do not."""
        return f"{self.written_name} takes rows back"

    @property
    def clock_ports(self) -> tuple[int, ...]:
        """The inputs whose rows the node remembers, so that the current time is read of each row beneath."""
        return ()

    @property
    def pair_condition(self) -> Expression | None:
        """What pairs of rows of a join must satisfy beside equal keys; None for a node that is no join."""
        return None

    @property
    def drops_late_rows(self) -> bool:
        """Whether rows behind the watermark are dropped, so that a retraction may be, too."""
        return False

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        """Return the node without columns that nobody needs, and where each needed column is now.

        By default a node reads and gives every column.
        """
        every = (pruner.narrow(child, range(len(child.schema))) for child in self.inputs)
        whole = self.with_inputs(tuple(child for child, _ in every))
        return whole, {i: i for i in range(len(whole.schema))}

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        """Return the node with each of its expressions replaced by what ``rewrite`` makes of the whole
        expression; the node itself if none changes.
        """
        return self

    def _changed(self, **fields: object) -> LogicalPlan:
        """Return the node with other values in these fields; the node itself if they are equal."""
        same = all(getattr(self, name) == value for name, value in fields.items())
        return self if same else replace(self, **fields)  # type: ignore[arg-type]  # names of the node's fields

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        """Return for each input the output columns that whole rows of it, or whole groups, share, and their
        positions in the input. A filter that reads only these drops the same rows below the node.
        """
        return ({},) * len(self.inputs)

    def pass_filters(self, parts: Conditions) -> tuple[Conditions, tuple[Conditions, ...]]:
        """Split the ANDed parts of a filter above the node: return those that must stay above it, and for
        each input those (over its columns) that may be tested below.

        By default a part goes below that reads only filterable columns, if it never raises: it meets rows
        there that it did not meet above.
        """
        stay, below = parts, []
        for columns in self.filterable_columns():
            passed = tuple(p for p in stay if p.columns() and reads_only(p, columns.keys()) and is_movable(p))
            stay = without(stay, passed)
            below.append(tuple(part.remap(dict(columns)) for part in passed))
        return stay, tuple(below)

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        """Return how the rows of each input must lie. ``copied``: the side of a join all subtasks get."""
        return (ANY,) * len(self.inputs)

    @property
    def keeps_state(self) -> bool:
        """Whether a checkpoint must know the operator of the node."""
        return True

    def drops_late(self, facts: OperatorFacts) -> bool:
        """Return whether the operator of the node drops late rows of its input, which then are rows of
        ``<job>$late``.
        """
        return False

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> OperatorFacts:
        """Return what the operator of the node must know beyond the node over the schemas of its inputs."""
        return OperatorFacts(tuple(map(derived.insert_only, self.inputs)))


@dataclass(frozen=True)
class UnaryNode(LogicalPlan):
    """Base of nodes with one input; the schema is the input's unless the node says otherwise."""

    input: LogicalPlan

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, input=inputs[0])


@dataclass(frozen=True)
class PassThroughNode(UnaryNode):
    """Base of nodes that hand rows on, or drop them: columns at their places come first, and no row comes
    more often than it came.
    """

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        return inputs[0]

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return inputs[0]


Pruned = tuple[LogicalPlan, dict[int, int]]
"""A node without columns that nobody needs, and where each needed column is now."""


def cheapest_column(schema: Schema) -> int:
    """Return the column to keep where only the number of rows matters: nested ones and texts come last."""

    def weight(kind: DataType) -> int:
        return 2 if isinstance(kind, Array | Map | Row) else 1 if isinstance(kind, String | Binary) else 0

    return min(range(len(schema)), key=lambda i: (weight(schema[i].type), i))
