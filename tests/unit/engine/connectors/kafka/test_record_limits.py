"""Records that are too large: refused with their row, or left out and counted."""

from __future__ import annotations

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.kafka.record_limits import RecordLimits
from tests.unit.engine.connectors.kafka.kafka_sinks import declared, records, request, rows


def test_the_error_names_the_first_row_that_is_too_large() -> None:
    limits = RecordLimits(request(declared("t")), {"message.max.bytes": "1000"})
    fits = records(b"x" * 1000)
    assert limits.within(fits, rows(1)) is fits
    with pytest.raises(PenstockError, match=r"DAT-5153.*1,001 bytes, and 1,000") as raised:
        limits.within(records(b"x" * 9, b"x" * 1000, keys=(b"k", b"k")), rows(1, 2))
    assert raised.value.detail == "its row begins k = 2, v = v2"


def test_skipped_rows_are_counted() -> None:
    asked = request(declared("t", on__error="skip"))
    limits = RecordLimits(asked, {"message.max.bytes": "1000"})
    kept = limits.within(records(b"a", b"x" * 2000, b"b"), rows(1, 2, 3))
    assert kept.values.to_pylist() == [b"a", b"b"]
    assert asked.metrics.counters["rows_refused"] == 1
