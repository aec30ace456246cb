"""Rows a second of operators, by an injected clock."""

from __future__ import annotations

from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.metrics.row_rates import RowRate, RowRates


def test_a_rate_covers_the_last_two_seconds() -> None:
    rates, one = RowRates(0.0), OperatorMetrics()
    # 500 rows a second for four seconds, then 100
    for second in range(1, 9):
        by = 500 if second <= 4 else 100
        one.rows_in, one.rows_out = one.rows_in + by, one.rows_out + 2 * by
        rates.sample(second * 1000.0, {"a": one})
        now = rates.per_second(second * 1000.0, "a", one.rows_in, one.rows_out)
        if second == 4:
            assert now == RowRate(500, 1000)
        elif second > 5:
            assert now == RowRate(100, 200)


def test_the_rate_of_a_task_that_waits_falls() -> None:
    rates, one = RowRates(0.0), OperatorMetrics(rows_in=1000)
    rates.sample(1000.0, {"a": one})
    assert rates.per_second(1500.0, "a", 1000, 0).rows_in == 667
    assert rates.per_second(2000.0, "a", 1000, 0) == RowRate()


def test_the_first_rows_are_no_rate_of_millions() -> None:
    assert RowRates(0.0).per_second(1.0, "a", 5, 5) == RowRate(5, 5)


def test_a_sample_is_taken_once_a_second() -> None:
    rates = RowRates(0.0)
    rates.sample(999.0, {"a": OperatorMetrics(rows_in=7)})
    assert rates.per_second(1000.0, "a", 7, 0).rows_in == 7, (
        "no sample was taken: all rows are of this second"
    )
