"""The rule in ``optimizer/rules/runtime_filters``: plans before and after it, and their rows."""

from tests.unit.optimizer.rules.around import check_rule


def test_golden_script() -> None:
    check_rule("runtime_filters")
