"""A rule by its golden script: the plan just before the rule and just after it, and both executed with equal
rows.
"""

from pathlib import Path

from penstock.optimizer.optimizer import RULES, Rule, optimize
from penstock.planner.explain.explain import explain
from penstock.planner.logical.plan import LogicalPlan
from tests.harness.golden import check_golden
from tests.unit.optimizer.executed import rows_of
from tests.unit.optimizer.sql import bind

SCRIPTS = Path(__file__).parent / "scripts"


def check_rule(name: str) -> None:
    """Compare what a rule makes of each query of its script with the plans recorded there."""
    rule = next(rule for rule in RULES if rule.name == name)
    check_golden(SCRIPTS / f"{name}.sql", lambda text: around(rule, bind(text)))


def around(rule: Rule, plan: LogicalPlan) -> str:
    seen: list[tuple[LogicalPlan, LogicalPlan]] = []

    def observe(name: str, before: LogicalPlan, after: LogicalPlan) -> None:
        if name == rule.name:
            seen.append((before, after))

    if rule.only is None:
        optimize(plan, observer=observe)
    else:
        optimize(
            optimize(plan),
            observer=observe,
            runtime="batch" if rule.only == "batch" else "streaming",
            parallelism=2,
        )
    ((before, after),) = seen
    if before == after:
        return f"{explain(before)}\n(unchanged)"
    assert rows_of(before) == rows_of(after), "the rewrite changes the rows"
    return f"{explain(before)}\n=>\n{explain(after)}"
