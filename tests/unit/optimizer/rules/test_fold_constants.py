"""The rule in ``optimizer/rules/fold_constants``: plans before and after it, and their rows."""

from tests.unit.optimizer.rules.around import check_rule


def test_golden_script() -> None:
    check_rule("fold_constants")
