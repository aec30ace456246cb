"""A flag of arrivals: each is seen once, and none is lost."""

from __future__ import annotations

from penstock.engine.api.row_arrivals import RowArrivals


def test_an_arrival_wakes_and_is_taken_once() -> None:
    wakes: list[int] = []
    arrivals = RowArrivals(lambda: wakes.append(1))
    assert not arrivals.take()
    arrivals.notify()
    arrivals.notify()
    assert wakes == [1, 1] and arrivals.pending
    assert arrivals.take() and not arrivals.take()
