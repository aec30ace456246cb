"""The rule in ``optimizer/rules/derive_join_keys``: plans before and after it, and their rows."""

from tests.unit.optimizer.rules.around import check_rule


def test_golden_script() -> None:
    check_rule("join_keys_from_filter")
