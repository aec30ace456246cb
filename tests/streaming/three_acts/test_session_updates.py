"""Sessions of rows that are taken back: they split, shrink and go. DuckDB's islands over what is left; a
naive reading of late changes.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, TIMESTAMP
from penstock.client.session import Session
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.operators.factory import build_operator
from penstock.planner.expressions.nodes import AggregateCall
from penstock.planner.logical.aggregate import Phase
from penstock.planner.logical.windows import ON_CLOSE, Emission, SessionWindow, window_fields
from penstock.planner.physical.operator_specs import OperatorSpec
from tests.harness.operator_specs import window_aggregate_spec, window_table_spec
from tests.harness.operators import Remembered, opened
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end
from tests.streaming.three_acts.change_files import Changes, declared

CHANGES, GAP_S, DELAY_S = 1_200, 3, 4
SOURCE = f"SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '{GAP_S}' SECONDS)"
AGGREGATES = "COUNT(*), COUNT(v), SUM(v), MIN(d), MAX(v), COUNT(DISTINCT v)"
GROUPS = (
    f"SELECT k, window_start, window_end, {AGGREGATES} FROM {SOURCE} GROUP BY k, window_start, window_end"
)
ROWS = f"SELECT id, k, v, ts, window_start, window_end FROM {SOURCE}"
ISLANDS = f"""
WITH marked AS (SELECT *, ts > LAG(ts) OVER (PARTITION BY k ORDER BY ts) + INTERVAL '{GAP_S} seconds' AS fresh FROM t),
numbered AS (SELECT *, SUM(COALESCE(fresh, FALSE)::INT) OVER (PARTITION BY k ORDER BY ts) AS s FROM marked),
bounds AS (SELECT *, MIN(ts) OVER (PARTITION BY k, s) AS b, MAX(ts) OVER (PARTITION BY k, s) + INTERVAL '{GAP_S} seconds' AS e FROM numbered)
"""
WORDS = {
    GROUPS: f"{ISLANDS} SELECT k, b, e, {AGGREGATES} FROM bounds GROUP BY k, b, e",
    ROWS: f"{ISLANDS} SELECT id, k, v, ts, b, e FROM bounds",
}
# A clause, and how many seconds behind the watermark rows still count; all rows of the first table do.
LATENESS = "WITH LATENESS INTERVAL '5' SECONDS"
CLAUSES = {"": 0, "EMIT CHANGES": 0, f"EMIT ON WINDOW CLOSE {LATENESS}": 5, f"EMIT CHANGES {LATENESS}": 5}
SETTINGS = {"execution.batch.max-rows": "61"}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, duckdb.DuckDBPyConnection]:
    changes = Changes(5, ids=150).happen(CHANGES)
    connection = duckdb.connect()
    changes.load(connection, "t")
    return declared("t", changes.write(tmp_path_factory.mktemp("changes"))), connection


def _acts(script: Script, want: Counter[tuple[Any, ...]], place: Path) -> None:
    try:
        straight, folded = Folded(), Folded()
        job, channel = script.submit(1, None, 0)
        run_to_end(job, channel, straight)
        assert straight.rows == want
        given = rows_read(job)
        job, channel = script.submit(2, place, 20)
        run_and_stop(job, channel, folded, given // 3)
        job, channel = script.submit(3, place, 20)
        run_to_end(job, channel, folded)
        assert folded.rows == want
    finally:
        script.close()


@pytest.mark.parametrize(("query", "clause"), [(ROWS, ""), *((GROUPS, clause) for clause in CLAUSES)])
def test_sessions_of_what_is_left(
    query: str, clause: str, changed: tuple[str, duckdb.DuckDBPyConnection], tmp_path: Path
) -> None:
    want = Counter(changed[1].execute(WORDS[query]).fetchall())
    assert len(want) > 50
    _acts(Script("sessions", SETTINGS, f"{changed[0]}{query} {clause}"), want, tmp_path)


def _late_and_kept(lines: list[str], lateness_s: int) -> tuple[int, list[dict[str, Any]]]:
    """Read the changes of one split: how many rows come too late, and the rows that those on time leave
    behind.
    """
    watermark, late = datetime.min + timedelta(days=1), 0
    left: Counter[str] = Counter()
    for line in lines:
        change = json.loads(line)
        for row, weight in ((change["before"], -1), (change["after"], 1)):
            if row is None:
                continue
            time = datetime.fromisoformat(row["ts"])
            if time < watermark - timedelta(seconds=lateness_s):
                late += 1
            else:
                left[json.dumps(row)] += weight
            watermark = max(watermark, time - timedelta(seconds=DELAY_S))
    assert min(left.values()) >= 0
    return late, [json.loads(text) for text, weight in left.items() for _ in range(weight)]


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    changes = Changes(8, ids=25).happen(CHANGES)
    text = declared("t", changes.write(tmp_path_factory.mktemp("hasty"), files=1))
    yield text.replace("INTERVAL '1' HOUR", f"INTERVAL '{DELAY_S}' SECONDS"), changes.lines


@pytest.mark.parametrize(("query", "clause"), [(ROWS, ""), *((GROUPS, clause) for clause in CLAUSES)])
def test_what_is_taken_back_too_late_stays(
    query: str, clause: str, hasty: tuple[str, list[str]], tmp_path: Path
) -> None:
    late, rows = _late_and_kept(hasty[1], CLAUSES[clause])
    assert late > 100
    table = Changes(0)
    table.rows = dict(enumerate(rows))
    with duckdb.connect() as connection:
        table.load(connection, "t")
        want = Counter(connection.execute(WORDS[query]).fetchall())
    script = Script("late", SETTINGS, f"{hasty[0]}{query} {clause}")
    job, channel = script.submit(1, None, 0)
    folded = Folded()
    run_to_end(job, channel, folded)
    assert folded.rows == want
    assert sum(operator.late_rows for operator in job.metrics().operators) == late
    assert not any(
        operator.state_entries for operator in job.metrics().operators if "source" not in operator.name
    )
    _acts(script, want, tmp_path)


def test_sessions_of_a_group_of_times(changed: tuple[str, duckdb.DuckDBPyConnection]) -> None:
    """Rows that are given once come of rows that are taken back, and the plan says so."""
    session = Session({**SETTINGS, "parallelism.default": "2"})
    try:
        for statement in session.parse(changed[0]):
            session.run(statement)
        assert session.execute(GROUPS).shape.insert_only
        shape = session.execute(ROWS).shape
        assert shape.insert_only and shape.upsert_key is None, (
            "what is taken back too late stays beside what replaced it"
        )
        outer = f"SELECT window_end, SUM(n) FROM TUMBLE(TABLE (SELECT window_time, COUNT(*) AS n FROM {SOURCE} GROUP BY k, window_start, window_end,"
        outer += (
            " window_time), DESCRIPTOR(window_time), INTERVAL '20' SECONDS) GROUP BY window_start, window_end"
        )
        got = Counter(tuple(row.values()) for row in session.execute(outer).final_rows().to_pylist())
        end = "time_bucket(INTERVAL '20 seconds', e - INTERVAL '1 millisecond') + INTERVAL '20 seconds'"
        assert got == Counter(
            changed[1].execute(f"{ISLANDS} SELECT {end} AS w, COUNT(*) FROM bounds GROUP BY w").fetchall()
        )
    finally:
        session.close()


INPUT = Schema((Field("k", BIGINT), Field("ts", TIMESTAMP, role=Role.EVENT_TIME)))
WINDOW = SessionWindow(1, 10, partition_keys=(0,))


def _specs(emission: Emission = ON_CLOSE) -> list[OperatorSpec]:
    count = AggregateCall("count", (), BIGINT, False)
    grouped = Schema((INPUT[0], Field("n", BIGINT), *window_fields()))
    return [
        window_aggregate_spec(
            "id", "sessions", grouped, INPUT, WINDOW, (0,), (count,), Phase.SINGLE, False, emission
        ),
        window_table_spec("id", "rows", INPUT.concat(Schema(window_fields())), WINDOW, False),
    ]


def _rows(*rows: tuple[int | None, int, int]) -> Batch:
    columns = [
        pa.array([k for k, _, _ in rows], pa.int64()),
        pa.array([t for _, t, _ in rows], pa.int64()).view(pa.timestamp("us")),
    ]
    return Batch(
        pa.RecordBatch.from_arrays(columns, schema=INPUT.to_arrow()), np.array([w for _, _, w in rows])
    )


@pytest.mark.parametrize("number", [0, 1])
def test_a_row_between_is_taken_back(number: int) -> None:
    operator, out = build_operator(_specs()[number], JobOptions()), Remembered()
    metrics = opened(operator).metrics
    operator.on_batch(_rows((1, 0, 1), (1, 10, 2), (1, 20, 1), (None, 5, 3)), 0, out)
    operator.on_watermark(10, out)
    operator.on_batch(_rows((1, 10, -1)), 0, out)
    operator.on_watermark(15, out)
    assert not out.batches and metrics.late_rows == 0
    operator.on_batch(_rows((1, 10, -1), (1, 31, 1), (None, 5, -1)), 0, out)
    assert metrics.late_rows == 2, "both are behind the watermark"
    operator.on_watermark(MAX_WATERMARK_US, out)
    ends = Counter(
        (row["k"], row["window_end"] - datetime(1970, 1, 1))
        for row in out.rows()
        for _ in range(row.get("n", 1))
    )
    us = timedelta(microseconds=1)
    assert ends == {(None, 15 * us): 3, (1, 30 * us): 3, (1, 41 * us): 1}
    assert metrics.state_entries == 0 and not any(
        state.snapshot().num_rows for state in operator.keyed_states().values()
    )


@pytest.mark.parametrize("emission", [ON_CLOSE, Emission(early=True), Emission(lateness_us=20)])
def test_taking_all_back_leaves_nothing(emission: Emission) -> None:
    for spec in _specs(emission):
        operator, out = build_operator(spec, JobOptions()), Remembered()
        metrics = opened(operator).metrics
        rows = [(k, t, 1 + t % 3) for k in (1, 2, None) for t in range(0, 90, 6)]
        operator.on_batch(_rows(*rows), 0, out)
        operator.on_batch(_rows(*((k, t, -w) for k, t, w in rows)), 0, out)
        assert metrics.state_entries == 0 and not any(
            state.snapshot().num_rows for state in operator.keyed_states().values()
        )
        assert (
            sum(
                batch.num_rows if batch.weights is None else int(batch.weights.sum()) for batch in out.batches
            )
            == 0
        )
        operator.on_batch(_rows((3, 1, -1)), 0, out)
        operator.on_watermark(200, out)
        assert metrics.state_entries == 0, "what never came is forgotten with its time"


def _at(changes: list[tuple[int, int, int]], behind: list[int]) -> Batch:
    """Changes as (key, time, weight), each with the watermark of its split where it came behind that, else
    -1.
    """
    reached = np.array([MIN_WATERMARK_US if each < 0 else each for each in behind])
    return Batch(_rows(*changes).rows, np.array([weight for _, _, weight in changes]), reached)


def _islands(left: Counter[tuple[int, int]]) -> Counter[tuple[int, timedelta]]:
    """Return how many rows the session of each key and end has."""
    found: Counter[tuple[int, timedelta]] = Counter()
    for key in {key for key, _ in left}:
        times = sorted(time for (k, time), weight in left.items() if k == key for _ in range(weight))
        count = 0
        for time, following in zip(times, [*times[1:], None], strict=True):
            count += 1
            if following is None or following > time + 10:
                found[key, timedelta(microseconds=time + 10)] += count
                count = 0
    return found


@pytest.mark.parametrize("seed", range(30))
def test_a_change_counts_by_its_split_alone_and_what_retracts_a_late_row_is_late(seed: int) -> None:
    """Two splits in disorder, any interleaving and any cuts: both operators answer as the changes that
    were on time in their split do.
    """
    dice = random.Random(seed)
    reached, alive, events = [0, 0], ([], []), []
    for _ in range(120):
        split = dice.randrange(2)
        if alive[split] and dice.random() < 0.4:
            (key, time), weight = alive[split].pop(dice.randrange(len(alive[split]))), -1
        else:
            key, time, weight = dice.randrange(2), max(0, reached[split] + dice.randint(-25, 12)), 1
            alive[split].append((key, time))
        events.append(((key, time, weight), reached[split] if time < reached[split] else -1, min(reached)))
        reached[split] = max(reached[split], time - dice.randint(0, 6))
    left: Counter[tuple[int, int]] = Counter()
    for (key, time, weight), behind, _ in events:
        left[key, time] += weight if behind < 0 else 0
    late = sum(behind >= 0 for _, behind, _ in events)
    assert min(left.values()) >= 0 and late > 10
    for spec in _specs():
        operator, out, place, passed = build_operator(spec, JobOptions()), Remembered(), 0, 0
        metrics = opened(operator).metrics
        while place < len(events):
            run = events[place : place + dice.randint(1, 9)]
            least = run[0][2] - dice.choice([0, 8])  # how far time has come here is not how far splits have
            if least > passed:
                passed = least
                operator.on_watermark(passed, out)
            operator.on_batch(_at([change for change, _, _ in run], [behind for _, behind, _ in run]), 0, out)
            place += len(run)
        operator.on_watermark(MAX_WATERMARK_US, out)
        ends: Counter[tuple[int, timedelta]] = Counter()
        for row in out.rows():
            ends[row["k"], row["window_end"] - datetime(1970, 1, 1)] += row.get("n", 1)
        assert ends == _islands(left)
        assert metrics.late_rows == late and metrics.state_entries == 0


def test_the_rule_of_inserts_would_retract_a_row_that_was_dropped() -> None:
    """The example of docs/TIME.md: whether its session is open may be another matter when a row is
    retracted than when it came.
    """
    # all of one split, whose watermark is 20 from the first on
    changes = [(1, 20, 1), (1, 8, 1), (1, 15, 1), (1, 8, -1)]
    open_times: list[int] = []
    counted: Counter[int] = Counter()
    for _, time, weight in changes:  # late only if the session it belongs to has ended by the watermark
        near = [other for other in open_times if abs(other - time) <= 10]
        if max([time, *near]) + 10 >= 20:
            counted[time] += weight
            open_times.append(time)
    assert counted[8] == -1, "its insertion was late, its retraction is not"
    for spec in _specs():
        operator, out = build_operator(spec, JobOptions()), Remembered()
        metrics = opened(operator).metrics
        operator.on_batch(_at(changes, [-1, 20, 20, 20]), 0, out)
        operator.on_watermark(MAX_WATERMARK_US, out)
        assert metrics.late_rows == 3
        assert [row["window_end"] - datetime(1970, 1, 1) for row in out.rows()] == [
            timedelta(microseconds=30)
        ]
