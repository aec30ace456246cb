"""Watermark alignment that would do nothing is refused when the query is planned."""

from __future__ import annotations

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session

DRIFT = "'scan.watermark.alignment.max-drift' = '1 min'"
WATERMARK = ", WATERMARK FOR ts AS ts"


@pytest.mark.parametrize(
    ("watermark", "options", "settings", "said"),
    [
        ("", DRIFT, {}, "no watermark"),
        (
            WATERMARK,
            "'scan.watermark.alignment.group' = 'g'",
            {},
            "without 'scan.watermark.alignment.max-drift'",
        ),
        (
            WATERMARK,
            DRIFT,
            {"deployment": "processes", "parallelism.default": "2"},
            "several worker processes",
        ),
        (WATERMARK, DRIFT, {"deployment": "processes"}, None),
        (WATERMARK, DRIFT, {"parallelism.default": "2"}, None),
    ],
)
def test_where_it_works(watermark: str, options: str, settings: dict[str, str], said: str | None) -> None:
    session = Session(settings)
    try:
        session.execute(f"CREATE TABLE t (ts TIMESTAMP{watermark}) WITH ('connector' = 'datagen', {options})")
        if said is None:
            session.execute("EXPLAIN SELECT * FROM t")
            return
        with pytest.raises(PenstockError, match="SQL-1408") as refused:
            session.execute("EXPLAIN SELECT * FROM t")
        assert said in refused.value.message
    finally:
        session.close()
