"""Random plans give the same rows before and after all rules, in every purpose."""

import pytest

from penstock.optimizer.optimizer import optimize
from penstock.planner.explain.explain import explain
from penstock.planner.logical.plan import LogicalPlan
from tests.unit.optimizer.executed import rows_of
from tests.unit.optimizer.random_plans import RandomPlans


def check(seed: int, plan: LogicalPlan, rewritten: LogicalPlan) -> None:
    if plan == rewritten:
        return
    before, after = rows_of(plan), rows_of(rewritten)
    assert before == after, f"seed {seed}\n{explain(plan)}\nbecame\n{explain(rewritten)}"


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_same_rows(first: int) -> None:
    for seed in range(first, first + 20):
        plan = RandomPlans(seed).plan()
        check(seed, plan, optimize(plan))
        check(seed, plan, optimize(optimize(plan), runtime="batch"))
        check(seed, plan, optimize(optimize(plan), runtime="streaming", parallelism=2))
