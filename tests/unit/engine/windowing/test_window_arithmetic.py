"""Window arithmetic against definitions written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.windowing import window_arithmetic
from penstock.planner.logical.windows import CumulateWindow, HopWindow, SessionWindow, TumbleWindow

KINDS = st.sampled_from([TumbleWindow, HopWindow, CumulateWindow])


@st.composite
def windowings(draw):
    kind = draw(KINDS)
    step = draw(st.integers(1, 20))
    size = step * draw(st.integers(1, 6))
    return kind(0, size, 0 if kind is TumbleWindow else step, draw(st.integers(-50, 50)))


def naive_windows(time, w):
    """All (start, end) with start <= time < end."""
    if isinstance(w, CumulateWindow):
        start = next(s for s in range(time, time - w.size_us, -1) if (s - w.offset_us) % w.size_us == 0)
        return [
            (start, end) for end in range(start + w.step_us, start + w.size_us + 1, w.step_us) if end > time
        ]
    slide = w.step_us or w.size_us
    starts = [s for s in range(time - w.size_us + 1, time + 1) if (s - w.offset_us) % slide == 0]
    return [(s, s + w.size_us) for s in starts]


@given(windowings(), st.lists(st.integers(-200, 200), max_size=8))
def test_assign_gives_every_window_once(w, times):
    rows, starts, ends = window_arithmetic.assign(np.array(times, np.int64), w)
    assert list(zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)) == [
        (i, s, e) for i, t in enumerate(times) for s, e in naive_windows(t, w)
    ]


@given(windowings(), st.integers(-200, 200), st.integers(-300, 300))
def test_a_slice_belongs_to_the_windows_of_its_times(w, time, bound):
    slice_end = window_arithmetic.slice_end(np.array([time]), w)
    ends = [end for _, end in naive_windows(time, w)]
    assert slice_end[0] == ends[0]
    assert window_arithmetic.last_window_end(slice_end, w)[0] == ends[-1]
    assert np.diff(ends).tolist() == [w.slice_us] * (len(ends) - 1)
    first = window_arithmetic.first_window_end_after(slice_end, np.array([bound]), w)[0]
    on_time = [end for end in ends if end > bound]
    if on_time:
        assert first == on_time[0]
    else:
        assert first > ends[-1]


@given(windowings(), st.integers(-200, 200))
def test_sliced_input_falls_in_the_slice_it_ends(w, time):
    sliced = type(w)(0, w.size_us, w.step_us, w.offset_us, (), True)
    end = window_arithmetic.slice_end(np.array([time]), w)
    assert window_arithmetic.slice_end(end, sliced) == end
    assert [column.tolist() for column in window_arithmetic.assign(end, sliced)] == [
        column.tolist() for column in window_arithmetic.assign(np.array([time]), w)
    ]


@pytest.mark.parametrize("bound", [-(2**63), 2**63 - 1])
def test_extreme_bounds_do_not_overflow(bound):
    w = HopWindow(0, 60, 20)
    first = window_arithmetic.first_window_end_after(np.array([20]), np.array([bound]), w)[0]
    assert first == (20 if bound < 0 else 80)


def test_session_is_the_row_and_its_gap():
    w = SessionWindow(0, 10)
    assert [c.tolist() for c in window_arithmetic.assign(np.array([5, -3]), w)] == [[0, 1], [5, -3], [15, 7]]
