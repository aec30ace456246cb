import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT, DOUBLE, STRING
from penstock.catalog.types import Array as ArrayType
from penstock.client.results.result_order import sort_by_columns, sort_by_keys
from penstock.engine.api.row_pieces import LIMITS, TooLarge
from penstock.planner.expressions.nodes import Call, Column, SortKey

NAN = float("nan")
ROWS = pa.table(
    {"x": pa.array([1.0, NAN, None, 3.0, 1.0], pa.float64()), "n": pa.array([2, 1, 0, 5, 1], pa.int64())}
)
X = Column(DOUBLE, True, index=0, name="x")
N = Column(BIGINT, True, index=1, name="n")


def numbers(*keys):
    return sort_by_keys(ROWS, keys).column("n").to_pylist()


def test_nulls_first_ascending_nan_largest_ties_by_all_columns():
    assert numbers(SortKey(X)) == [0, 1, 2, 5, 1]


def test_descending_puts_nan_first_and_nulls_where_asked():
    assert numbers(SortKey(X, descending=True, nulls_first=False)) == [1, 5, 1, 2, 0]
    assert numbers(SortKey(X, descending=True, nulls_first=True)) == [0, 1, 5, 1, 2]


def test_a_key_may_be_computed():
    assert numbers(SortKey(Call(BIGINT, True, function="negate", args=(N,)))) == [5, 2, 1, 1, 0]


def test_by_columns():
    assert sort_by_columns(ROWS, (1, 0)).column("n").to_pylist() == [0, 1, 1, 2, 5]
    assert sort_by_columns(ROWS, ()).column("n").to_pylist() == [2, 1, 0, 5, 1]


def test_nested_columns_that_no_array_holds_break_ties_and_are_refused_as_keys(monkeypatch):
    lists = pa.array([["b" * 30, "c"], ["a" * 30], ["b" * 30], ["a" * 30, "d"]])
    rows = pa.concat_tables([pa.table({"n": pa.array([1, 2, 1, 2]), "l": lists})] * 4)
    keys = (SortKey(Column(BIGINT, True, index=0, name="n")),)
    expected = sort_by_keys(rows, keys).to_pylist()
    monkeypatch.setattr(LIMITS, "array_bytes", 200)
    assert sort_by_keys(rows, keys).to_pylist() == expected and expected != rows.to_pylist()
    with pytest.raises(TooLarge):
        sort_by_keys(rows, (SortKey(Column(ArrayType(STRING), True, index=1, name="l")),))
