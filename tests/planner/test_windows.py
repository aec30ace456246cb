"""Kinds of windows: what each states of itself, and how few files of the product name one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.planner.logical.windows import (
    WINDOW_FUNCTIONS,
    CumulateWindow,
    HopWindow,
    SessionWindow,
    TumbleWindow,
    Windowing,
    window_functions_text,
)

ROOT = Path(__file__).parents[2]
PRODUCT = ("catalog", "client", "engine", "optimizer", "planner", "repl")


@pytest.mark.parametrize("kind", WINDOW_FUNCTIONS.values())
def test_a_kind_is_named_in_three_files(kind: type[Windowing]) -> None:
    """Whoever adds a kind touches these, and the operators of its state if no operator holds it yet."""
    named = {
        str(path.relative_to(ROOT))
        for folder in PRODUCT
        for path in (ROOT / folder).rglob("*.py")
        if re.search(rf"\b{kind.__name__}\b", path.read_text())
    }
    files = {"planner/logical/windows.py", "planner/sql_generator/windows.py"}
    if not kind.merging:
        files.add("engine/windowing/window_arithmetic.py")
    assert named == files


@pytest.mark.parametrize(
    ("window", "slices", "per_slice"),
    [
        (TumbleWindow(3, 10, offset_us=2), TumbleWindow(3, 10, offset_us=2), 1),
        (HopWindow(3, 20, 5, 2), TumbleWindow(3, 5, offset_us=2), 4),
        (CumulateWindow(3, 20, 10, sliced=True), TumbleWindow(3, 10, sliced=True), 2),
    ],
)
def test_windows_share_slices(window: Windowing, slices: Windowing, per_slice: int) -> None:
    assert window.slices() == slices
    assert window.slice_us == slices.size_us
    assert window.windows_per_slice == per_slice


def test_lengths_come_as_they_are_written() -> None:
    assert HopWindow(0, 20, 5, offset_us=1).lengths_us() == (5, 20)
    assert CumulateWindow(0, 20, 5).lengths_us() == (5, 20)
    assert TumbleWindow(0, 20).lengths_us() == (20,)
    assert SessionWindow(0, 7, partition_keys=(1,)).lengths_us() == (7,)


def test_windows_of_unlike_kinds_are_unlike() -> None:
    assert HopWindow(0, 20, 5) != CumulateWindow(0, 20, 5)
    assert TumbleWindow(0, 20) != SessionWindow(0, 20)


@pytest.mark.parametrize(
    "make", [lambda: TumbleWindow(0, 0), lambda: HopWindow(0, 20), lambda: CumulateWindow(0, 20, 7)]
)
def test_windows_that_mean_nothing_are_refused(make: type[Windowing]) -> None:
    with pytest.raises(PenstockError, match="broken plan: a window"):
        make()


def test_the_functions_are_named_in_words() -> None:
    assert window_functions_text("or") == "TUMBLE, HOP, CUMULATE or SESSION"
