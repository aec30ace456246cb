import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.client.results.result_stream import FoldedStream, new_rows, op_rows
from penstock.client.session import Session
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import Fold, group_numbers, summed
from penstock.repl.cli import main
from tests.harness.length import examples


def batch(rows, weights=None):
    columns = pa.RecordBatch.from_pydict(
        {"k": pa.array([r[0] for r in rows], pa.string()), "n": pa.array([r[1] for r in rows], pa.int64())}
    )
    return Batch(columns, None if weights is None else np.array(weights, np.int64))


def listed(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def test_fold_keeps_order_and_multiplicity():
    fold = Fold(batch([]).rows.schema)
    fold.add(batch([("a", 1), ("b", 1), ("a", 1)]))
    assert listed(fold.rows()) == [("a", 1), ("b", 1), ("a", 1)]
    fold.add(batch([("b", 1), ("c", None), ("a", 1)], [-1, 2, -1]))
    assert listed(fold.rows()) == [("a", 1), ("c", None), ("c", None)]


def test_fold_takes_a_retraction_before_its_row():
    fold = Fold(batch([]).rows.schema)
    fold.add(batch([("a", 1)], [-1]))
    assert listed(fold.rows()) == []
    fold.add(batch([("a", 1), ("a", 2)]))
    assert listed(fold.rows()) == [("a", 2)]


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", None]), st.sampled_from([1, 2, None]), st.sampled_from([-2, -1, 1, 2])
        ),
        max_size=30,
    )
)
def test_fold_is_the_sum_of_weights(changes):
    fold = Fold(batch([]).rows.schema)
    for row in changes:
        fold.add(batch([row[:2]], [row[2]]))
    expected = {}
    for *row, weight in changes:
        expected[tuple(row)] = expected.get(tuple(row), 0) + weight
    counted = {}
    for row in listed(fold.rows()):
        counted[row] = counted.get(row, 0) + 1
    assert counted == {row: n for row, n in expected.items() if n > 0}


def test_nested_values_are_compared_whole():
    values = pa.array([[1, 2], [1, None], None, [], [1, 2], [1]])
    structs = pa.array(
        [{"x": 1}, {"x": None}, None, {"x": 1}, {"x": 1}, {"x": 2}], pa.struct([("x", pa.int64())])
    )
    maps = pa.array(
        [[("k", 1)], [("k", 2)], None, [], [("k", 1)], [("k", 1), ("l", 2)]], pa.map_(pa.string(), pa.int64())
    )
    for column, distinct in ((values, 5), (structs, 4), (maps, 5)):
        number, _ = group_numbers(pa.table({"c": column}))
        assert len(set(number.tolist())) == distinct
        assert number[0] == number[4]
    rows, counts = summed(pa.table({"c": values}), np.array([1, 1, 1, 1, -1, 1]))
    assert rows.column("c").to_pylist() == [[1, None], None, [], [1]]
    assert counts.tolist() == [1, 1, 1, 1]


def test_columns_that_no_array_holds_are_numbered_alike(monkeypatch):
    """Texts over 2 GiB, of which an array would need offsets of 64 bits: here a limit of no byte."""
    texts = pa.chunked_array([["a", None], ["b", "a"], [None, "", "b"]])
    columns = {
        "text": texts,
        "bytes": texts.cast(pa.binary()),
        "number": pa.chunked_array([[1, None], [2, 1], [None, 3, 2]]),
        "list": pa.chunked_array([[[1], None], [[2], [1]], [None, [], [2]]]),
        "map": pa.chunked_array(
            [[[("k", 1), ("l", 2)], None], [[], [("l", 2), ("k", 1)]], [None, [("k", 1)], []]],
            pa.map_(pa.string(), pa.int64()),
        ),
    }
    expected, count = group_numbers(pa.table({"text": texts}))
    monkeypatch.setattr(LIMITS, "array_bytes", 0)
    for name, column in columns.items():
        number, found = group_numbers(pa.table({name: column}))
        pairs = set(zip(number.tolist(), expected.tolist(), strict=True))
        assert len(pairs) == found == count == 4, name


def test_ops_pair_updates_of_one_key():
    rows = op_rows(batch([("a", 1), ("b", 1), ("c", 5), ("a", 2), ("d", 9)], [-1, -1, 1, 1, 2]), (0,))
    assert listed(rows) == [
        ("-U", "a", 1),
        ("+U", "a", 2),
        ("-D", "b", 1),
        ("+I", "c", 5),
        ("+I", "d", 9),
        ("+I", "d", 9),
    ]


def test_ops_put_the_old_row_first_even_when_it_comes_second():
    assert listed(op_rows(batch([("a", 2), ("a", 1)], [1, -1]), (0,))) == [("-U", "a", 1), ("+U", "a", 2)]


def test_ops_without_a_key_are_inserts_and_deletes():
    assert [row[0] for row in listed(op_rows(batch([("a", 1), ("a", 2)], [-1, 1]), None))] == ["-D", "+I"]


def test_a_key_of_no_columns_is_one_row_for_all():
    assert [row[0] for row in listed(op_rows(batch([("a", 1), ("a", 2)], [-1, 1]), ()))] == ["-U", "+U"]


def test_new_rows_drop_what_is_taken_back():
    assert listed(new_rows(batch([("a", 1), ("a", 2)], [-1, 1]))) == [("a", 2)]


@pytest.mark.parametrize("rows", [0, 1])
def test_folding_almost_nothing(rows):
    fold = Fold(batch([]).rows.schema)
    fold.add(batch([("a", 1)] * rows, [1] * rows))
    assert fold.rows().num_rows == rows


class Changes:
    """A stream of prepared batches; an error among them is raised."""

    def __init__(self, *batches):
        self.left = list(batches)
        self.closed = False

    def next(self, timeout_s):
        if self.left and isinstance(self.left[0], Exception):
            raise self.left[0]
        return self.left.pop(0) if self.left else None

    @property
    def ended(self):
        return self.closed or all(isinstance(one, Exception) for one in self.left)

    def close(self):
        self.closed = True


def test_a_folded_stream_gives_final_rows_only_at_its_end():
    changes = Changes(batch([("a", 1)]), batch([("a", 1), ("b", 1), ("a", 2)], [-1, 1, 1]))
    folded = FoldedStream(changes, batch([]).rows.schema, lambda rows: rows.sort_by("k"))
    assert folded.next(0) is None and not folded.ended
    assert listed(pa.Table.from_batches([folded.next(0).rows])) == [("a", 2), ("b", 1)]
    assert folded.ended and folded.next(0) is None


def test_a_folded_stream_that_fails_or_is_closed_gives_no_row():
    schema = batch([]).rows.schema
    failed = FoldedStream(Changes(batch([("a", 1)]), ValueError("x")), schema, lambda rows: rows)
    with pytest.raises(ValueError, match="x"):
        failed.next(0)
    assert not failed.ended
    closed = FoldedStream(Changes(batch([("a", 1)]), batch([("b", 1)])), schema, lambda rows: rows)
    assert closed.next(0) is None
    closed.close()
    assert closed.ended and closed.next(0) is None


GROUPED = "SELECT k, COUNT(*) AS n FROM (VALUES ('b'), ('a'), ('b')) AS t(k) GROUP BY k"


@pytest.mark.parametrize("order", ["", " ORDER BY k"])
def test_a_query_over_literal_rows_is_bounded(order):
    session = Session()
    result = session.execute(GROUPED + order)
    assert (result.shape.change_mode, result.shape.folds, result.shape.finite) == ("append", False, True)
    assert sorted(listed(result.final_rows())) == [("a", 1), ("b", 2)]
    # the user asked for a stream: its changes
    session.execute("SET 'execution.runtime-mode' = 'streaming'")
    streamed = session.execute(GROUPED)
    assert streamed.shape.change_mode == "upsert"
    assert {row["op"] for rows in streamed.changes() for row in rows.to_pylist()} == {"+I"}
    session.close()


def test_csv_of_literal_rows_has_no_op_column(capsys):
    assert main(["--csv", "-c", GROUPED + " ORDER BY n"]) == 0
    assert capsys.readouterr().out == "k,n\na,1\nb,2\n"
