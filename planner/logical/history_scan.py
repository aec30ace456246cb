"""A table read up to a fixed position: what is there of it, split by split, when its history is taken."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.logical.plan import LogicalPlan, Scan


@dataclass(frozen=True)
class HistoryScan(Scan):
    """A scan of exactly these splits, by their ids; rows that come later play no part."""

    splits: tuple[str, ...] = ()


def up_to(plan: LogicalPlan, splits: tuple[str, ...]) -> LogicalPlan:
    """Return a plan over one table with its scan ending where the given splits do."""

    def ended(node: LogicalPlan) -> LogicalPlan:
        return (
            HistoryScan(node.table, node.columns, node.predicate, splits) if isinstance(node, Scan) else node
        )

    return plan.transform(ended)


def scan_of(plan: LogicalPlan) -> Scan:
    """Return the one scan of a plan over one table."""
    (scan,) = [node for node in plan.walk() if isinstance(node, Scan)]
    return scan
