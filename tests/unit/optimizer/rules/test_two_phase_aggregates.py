"""The rule in ``optimizer/rules/two_phase_aggregates``: plans before and after it, and their rows."""

from tests.unit.optimizer.rules.around import check_rule


def test_golden_script() -> None:
    check_rule("split_aggregates")
