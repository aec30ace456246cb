"""The large arrays of a state go to memory-mapped files and come out the same."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from penstock.engine.state import mapped_arrays
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.storage.spill_files import SpillFiles, pages_of


class Base(Mapped):
    MAPPED: ClassVar[tuple[str, ...]] = ("first",)

    def __init__(self) -> None:
        self.first, self.small, self.unnamed = np.arange(100), np.arange(3), np.arange(100)


class Derived(Base):
    MAPPED: ClassVar[tuple[str, ...]] = ("second", "small")

    def __init__(self) -> None:
        super().__init__()
        self.second = np.arange(200.0).reshape(100, 2)


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_arrays, "LEAST_BYTES", 800)


def test_large_arrays_of_a_class_and_its_bases_are_spilled(tmp_path: Path) -> None:
    state, memory = Derived(), Derived()
    assert state.spillable_bytes() == state.first.nbytes + state.second.nbytes == 2_400
    state.spill(SpillFiles(tmp_path))
    assert state.spillable_bytes() == 0
    assert [pages_of(array) is not None for array in (state.first, state.second)] == [True, True]
    assert [pages_of(array) is None for array in (state.small, state.unnamed)] == [True, True]
    assert np.array_equal(state.first, memory.first) and np.array_equal(state.second, memory.second)
    assert list(tmp_path.iterdir()) == [], "files have no name"


def test_a_spilled_array_can_be_written_and_is_not_spilled_again(tmp_path: Path) -> None:
    state = Base()
    state.spill(SpillFiles(tmp_path))
    spilled = state.first
    state.first[7] = -1
    state.spill(SpillFiles(tmp_path))
    assert state.first is spilled and state.first[7] == -1


def test_an_array_that_was_replaced_in_memory_can_be_spilled_again(tmp_path: Path) -> None:
    state = Base()
    state.spill(SpillFiles(tmp_path))
    state.first = np.arange(500)
    assert state.spillable_bytes() == 4_000
