"""What is kept of a result: the newest rows, whatever the result's length."""

import pyarrow as pa

from penstock.repl.output import last_rows
from penstock.repl.output.last_rows import LastRows


def batch(*values):
    return pa.record_batch({"n": pa.array(values, pa.int64())})


def test_older_batches_make_room(monkeypatch):
    monkeypatch.setattr(last_rows, "MOST_BATCHES", 3)
    kept = LastRows(batch().schema, ["BIGINT"])
    for n in range(10):
        kept.add(batch(2 * n, 2 * n + 1))
    assert kept.rows().column("n").to_pylist() == [14, 15, 16, 17, 18, 19]
    assert kept.rows(3).column("n").to_pylist() == [17, 18, 19]
    assert kept.dropped == 14


def test_bytes_are_bounded_and_the_newest_batch_stays(monkeypatch):
    monkeypatch.setattr(last_rows, "MOST_BYTES", 16)
    kept = LastRows(batch().schema, ["BIGINT"])
    kept.add(batch(1))
    kept.add(batch(2, 3, 4, 5))
    assert kept.rows().column("n").to_pylist() == [2, 3, 4, 5]
    assert LastRows(batch().schema, ["BIGINT"]).rows(5).num_rows == 0
