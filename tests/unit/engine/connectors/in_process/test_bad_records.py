"""Records that could not be read: kept once each, the oldest dropped, counted all."""

from __future__ import annotations

from penstock.engine.connectors.in_process.bad_records import BadRecords, RejectedRecord


def _record(position: int, split: str = "a.csv") -> RejectedRecord:
    return RejectedRecord("x,y", "a.csv", split, position, None, "no number")


def test_a_record_read_twice_is_there_once() -> None:
    records = BadRecords()
    records.add("T", [_record(2), _record(1)])
    records.add("t", [_record(2), _record(2, "b.csv")])
    rows = records.arrow_table("t")
    assert list(zip(rows["split"].to_pylist(), rows["position"].to_pylist(), strict=True)) == [
        ("a.csv", 1),
        ("a.csv", 2),
        ("b.csv", 2),
    ]
    assert records.total("t") == 3


def test_the_oldest_go_and_are_counted() -> None:
    records = BadRecords()
    records.add("t", [_record(i) for i in range(10_001)])
    assert records.total("t") == 10_001
    rows = records.arrow_table("t")
    assert rows.num_rows == 10_000 and rows["position"][0].as_py() == 1


def test_a_dropped_table_has_none() -> None:
    records = BadRecords()
    records.add("t", [_record(1)])
    records.forget("T")
    assert records.total("t") == 0 and records.arrow_table("t").num_rows == 0
