"""The rule in ``optimizer/rules/window_best_filters``: plans before and after it, and their rows."""

from tests.unit.optimizer.rules.around import check_rule


def test_golden_script() -> None:
    check_rule("window_best_filters")
