"""Exchanges in the logical plan: edges between subtasks, inserted by the optimizer."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.logical.distribution import (
    UNKNOWN,
    Edge,
    Forward,
    Partition,
    Partitioning,
)
from penstock.planner.logical.node_digest import Digest, ExactTexts
from penstock.planner.logical.node_text import edge_text
from penstock.planner.logical.plan import PassThroughNode


@dataclass(frozen=True)
class Exchange(PassThroughNode):
    """An edge that ``penstock.optimizer.exchange_placement`` inserts: how the input's rows travel to the
    subtasks above. ``targets``: how many these are by a hint; None where they are as many as the job has.
    """

    no_history = None

    edge: Edge
    targets: int | None = None

    def text(self) -> str:
        targets = "" if self.targets is None else f" × {self.targets}"
        return f"Exchange {edge_text(self.edge, self.input.schema)}{targets}"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        # an edge changes no row: operator ids are the same at every parallelism
        return inputs[0]

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        # to a single subtask there are no keys to know rows by
        if isinstance(self.edge, Partition):
            return frozenset({self.edge.keys}) if self.edge.keys else UNKNOWN
        return inputs[0] if isinstance(self.edge, Forward) else UNKNOWN
