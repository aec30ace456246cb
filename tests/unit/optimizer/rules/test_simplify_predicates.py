"""The rule in ``optimizer/rules/simplify_predicates``: plans before and after it, and their rows."""

from tests.unit.optimizer.rules.around import check_rule


def test_golden_script() -> None:
    check_rule("simplify_predicates")
