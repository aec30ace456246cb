"""The rule in ``optimizer/rules/rank_to_top_n``: plans before and after it, and their rows."""

from tests.unit.optimizer.rules.around import check_rule


def test_golden_script() -> None:
    check_rule("first_of_partitions")
