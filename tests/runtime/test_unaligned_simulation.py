"""Crashes under barriers that overtake rows: planted bugs that the oracle must see, and what at-least-once means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from engine.elements import Batch, Element
from engine.input_gate import Collection, InputGate
from tests.runtime.fakes import expected
from tests.runtime.test_simulation import MARGIN, PLANTED_SPLITS, caught, simulate

UNALIGNED = {"unaligned": True}
LATE_BARRIERS = (199, 295)
"""Seeds in which rows are taken from a channel whose barrier is late, and the crash comes after that: one in a hundred has it."""


def test_rows_in_flight_are_restored_exactly_at_any_parallelism() -> None:
    coverage: Counter[str] = Counter()
    for seed in (*LATE_BARRIERS, *range(60)):
        simulation, rows = simulate(seed, real=False, barriers=UNALIGNED)
        assert rows == expected(PLANTED_SPLITS, 10), f"seed {seed}"
        coverage += simulation.coverage
    assert min(coverage["restored rows in flight"], coverage["restored rows in flight at another parallelism"]) >= MARGIN, coverage


def test_rows_in_flight_of_one_channel_forgotten_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Collection.found

    def forgetful(self: Collection, index: int, queued: Sequence[Element]) -> None:
        found(self, index, () if index == 0 else queued)

    monkeypatch.setattr(Collection, "found", forgetful)
    assert caught(barriers=UNALIGNED)


def test_rows_taken_before_a_late_barrier_forgotten_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Collection, "record", lambda self, index, batch: None)
    assert caught(400, UNALIGNED, LATE_BARRIERS)


def test_rows_in_flight_put_back_twice_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    put_back = InputGate.put_back

    def twice(self: InputGate, port: int, source: int, batches: Sequence[Batch]) -> None:
        put_back(self, port, source, [*batches, *batches])

    monkeypatch.setattr(InputGate, "put_back", twice)
    assert caught(barriers=UNALIGNED)


def test_at_least_once_counts_some_row_twice() -> None:
    assert caught(barriers={"exactly_once": False})
