"""The stable hash: golden vectors that no release may change, and equal values hashing alike."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.key_groups import groups_of_hashes, key_group_range, subtask_of_groups
from penstock.engine.kernels.partition import counting_sort, partition
from penstock.engine.kernels.stable_hash import stable_hash

GOLDEN = {
    "ints": pa.array([0, 1, -1, 2**63 - 1, None], pa.int64()),
    "floats": pa.array([0.0, -0.0, 1.5, float("nan"), float("inf"), None], pa.float64()),
    "bools": pa.array([True, False, None]),
    "strings": pa.array(
        ["", "a", "ab", "abcd", "abcdefg", "abcdefgh", "abcdefghi", "caf\u00e9", "cafe\u0301", "x" * 40, None]
    ),
    "binary": pa.array([b"", b"\x00", None], pa.binary()),
    "dates": pa.array([datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]),
    "times": pa.array([datetime.time(1, 2, 3, 4)], pa.time64("us")),
    "timestamps": pa.array(
        [datetime.datetime(1969, 1, 1), datetime.datetime(2024, 2, 29, 1)], pa.timestamp("us")
    ),
    "durations": pa.array([datetime.timedelta(microseconds=-1)], pa.duration("us")),
    "decimals": pa.array([decimal.Decimal("1.00"), decimal.Decimal("-1.00"), None], pa.decimal128(10, 2)),
    "wide decimals": pa.array([decimal.Decimal(2**70), decimal.Decimal(-(2**70))], pa.decimal128(38, 0)),
    "nulls": pa.nulls(1),
}

EXPECTED: dict[str, list[int]] = {
    "ints": [
        9610171749116826166,
        7544644897687116806,
        329018517673087075,
        13670620967912446781,
        7043194824250456732,
    ],
    "floats": [
        9610171749116826166,
        9610171749116826166,
        17139818100113962951,
        1402756348743413323,
        8840316520255610226,
        7043194824250456732,
    ],
    "bools": [7544644897687116806, 9610171749116826166, 7043194824250456732],
    "strings": [
        11882845557092804801,
        4134435349172180252,
        12292130699538058931,
        691495646373798868,
        14869590397700274174,
        14274030431678927270,
        16442573453491489420,
        11302832725760417322,
        11379014650835022073,
        7639765342654152931,
        7043194824250456732,
    ],
    "binary": [11882845557092804801, 17441485810994460413, 7043194824250456732],
    "dates": [329018517673087075, 5498095617165689907],
    "times": [13124619905236873550],
    "timestamps": [6603419648107120715, 12140408158750248460],
    "durations": [329018517673087075],
    "decimals": [10394890873886740928, 13959278066485357887, 10706675665211737916],
    "wide decimals": [17351001023111846859, 8157435654040754657],
    "nulls": [7043194824250456732],
    "row": [8040728528883463394],
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_vectors(name):
    assert stable_hash([GOLDEN[name]]).tolist() == EXPECTED[name]


def test_golden_vector_of_a_row_of_several_columns():
    row = [pa.array([7]), pa.array(["LGA"]), pa.array([None], pa.int32())]
    assert stable_hash(row).tolist() == EXPECTED["row"]


def test_equal_values_hash_alike_in_every_width():
    wide = stable_hash([pa.array([5, -3, None], pa.int64())])
    for narrow in (pa.int8(), pa.int16(), pa.int32()):
        assert (stable_hash([pa.array([5, -3, None], narrow)]) == wide).all()
    assert (
        stable_hash([pa.array([0.5], pa.float32())]) == stable_hash([pa.array([0.5], pa.float64())])
    ).all()


def test_negative_zero_and_nans_are_one_value_each():
    bits = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    hashes = stable_hash([pa.array(np.concatenate([[0.0, -0.0], bits]))])
    assert hashes[0] == hashes[1]
    assert hashes[2] == hashes[3]


def test_slices_hash_as_the_whole():
    for array in GOLDEN.values():
        whole = stable_hash([array])
        assert (stable_hash([array.slice(1)]) == whole[1:]).all()


def test_hashes_spread():
    hashes = stable_hash([pa.array(np.arange(100_000))])
    assert len(np.unique(hashes)) == 100_000
    counts = np.bincount(groups_of_hashes(hashes, 128), minlength=128)
    assert counts.min() > 650
    assert counts.max() < 920


def test_order_of_columns_matters():
    a, b = pa.array(["x"]), pa.array(["y"])
    assert stable_hash([a, b]) != stable_hash([b, a])


def test_nested_values_hash_by_what_they_hold():
    lists = stable_hash([pa.array([[1, None], [1, None], [1], None, []])])
    assert lists[0] == lists[1] and len(set(lists.tolist())) == 4
    assert stable_hash([pa.array([[1, 2]], pa.list_(pa.int32()))]) == stable_hash(
        [pa.array([[1, 2]], pa.list_(pa.int64()))]
    )
    assert stable_hash([pa.array([{"a": 1, "b": "x"}])])[0] == 1149677933529181426


@pytest.mark.parametrize("rows", [0, 1, 1000])
@pytest.mark.parametrize("most", [128, 130])
@pytest.mark.parametrize("parallelism", [1, 2, 3, 8, 9, 128])
def test_partition_sends_rows_where_their_group_lives(parallelism, most, rows):
    hashes = stable_hash([pa.array(np.arange(rows))])
    order, offsets = partition(hashes, parallelism, most)
    assert sorted(order.tolist()) == list(range(rows))
    assert (offsets[0], offsets[-1]) == (0, rows)
    groups = groups_of_hashes(hashes, most)
    for subtask in range(parallelism):
        owned = key_group_range(most, parallelism, subtask)
        mine = order[offsets[subtask] : offsets[subtask + 1]]
        assert (np.diff(mine) > 0).all()
        assert ((groups[mine] >= owned.start) & (groups[mine] < owned.end)).all()
        assert (subtask_of_groups(groups[mine], parallelism, most) == subtask).all()


@pytest.mark.parametrize("parallelism", [1, 3, 7, 128])
def test_ranges_cover_every_group_once(parallelism):
    ranges = [key_group_range(128, parallelism, subtask) for subtask in range(parallelism)]
    assert [r.start for r in ranges[1:]] == [r.end for r in ranges[:-1]]
    assert (ranges[0].start, ranges[-1].end) == (0, 128)


def test_counting_sort_is_stable():
    order, offsets = counting_sort(np.array([2, 0, 2, 1, 0]), 4)
    assert order.tolist() == [1, 4, 3, 0, 2]
    assert offsets.tolist() == [0, 2, 3, 5, 5]
