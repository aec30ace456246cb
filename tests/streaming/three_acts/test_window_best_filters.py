"""Joins of a stream with the MAX or MIN of its own windows, with and without the filter on the rows: the same
rows and late rows, straight and in three acts, and little state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.client.session import Session
from penstock.engine.job.job import Job
from penstock.engine.operators.join.runtime_filter import PRUNED
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end
from tests.streaming.three_acts.late_free import declare, rows_of
from tests.streaming.three_acts.test_timed_joins import submit

ROWS = 1500
OFF = "window_best_filters"
# rows out of order, late ones, NULL times; values 0 to 22, so that several rows are the best of a window
SPLITS = rows_of(ROWS, 3, lambda i: 30 if i % 29 == 7 else 0)


def joined(best: str, on: str, *, kind: str = "JOIN", rows: str = "a") -> str:
    windows = f"SELECT {best} AS best, window_end AS w FROM TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end"
    return f"SELECT x.id, x.v, h.best, h.w FROM {rows} AS x {kind} ({windows}) AS h ON x.v = h.best AND {on}"


def reached(best: str, on: str, rows: str) -> str:
    groups = f"SELECT v, COUNT(*) AS n, window_start AS s, window_end AS w FROM {rows} GROUP BY v, window_start, window_end"
    windows = f"SELECT {best} AS best, window_start AS s, window_end AS w FROM (SELECT COUNT(*) AS n, window_start, window_end FROM {rows} GROUP BY v, window_start, window_end) AS c GROUP BY window_start, window_end"
    return f"SELECT g.v, g.n, h.best, h.w FROM ({groups}) AS g JOIN ({windows}) AS h ON g.s = h.s AND g.w = h.w AND {on}"


HOP = "HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '20' SECOND)"
CUMULATE = "CUMULATE(TABLE a, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '30' SECOND)"
QUERIES = {
    "greatest": joined("MAX(v)", "x.ts BETWEEN h.w - INTERVAL '10' SECOND AND h.w"),
    "least": joined("MIN(v)", "x.ts >= h.w - INTERVAL '10' SECOND AND x.ts < h.w"),
    "of the minute": joined("MAX(v)", "x.ts BETWEEN h.w - INTERVAL '25' SECOND AND h.w + INTERVAL '35' SECOND"),
    "some rows": joined("MAX(v)", "x.ts > h.w - INTERVAL '10' SECOND AND x.ts <= h.w", rows="(SELECT * FROM a WHERE v < 22)"),
    "right": joined("MAX(v)", "x.ts BETWEEN h.w - INTERVAL '10' SECOND AND h.w", kind="RIGHT JOIN"),
    "groups": reached("MAX(n)", "g.n >= h.best", HOP),
    "least groups": reached("MIN(n)", "g.n = h.best", CUMULATE),
}  # fmt: skip


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session(
        {"execution.runtime-mode": "streaming", "execution.batch.max-rows": "60", "bounded.backend": "duckdb"}
    )
    declare(session, "a", SPLITS, tmp_path)
    yield session
    session.close()


def counted(job: Job, name: str) -> int:
    return sum(operator.counters.get(name, 0) for operator in job.metrics().operators)


def run(
    session: Session, text: str, disabled: str, parallelism: int
) -> tuple[Counter[tuple[Any, ...]], Job, int]:
    """Return the rows, the job, and the most rows that its join was seen to store."""
    session.settings.set("optimizer.disabled-rules", disabled)
    job, channel = submit(session, text, parallelism, None)
    folded, most = Folded(), 0
    while not job.wait(0):
        folded.take(channel, 0.001)
        stored = [o.state_entries or 0 for o in job.metrics().operators if o.name.endswith("interval join")]
        most = max(most, sum(stored))
    run_to_end(job, channel, folded)
    return folded.rows, job, most


@pytest.mark.parametrize("name", QUERIES)
def test_rows_and_late_rows_are_the_same(session: Session, name: str) -> None:
    whole, plain, stored = run(session, QUERIES[name], OFF, 1)
    assert whole
    assert not counted(plain, PRUNED)
    rows, job, kept = run(session, QUERIES[name], "", 2)
    assert rows == whole
    assert job.metrics().late_rows == plain.metrics().late_rows > 0
    if name != "of the minute":
        assert counted(job, PRUNED) > ROWS // 2
        assert kept < 100 or kept < stored / 2, "rows that cannot match are stored"


@pytest.mark.parametrize("name", ["least", "groups"])
def test_three_acts(session: Session, tmp_path: Path, name: str) -> None:
    whole, _, _ = run(session, QUERIES[name], OFF, 1)
    session.settings.set("optimizer.disabled-rules", "")
    folded, state = Folded(), tmp_path / "state"
    run_and_stop(*submit(session, QUERIES[name], 2, state), folded, ROWS // 4)
    run_to_end(*submit(session, QUERIES[name], 3, state), folded)
    assert folded.rows == whole


def test_a_checkpoint_without_the_filter_is_restored_with_it(session: Session, tmp_path: Path) -> None:
    text = QUERIES["greatest"]
    whole, _, _ = run(session, text, OFF, 1)
    folded, state = Folded(), tmp_path / "state"
    run_and_stop(*submit(session, text, 2, state), folded, ROWS // 4)
    session.settings.set("optimizer.disabled-rules", "")
    run_to_end(*submit(session, text, 2, state), folded)
    assert folded.rows == whole
