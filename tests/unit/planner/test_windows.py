"""Kinds of windows: what each states of itself, and how few files of the product name one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.windowing import window_arithmetic
from penstock.planner.logical.windows import (
    WINDOW_FUNCTIONS,
    CumulateWindow,
    HopWindow,
    SessionWindow,
    TumbleWindow,
    Windowing,
    window_functions_text,
)
from penstock.planner.sql_generator import windows as sql_windows

ROOT = Path(__file__).parents[3]
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


@dataclass(frozen=True)
class WeeklyWindow(Windowing):
    """Weeks that begin on Mondays; 1970 began on a Thursday."""

    name = "weekly"
    usage = "WEEKLY(TABLE t, DESCRIPTOR(ts))"
    parameters: ClassVar = {}
    size_us: int = 7 * 86_400_000_000
    offset_us: int = 4 * 86_400_000_000


_WEEKS = (
    "SELECT k, window_start, COUNT(*) AS n FROM TABLE(WEEKLY(TABLE t, DESCRIPTOR(ts))) "
    "GROUP BY k, window_start, window_end"
)


@pytest.fixture
def calendar() -> Iterator[penstock.Connection]:
    """Rows of two weeks; the last Sunday of the first, and the first and the last day of the second."""
    moments = [
        datetime(2024, 2, 25, 23),
        datetime(2024, 2, 26),
        datetime(2024, 2, 29),
        datetime(2024, 3, 3, 23),
    ]
    rows = pa.table({"k": ["a", "a", "b", "a"], "ts": pa.array(moments, pa.timestamp("us"))})
    settings = {"execution.runtime-mode": "streaming", "bounded.backend": "duckdb"}
    with penstock.connect(settings=settings) as opened:
        opened.register("t", rows, time_column="ts", delay="1 s")
        yield opened


def test_a_new_kind_runs_by_its_three_tables(
    calendar: penstock.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What names no kind needs no change for one: parser, binder, optimizer, operators."""
    monkeypatch.setitem(WINDOW_FUNCTIONS, "WEEKLY", WeeklyWindow)
    monkeypatch.setitem(window_arithmetic._ENDS, WeeklyWindow, window_arithmetic._TumbleEnds)
    monkeypatch.setitem(sql_windows._KINDS, WeeklyWindow, sql_windows._tumbling)
    first, second = datetime(2024, 2, 19), datetime(2024, 2, 26)
    rows = calendar.execute(_WEEKS).fetchall()
    assert sorted(rows) == [("a", first, 1), ("a", second, 2), ("b", second, 1)]
    plan = "\n".join(row[0] for row in calendar.execute(f"EXPLAIN {_WEEKS}").fetchall())
    assert "weekly(ts, offset 4 d)" in plan
    verified = calendar.execute(f"VERIFY {_WEEKS} AGAINST BATCH ON duckdb")
    assert verified.note is not None
    assert verified.note.startswith("equal: 3 rows")


def test_a_kind_without_sql_runs_on_the_engine_alone(
    calendar: penstock.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WINDOW_FUNCTIONS, "WEEKLY", WeeklyWindow)
    monkeypatch.setitem(window_arithmetic._ENDS, WeeklyWindow, window_arithmetic._TumbleEnds)
    assert len(calendar.execute(_WEEKS).fetchall()) == 3
    with pytest.raises(penstock.Error, match="VER-7001"):
        calendar.execute(f"VERIFY {_WEEKS} AGAINST BATCH ON duckdb")


def test_a_kind_in_no_table_is_no_function(calendar: penstock.Connection) -> None:
    with pytest.raises(penstock.ProgrammingError, match="WEEKLY"):
        calendar.execute(_WEEKS)
