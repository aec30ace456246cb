"""A property computed once for each object; another object's does not wait for it."""

from __future__ import annotations

import threading

from penstock.engine.api.cached_property import cached_property

PATIENCE_S = 60.0


class Measured:
    """Counts how often its size is computed."""

    def __init__(self, meeting: threading.Barrier | None = None) -> None:
        self.computed = 0
        self._meeting = meeting

    @cached_property
    def size(self) -> int:
        """The size."""
        self.computed += 1
        if self._meeting is not None:
            self._meeting.wait()
        return 7


def test_it_is_computed_once() -> None:
    one = Measured()
    assert (one.size, one.size, one.computed) == (7, 7, 1)
    assert Measured.size.__doc__ == "The size."


def test_two_objects_compute_it_side_by_side() -> None:
    """The library's has one lock for all objects until Python 3.12: there the two would never meet."""
    meeting = threading.Barrier(2, timeout=PATIENCE_S)
    objects = [Measured(meeting) for _ in range(2)]
    threads = [threading.Thread(target=lambda one=one: one.size) for one in objects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [one.computed for one in objects] == [1, 1] and not meeting.broken
