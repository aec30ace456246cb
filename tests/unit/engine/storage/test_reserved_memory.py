"""Arrays that grow in place: same memory, zeros behind, and what has no space is left to the caller."""

from __future__ import annotations

import resource
import sys

import numpy as np
import pytest

from penstock.engine.storage.reserved_memory import (
    GROWN_LEAST_BYTES,
    LEAST_BYTES,
    extend_array,
    release_zeros,
    reserve_zeros,
)

INT = np.dtype(np.int64)
LEAST = LEAST_BYTES // 8
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="address space is reserved on Linux")


def test_an_array_grows_where_it_is() -> None:
    array = reserve_zeros((LEAST // 4, 4), INT)
    assert array is not None and not array.any()
    array[:] = 7
    wider = extend_array(array, LEAST)
    assert wider is not None and wider.shape == (LEAST, 4)
    assert wider.ctypes.data == array.ctypes.data
    assert (wider[: LEAST // 4] == 7).all() and not wider[LEAST // 4 :].any()
    # the memory outlives the array that reserved it
    del array
    wider[-1] = 3
    assert int(wider.sum()) == 7 * LEAST + 3 * 4


def test_what_is_no_array_of_its_own_does_not_grow() -> None:
    array = reserve_zeros((LEAST, 4), INT)
    assert array is not None
    for view in (array[1:], array[:, :2], array[:, 1], array.T):
        assert extend_array(view, 2 * len(view)) is None
    assert extend_array(np.zeros(LEAST, np.int64), 2 * LEAST) is None
    # beyond the space that was reserved
    assert extend_array(array, 1 << 40) is None


def test_arrays_that_grow_together_do_not_come_to_new_pages_together() -> None:
    arrays = [reserve_zeros((LEAST,), INT) for _ in range(16)]
    starts = np.sort([array.ctypes.data % (2 << 20) for array in arrays if array is not None])
    assert starts.size == 16 and np.diff(starts).min() > 1 << 16
    assert not (starts % 64).any(), "an element of 64 bytes lies in one cache line"


@pytest.mark.parametrize("width", [1, 2])
def test_returned_memory_is_zero_and_other_elements_stay(width: int) -> None:
    array = reserve_zeros((2 * LEAST, width), INT)
    assert array is not None
    array[:] = 1
    release_zeros(array, 100, LEAST)
    zeros = np.flatnonzero(array[:, 0] == 0)
    assert 100 <= zeros[0] < 100 + (2 << 20) // 8 and LEAST - (2 << 20) // 8 <= zeros[-1] < LEAST
    assert (np.diff(zeros) == 1).all() and (array.any(axis=1) == array.all(axis=1)).all()
    # less than a page, and other memory, stay what they are
    release_zeros(array, LEAST + 10, LEAST + 20)
    other = np.ones(2 * LEAST, np.int64)
    release_zeros(other, 0, LEAST)
    assert array[LEAST:].all() and other.all()


def test_few_bytes_and_limited_address_space_reserve_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reserve_zeros((LEAST - 1,), INT) is None
    assert reserve_zeros((GROWN_LEAST_BYTES // 8,), INT, has_grown=True) is not None
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 << 30, 8 << 30))
    assert reserve_zeros((LEAST,), INT) is None
