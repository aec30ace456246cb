"""No row that is on time for its own split is dropped, however splits, slots and batches interleave: what
is dropped is exactly what was late.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from penstock.catalog.types import TIMESTAMP
from tests.harness.reading import drain, open_source, table_of
from tests.streaming.nexmark.site import FOLDER, database
from tests.streaming.three_acts.acts import Folded, Script, run_to_end

COUNT, RATE, SPLITS = 20_000, 1_000, 4
BOUND_MS, WINDOW = 2_000, timedelta(seconds=1)
OPTIONS = {
    "events.num": str(COUNT),
    "event-rate": str(RATE),
    "splits": str(SPLITS),
    "out-of-order": f"{BOUND_MS} ms",
}
QUERY = "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '1' SECOND)) GROUP BY window_start, window_end;"

Windows = Counter[object]


def streamed(delay_ms: int, parallelism: int, batch: int) -> tuple[Windows, int]:
    """Return the bids of each window, and how many were late."""
    text = (FOLDER / "tables.sql").read_text(encoding="utf-8")
    given = ", ".join(f"'{key}' = '{value}'" for key, value in OPTIONS.items())
    text = text.replace("'events.num' = '100000', 'splits' = '2', 'out-of-order' = '2 s'", given)
    text = text.replace("INTERVAL '2' SECOND\n", f"INTERVAL '{delay_ms / 1000:.3f}' SECOND\n")
    acts = Script("on time", {"execution.batch.max-rows": str(batch)}, text + QUERY)
    try:
        job, channel = acts.submit(parallelism, None, 0)
        folded = Folded()
        run_to_end(job, channel, folded)
        assert set(folded.rows.values()) <= {1}
        return Counter(dict(folded.rows.keys())), sum(
            operator.late_rows for operator in job.metrics().operators
        )
    finally:
        acts.close()


def by_hand(delay_ms: int) -> tuple[Windows, int]:
    """Return the same, row by row: a row is late when its window had ended by the watermark its own split
    had just before it.
    """
    windows: Windows = Counter()
    late = 0
    for split in range(SPLITS):
        table = table_of({"dateTime": TIMESTAMP}, {"connector": "nexmark", "table": "bid"} | OPTIONS)
        latest = None
        for row in drain(open_source(table, subtask=split, parallelism=SPLITS)).rows:
            time = row["dateTime"]
            start = time.replace(microsecond=0)
            if latest is not None and start + WINDOW <= latest - timedelta(milliseconds=delay_ms):
                late += 1
            else:
                windows[start] += 1
            latest = time if latest is None else max(latest, time)
    return windows, late


def batch_answer() -> Windows:
    rows = (
        database(COUNT, RATE)
        .execute("SELECT date_trunc('second', dateTime), count(*) FROM bid GROUP BY 1")
        .fetchall()
    )
    return Counter(dict(rows))


@pytest.mark.parametrize(("parallelism", "batch"), [(1, 1_000), (2, 137), (3, 4_000)])
def test_with_a_delay_of_the_bound_nothing_is_late(parallelism: int, batch: int) -> None:
    assert streamed(BOUND_MS, parallelism, batch) == (batch_answer(), 0)


@pytest.mark.parametrize("delay_ms", [0, 400])
def test_with_less_exactly_the_late_rows_are_missing(delay_ms: int) -> None:
    windows, late = by_hand(delay_ms)
    whole = batch_answer()
    assert late > 100
    assert windows.total() + late == whole.total()
    assert all(windows[start] <= count for start, count in whole.items())
    for parallelism, batch in ((1, 1_000), (2, 137), (3, 4_000)):
        assert streamed(delay_ms, parallelism, batch) == (windows, late)
