"""Arrays that grow in place: same memory, zeros behind, and what has no space is left to the caller."""

from __future__ import annotations

import resource
import sys

import numpy as np
import pytest

from penstock.engine.storage.reserved_memory import LEAST_BYTES, extend_array, reserve_zeros

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


def test_few_bytes_and_limited_address_space_reserve_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reserve_zeros((LEAST - 1,), INT) is None
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 << 30, 8 << 30))
    assert reserve_zeros((LEAST,), INT) is None
