"""Rows that a Kafka sink cannot write: they fail the job with their row, or are left out, counted and stored."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.epoch_target import DELETED
from penstock.engine.api.operator import Services
from penstock.engine.connectors.in_process.bad_records import BadRecords
from penstock.engine.connectors.kafka.producer_records import Records
from penstock.engine.connectors.kafka.record_limits import RecordLimits
from tests.unit.engine.connectors.kafka.kafka_sinks import declared, records, request, rows

LIMIT = {"message.max.bytes": "1000"}


def test_the_error_names_the_first_row_that_is_too_large() -> None:
    limits = RecordLimits(request(declared("t")), LIMIT)
    fits = records(b"x" * 1000)
    assert list(limits.accepted(lambda _: fits, rows(1))) == [fits]
    with pytest.raises(PenstockError, match=r"DAT-5153.*1,001 bytes, and 1,000") as raised:
        list(limits.accepted(lambda _: records(b"x" * 9, b"x" * 1000, keys=(b"k", b"k")), rows(1, 2)))
    assert raised.value.detail == "its row begins k = 2, v = v2"


def test_skipped_rows_are_counted_once_their_neighbours_are_there() -> None:
    asked = request(declared("t", on__error="skip"))
    limits = RecordLimits(asked, LIMIT)
    limits.begin("w, epoch 1")
    (kept,) = limits.accepted(lambda _: records(b"a", b"x" * 2000, b"b"), rows(1, 2, 3))
    assert kept.values.to_pylist() == [b"a", b"b"]
    assert "rows_refused" not in asked.metrics.counters
    limits.publish()
    limits.publish()
    assert asked.metrics.counters["rows_refused"] == 1


def encode(batch: pa.RecordBatch) -> Records:
    """Refuse the value v2."""
    values = batch.column("v").to_pylist()
    if "v2" in values:
        raise PenstockError("DAT-5214", "a value of column v cannot be written", sqlstate="22000")
    return records(*(b"x" * (2000 if value == "v4" else 1) for value in values))


@pytest.mark.parametrize("times", [1, 2])
def test_refused_rows_are_stored_once_as_rows_of_the_table(times: int) -> None:
    bad = BadRecords()
    asked = replace(request(declared("t", on__error="table")), services=Services(bad))
    limits = RecordLimits(asked, LIMIT)
    marked = rows(1, 2, 3, 4).add_column(0, DELETED, pa.array([False] * 4))
    for _ in range(times):
        # a repeated epoch has the same rows
        limits.begin("w, epoch 3")
        assert sum(len(kept) for kept in limits.accepted(encode, marked)) == 2
        limits.publish()
    stored = bad.arrow_table("t").to_pylist()
    assert [(json.loads(row["raw"]), row["split"], row["position"]) for row in stored] == [
        ({"k": 2, "v": "v2"}, "w, epoch 3", 1),
        ({"k": 4, "v": "v4"}, "w, epoch 3", 3),
    ]
    assert "cannot be written" in stored[0]["error"] and "1,000 may be sent" in stored[1]["error"]


def test_what_is_not_about_a_value_fails_the_job() -> None:
    def refuse(_: pa.RecordBatch) -> Records:
        raise PenstockError("DAT-5221", "the registry refuses the user")

    limits = RecordLimits(request(declared("t", on__error="table")), LIMIT)
    with pytest.raises(PenstockError, match="DAT-5221"):
        list(limits.accepted(refuse, rows(1, 2)))
