"""The filter before the MAX or MIN of windows, or before a join with it: it drops rows that are worse than
the best so far of their windows.
"""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.logical.node_digest import hash_parts
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.windows import WindowBest
from penstock.planner.physical.operator_specs import AnyOperatorSpec, OperatorSpec

_ID_LENGTH = 16


@dataclass(frozen=True)
class WindowBestFilter(LogicalPlan):
    """Keep the rows that reach the best value so far of a window they may join.

    Which rows reach it depends on the subtask and on when the job started. The dropped ones never match, so
    the join's result does not.
    """

    best: WindowBest

    @property
    def keeps_state(self) -> bool:
        # a checkpoint without it is restored: the filter then begins anew
        return False


def window_best_filter(node: LogicalPlan, best: WindowBest, operator_id: str) -> AnyOperatorSpec:
    """Return the filter before the port ``best.port`` of a join or an aggregate, the operator with this
    id.
    """
    schema = node.inputs[best.port].schema
    # derived from the operator's id, so it is as stable
    own_id = hash_parts("window best filter", operator_id)[:_ID_LENGTH]
    return OperatorSpec(own_id, best.text(schema), schema, WindowBestFilter(best))
