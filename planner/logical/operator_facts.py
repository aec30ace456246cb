"""What an operator must know beyond its node: facts that the planner derives from everything that feeds it.

An operator runs a node whose inputs are nothing but schemas, so whatever depends on the plan beneath an input
is derived at planning time and sent along. ``LogicalPlan.operator_facts`` makes the facts of a node; a node
that needs more than ``OperatorFacts`` declares a class of its own beside itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.expressions.nodes import SortKey


class DerivedFacts(Protocol):
    """What nodes ask of ``penstock.optimizer.properties.plan_properties.PlanFacts``. Nodes are ``Any`` here,
    because their files import this one.
    """

    def insert_only(self, node: Any) -> bool:
        """Return whether a node never retracts a row."""

    def upsert_key(self, node: Any) -> tuple[int, ...] | None:
        """Return the columns that identify a row of a node."""

    def is_settled_by_time(self, node: Any) -> bool:
        """Return whether an Over emits each row once, when the watermark has passed it."""

    def arrival_order(self, node: Any, order: Sequence[SortKey]) -> int:
        """Return how an order over rows of a node breaks ties: 1 by arrival, -1 by arrival in reverse, 0 by
        all columns.
        """

    def bounded_ports(self, join: Any) -> tuple[int, ...]:
        """Return the side of a join that is loaded first."""

    def copied(self, join: Any) -> int | None:
        """Return the side of a join that every subtask has."""

    def side_ttl_ms(self, join: Any, port: int) -> int:
        """Return how long a row of a side of a join is kept untouched; 0: for ever."""

    def ttl_ms(self, node: Any) -> int:
        """Return how long a group or a partition is kept untouched; 0: for ever."""


class SettingReader(Protocol):
    """Typed values by setting key."""

    def get(self, key: str) -> Any:
        """Return the typed value of a setting."""


@dataclass(frozen=True)
class OperatorFacts:
    """The facts of every operator. ``insert_only_inputs``: by port, whether its rows are never retracted."""

    insert_only_inputs: tuple[bool, ...] = ()

    @property
    def insert_only(self) -> bool:
        """Whether no input ever retracts a row."""
        return all(self.insert_only_inputs)


@dataclass(frozen=True)
class PartitionFacts(OperatorFacts):
    """The facts of an operator that keeps rows by groups or partitions.

    ``ttl_ms``: how long one lives untouched, 0 for ever; the node's own ``ttl_ms`` is only what a hint asks
    for. ``arrival``: how ties of the order are broken, see ``DerivedFacts.arrival_order``.
    """

    ttl_ms: int = 0
    arrival: int = 0
