"""What has changed since a snapshot: slots that are written again, rows that come and go."""

from __future__ import annotations

import numpy as np

from penstock.engine.state.change_tracking import Arrivals, SlotChanges


def listed(found: np.ndarray | None) -> list[int] | None:
    return None if found is None else found.tolist()


def test_slots_count_from_the_snapshot_before_their_change() -> None:
    changes = SlotChanges()
    changes.mark(np.array([0]), 4)  # before any snapshot: the first one is whole
    first = changes.seal()
    changes.mark(np.array([2]), 4)
    second = changes.seal()
    changes.mark(np.array([3]), 4)
    assert listed(changes.since(first)) == [2, 3]
    assert listed(changes.since(second)) == [3]


def test_after_all_has_changed_older_snapshots_are_no_base() -> None:
    changes = SlotChanges()
    first = changes.seal()
    changes.mark_all()
    second = changes.seal()
    changes.mark(np.array([1]), 2)
    assert changes.since(first) is None
    assert listed(changes.since(second)) == [1]


def test_rows_that_came_or_went_since_a_snapshot() -> None:
    arrivals = Arrivals()
    assert arrivals.take(3).tolist() == [0, 1, 2]
    snapshot = arrivals.seal()
    assert arrivals.take(2).tolist() == [3, 4]
    arrivals.release(np.array([1]), left=4)
    assert listed(arrivals.since(snapshot)) == [1, 3, 4]
    assert listed(arrivals.since(arrivals.seal())) == []


def test_an_emptied_state_numbers_anew_and_has_no_older_base() -> None:
    arrivals = Arrivals()
    arrivals.take(2)
    snapshot = arrivals.seal()
    arrivals.release(np.array([0, 1]), left=0)
    assert arrivals.take(1).tolist() == [0]
    assert arrivals.since(snapshot) is None
