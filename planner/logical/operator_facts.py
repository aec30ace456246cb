"""Operator facts: what an operator needs besides its node, derived by the planner from the plan below.

An operator runs a node whose inputs are only schemas. Facts about the plan below an input are therefore
derived at planning time and sent along. ``LogicalPlan.operator_facts`` makes them; a node that needs more
than ``OperatorFacts`` declares a class of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.expressions.nodes import SortKey


class DerivedFacts(Protocol):
    """The part of ``penstock.optimizer.properties.plan_properties.PlanFacts`` that nodes use. Nodes are
    ``Any`` here, because their files import this one.
    """

    def insert_only(self, node: Any) -> bool:
        """Return whether a node never retracts a row."""

    def emits_upserts(self, node: Any) -> bool:
        """Return whether a node leaves out the row before an update."""

    def upsert_key(self, node: Any) -> tuple[int, ...] | None:
        """Return the columns that identify a row of a node."""

    def is_settled_by_time(self, node: Any) -> bool:
        """Return whether an Over emits each row once, when the watermark has passed it."""

    def arrival_order(self, node: Any, order: Sequence[SortKey]) -> int:
        """Return how ties of an order over a node are broken: 1 by arrival, -1 by reverse arrival, 0 by all
        columns.
        """

    def bounded_ports(self, join: Any) -> tuple[int, ...]:
        """Return the side of a join that is loaded first."""

    def copied(self, join: Any) -> int | None:
        """Return the side of a join that every subtask receives."""

    def side_ttl_ms(self, join: Any, port: int) -> int:
        """Return the time to live of a row of a join's side, in milliseconds since its last use (0: for
        ever).
        """

    def ttl_ms(self, node: Any) -> int:
        """Return the time to live of a group or partition, in milliseconds since its last row
        (0: for ever).
        """


class SettingReader(Protocol):
    """Typed values by setting key."""

    def get(self, key: str) -> Any:
        """Return the typed value of a setting."""


@dataclass(frozen=True)
class OperatorFacts:
    """The facts of every operator. ``insert_only_inputs``: by port, whether the input never
    retracts a row.
    """

    insert_only_inputs: tuple[bool, ...] = ()

    @property
    def insert_only(self) -> bool:
        """Whether no input ever retracts a row."""
        return all(self.insert_only_inputs)


@dataclass(frozen=True)
class PartitionFacts(OperatorFacts):
    """The facts of an operator with state per group or partition.

    ``ttl_ms`` is the time to live of one, in milliseconds (0: for ever); ``ttl_ms`` of the node is only the
    hint. ``arrival``: how ties of the order are broken, see ``DerivedFacts.arrival_order``.
    """

    ttl_ms: int = 0
    arrival: int = 0


@dataclass(frozen=True)
class GroupFacts(PartitionFacts):
    """The facts of an aggregate. ``counts_rows``: each input row changes the result of its group, for
    some aggregate counts all rows and none is retracted.
    """

    counts_rows: bool = False
