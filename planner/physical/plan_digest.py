"""Plan digests: hashes of a plan's rows and of each of its columns. Display names, unread columns and the
order of traversal play no part.
"""

from __future__ import annotations

from penstock.planner.logical.node_digest import EXACT, Digest, ExactTexts
from penstock.planner.logical.plan import LogicalPlan


class PlanDigests:
    """The digests of the nodes of one plan, each derived once; ``texts`` derives those of expressions."""

    def __init__(self, texts: ExactTexts = EXACT) -> None:
        self._texts = texts
        self._known: dict[int, tuple[LogicalPlan, Digest]] = {}

    def of(self, node: LogicalPlan) -> Digest:
        """Return the digest of a node."""
        if id(node) not in self._known:
            self._known[id(node)] = (node, node.digest(tuple(map(self.of, node.subplans)), self._texts))
        return self._known[id(node)][1]
