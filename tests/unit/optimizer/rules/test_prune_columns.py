"""The rule in ``optimizer/rules/prune_columns``: plans before and after it, and their rows."""

from tests.unit.optimizer.rules.around import check_rule


def test_golden_script() -> None:
    check_rule("prune_columns")
