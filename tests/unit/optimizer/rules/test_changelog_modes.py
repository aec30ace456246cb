"""The rule in ``optimizer/rules/changelog_modes``: plans before and after it, and several sinks of one
aggregate.
"""

import pytest

from penstock.optimizer.optimizer import optimize
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.sink import Sink, StatementSet
from penstock.planner.physical.plan_digest import PlanDigests
from tests.unit.optimizer.rules.around import check_rule
from tests.unit.optimizer.sql import bind

COUNTS = "SELECT k, COUNT(*) AS n FROM orders GROUP BY k"


def test_golden_script() -> None:
    check_rule("changelog_modes")


@pytest.mark.parametrize(
    ("sinks", "upserts"),
    [
        (("forgotten", "totals"), True),
        (("totals", "shown"), False),
        (("forgotten", "totals", "files"), False),
    ],
)
def test_one_sink_that_reads_old_rows_has_the_aggregate_emit_them(
    sinks: tuple[str, ...], upserts: bool
) -> None:
    """Equal subplans are one operator, whatever their columns are called."""
    plans = [bind(f"INSERT INTO {sink} {COUNTS}") for sink in sinks]
    plan = optimize(
        optimize(StatementSet(tuple(one for one in plans if isinstance(one, Sink)))), runtime="streaming"
    )
    aggregates = [node for node in plan.walk() if isinstance(node, Aggregate)]
    assert [node.upserts for node in aggregates] == [upserts] * len(sinks)


def test_the_mode_changes_no_state_and_is_named_at_each_node_above() -> None:
    insert = optimize(bind(f"INSERT INTO totals {COUNTS}"))
    before, after = (
        optimize(insert, runtime="streaming", disabled=disabled) for disabled in ({"changelog_modes"}, set())
    )
    assert PlanDigests().of(before) == PlanDigests().of(after)
    facts = PlanFacts()
    for plan, mode in ((before, "updates"), (after, "upserts")):
        modes = [facts.changelog(node) for node in plan.walk()]
        assert mode in modes and set(modes) == {mode, "insert-only"}
