"""Which operators keep state, so that a checkpoint must know them: a fact of their specs."""

from __future__ import annotations

from penstock.planner.logical.aggregate import Phase
from penstock.planner.physical.operator_specs import (
    CalcSpec,
    GroupAggregateSpec,
    OperatorSpec,
    RepeatSpec,
    UnionSpec,
    UnnestSpec,
    WindowAggregateSpec,
    WindowTableSpec,
)
from penstock.planner.physical.runtime_filter import RuntimeFilterSpec

STATELESS = (CalcSpec, UnionSpec, UnnestSpec, WindowTableSpec, RepeatSpec, RuntimeFilterSpec)


def keeps_state(spec: OperatorSpec) -> bool:
    """Whether a checkpoint must know the operator: only passing rows on, or flushing before every barrier,
    keeps nothing.
    """
    if isinstance(spec, WindowAggregateSpec | GroupAggregateSpec) and spec.phase is Phase.LOCAL:
        return False
    return not isinstance(spec, STATELESS)
