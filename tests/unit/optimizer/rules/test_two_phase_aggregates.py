"""The rules in ``optimizer/rules/two_phase_aggregates``: plans before and after them, and their rows."""

from tests.unit.optimizer.rules.around import check_rule


def test_golden_script() -> None:
    check_rule("split_aggregates")


def test_golden_script_of_averages() -> None:
    check_rule("split_averages")
