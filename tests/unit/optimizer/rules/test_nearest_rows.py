"""nearest_rows: its golden script has the plans, and both are executed with equal rows."""

from __future__ import annotations

from tests.unit.optimizer.rules.around import check_rule


def test_golden_script() -> None:
    check_rule("nearest_rows")


def test_golden_script_of_backends() -> None:
    check_rule("nearest_rows_on_backends")


def test_golden_script_of_values() -> None:
    check_rule("nearest_values")
