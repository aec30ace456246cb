"""The rule in ``optimizer/rules/share_scans``: plans before and after it, and their rows."""

from tests.unit.optimizer.rules.around import check_rule


def test_golden_script() -> None:
    check_rule("share_sources")
