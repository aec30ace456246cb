"""Aggregates of arrays and rows on streams, in three acts, over inserts, changes and windows. The answer
is a naive reference's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.acts import run_and_stop, run_to_end
from tests.streaming.three_acts.test_nested import ROWS, TABLE, Nested, hashable, submit

Row = dict[str, Any]
_LATEST = "(SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY id % 100 DESC, id DESC) AS n FROM t) WHERE n <= 9)"
_CALLS = (
    "MIN(r), MAX(arr), ANY_VALUE(rs), COLLECT_SET(r), COLLECT_LIST(arr) FILTER (WHERE id % 9 = 4), MAX_BY(r, array(v, id)), MIN_BY(id, arr),"
    " COUNT(DISTINCT r), FIRST_VALUE(arr ORDER BY r DESC, id), LAST_VALUE(rs ORDER BY ts, id), MODE(arr), HISTOGRAM(r)"
)
SOURCES = {
    "inserts": f"SELECT k, {_CALLS} FROM t GROUP BY k",
    "changes": f"SELECT k, {_CALLS} FROM {_LATEST} GROUP BY k",
    "windows": f"SELECT window_start, {_CALLS} FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTES) GROUP BY window_start, window_end",
}


def place(value: Any) -> Any:
    """What sorts as a value does: NULL before all, also inside; a row by its fields, an array by its
    elements.
    """
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, *map(place, value.values()))
    return (1, *map(place, value)) if isinstance(value, list) else (1, value)


def ordered(values: Iterator[Any] | list[Any]) -> list[Any]:
    return sorted((value for value in values if value is not None), key=place)


def distinct(values: list[Any]) -> list[Any]:
    return [value for i, value in enumerate(values) if i == 0 or value != values[i - 1]]


def aggregated(rows: list[Row]) -> list[Any]:
    """What the calls give for the rows of one group."""

    def column(name: str) -> list[Any]:
        return ordered(row[name] for row in rows)

    r, arr, rs = column("r"), column("arr"), column("rs")
    counts = [(value, r.count(value)) for value in distinct(r)]
    down = min(rows, key=lambda row: (row["r"] is None, *(-part for part in order_of(row["r"])), row["id"]))
    return [
        r[0],
        arr[-1],
        rs[0],
        distinct(r),
        ordered(row["arr"] for row in rows if row["id"] % 9 == 4),
        max(rows, key=lambda row: (row["v"], row["id"]))["r"],
        min((row for row in rows if row["arr"] is not None), key=lambda row: (place(row["arr"]), row["id"]))[
            "id"
        ],
        len(counts),
        down["arr"],
        max(rows, key=lambda row: (row["ts"], row["id"]))["rs"],
        max(distinct(arr), key=arr.count),
        counts,
    ]


def order_of(row: Row | None) -> list[int]:
    return [] if row is None else [row["x"], ord(row["y"])]


def latest(rows: list[Row]) -> list[Row]:
    def first(v: int) -> list[Row]:
        return sorted(
            (row for row in rows if row["v"] == v), key=lambda row: (-(row["id"] % 100), -row["id"])
        )[:9]

    return [row for v in {row["v"] for row in rows} for row in first(v)]


def expected(rows: list[Row], key: Callable[[Row], Any]) -> Counter[Any]:
    keys = {key(row) for row in rows}
    return Counter(hashable([one, *aggregated([row for row in rows if key(row) == one])]) for one in keys)


def minutes(row: Row) -> datetime:
    time: datetime = row["ts"]
    return time.replace(second=0, microsecond=0) - timedelta(minutes=time.minute % 5)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": "300"})
    session.register("t", TABLE, time_column="ts", delay=5, stream=True)
    yield session
    session.close()


@pytest.mark.parametrize("name", SOURCES)
def test_three_acts(session: Session, name: str, tmp_path: Path) -> None:
    rows = TABLE.to_pylist()
    answer = expected(
        latest(rows) if name == "changes" else rows, minutes if name == "windows" else lambda row: row["k"]
    )
    straight = Nested()
    run_to_end(*submit(session, SOURCES[name], 1, None), straight)
    assert straight.rows == answer

    folded, state = Nested(), tmp_path / "state"
    run_and_stop(*submit(session, SOURCES[name], 2, state), folded, ROWS // 4)
    run_to_end(*submit(session, SOURCES[name], 3, state), folded)
    assert folded.rows == answer


def test_over(session: Session) -> None:
    text = "SELECT id, MAX(arr) OVER (PARTITION BY k ORDER BY ts, id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS m FROM t WHERE id % 20 = 1"
    table = session.execute(text).final_rows(PATIENCE_S)
    rows = sorted(
        (row for row in TABLE.to_pylist() if row["id"] % 20 == 1), key=lambda row: (row["ts"], row["id"])
    )
    found = {}
    for i, row in enumerate(rows):
        frame = [other["arr"] for other in rows[: i + 1] if other["k"] == row["k"]][-3:]
        found[row["id"]] = max(ordered(frame), key=place, default=None)
    assert dict(zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True)) == found
