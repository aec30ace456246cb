"""Which changes are still to come when a table was read in several states."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, BOOLEAN, STRING
from penstock.engine.connectors.postgres_cdc.key_ranges import KeyRanges


def test_a_range_begins_where_the_one_before_was_interrupted() -> None:
    ranges = KeyRanges()
    ranges.resume(None, 10)
    # nothing was read: the state of 10 is not needed
    ranges.resume(None, 20)
    assert ranges.items == [[None, 20]]
    ranges.resume(["5"], 30)
    ranges.resume(["5"], 40)
    assert ranges.items == [[["5"], 20], [None, 40]]
    ranges.resume(["9"], 50)
    assert ranges.items == [[["5"], 20], [["9"], 40], [None, 50]]
    assert (ranges.first, ranges.last) == (20, 50)


def test_a_change_counts_after_the_state_in_which_its_key_was_read() -> None:
    ranges = KeyRanges([[["5"], 20], [["9"], 40], [None, 50]])
    keys = pa.array([5, 5, 6, 9, 9, 10, 10, -3])
    commits = np.array([19, 20, 30, 39, 40, 49, 50, 25])
    counted = ranges.counts([keys], [Field("id", BIGINT)], commits)
    assert counted.tolist() == [False, True, False, False, True, False, True, True]


def test_a_key_of_two_columns_is_compared_column_by_column() -> None:
    ranges = KeyRanges([[["b", "f"], 1], [None, 9]])
    fields = [Field("t", STRING), Field("ok", BOOLEAN)]
    keys = [pa.array(["a", "b", "b", "c", "B"]), pa.array([True, False, True, False, True])]
    assert ranges.counts(keys, fields, np.full(5, 5)).tolist() == [True, True, False, False, True]
