"""The rule in ``optimizer/rules/push_filters``: plans before and after it, and their rows."""

from tests.unit.optimizer.rules.around import check_rule


def test_golden_script_of_push_filters() -> None:
    check_rule("push_filters")


def test_golden_script_of_push_filters_past_watermarks() -> None:
    check_rule("push_filters_past_watermarks")
