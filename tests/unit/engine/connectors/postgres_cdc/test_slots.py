"""Slots that can be read from, and those that cannot."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.postgres_cdc.slots import check_slot, position_of, text_of

GOOD: dict[str, Any] = {
    "plugin": "pgoutput",
    "database": "shop",
    "wal_status": "reserved",
    "confirmed_flush_lsn": "1/A0",
    "active": False,
    "active_pid": None,
}


def test_positions_are_read_and_written() -> None:
    assert position_of("16/B374D848") == (0x16 << 32) + 0xB374D848
    assert text_of(position_of("16/B374D848")) == "16/B374D848"


def test_a_slot_that_can_be_read_from() -> None:
    check_slot(None, "s", "shop", None)
    check_slot(GOOD, "s", "shop", None)
    check_slot(GOOD, "s", "shop", position_of("1/A0"))


@pytest.mark.parametrize(
    ("change", "position", "code", "retriable"),
    [
        ({"plugin": "wal2json"}, None, "DAT-5409", False),
        ({"database": "other"}, None, "DAT-5409", False),
        ({"wal_status": "lost"}, None, "DAT-5410", False),
        ({"invalidation_reason": "idle_timeout"}, None, "DAT-5410", False),
        ({}, "1/9F", "DAT-5411", False),
        ({"active": True, "active_pid": 7}, None, "DAT-5412", True),
    ],
)
def test_a_slot_that_cannot_be_read_from(
    change: dict[str, Any], position: str | None, code: str, retriable: bool
) -> None:
    at = None if position is None else position_of(position)
    with pytest.raises(PenstockError) as raised:
        check_slot(GOOD | change, "s", "shop", at)
    assert raised.value.code == code and raised.value.retriable is retriable and raised.value.hint
    if code in ("DAT-5410", "DAT-5411"):
        assert "SELECT pg_drop_replication_slot('s')" in str(raised.value.hint)


def test_a_slot_that_is_gone_is_no_error_before_anything_was_read() -> None:
    with pytest.raises(PenstockError, match="no longer exists"):
        check_slot(None, "s", "shop", 5)
