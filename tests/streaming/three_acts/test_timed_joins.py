"""Interval joins and window joins in three acts against DuckDB: rows out of order in several splits, late
ones, NULL keys and times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.client.session import Session
from penstock.engine.api.job_options import JobOptions
from penstock.engine.connectors.in_process.result_channels import ResultChannel
from penstock.engine.job.job import Job
from penstock.planner.logical.sink import Sink
from penstock.planner.statements.nodes import Query
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end
from tests.streaming.three_acts.late_free import database, declare, on_time, rows_of

ROWS = 1800
SPLITS = {
    "a": rows_of(ROWS, 3, lambda i: 30 if i % 29 == 7 else 0),
    "b": rows_of(ROWS // 2, 5, lambda i: 25 if i % 37 == 9 else -i / 4),
}
ON_TIME = {name: on_time(splits) for name, splits in SPLITS.items()}
_BETWEEN = "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '3' SECOND AND a.ts + INTERVAL '5' SECOND"
_AFTER = "a.k = b.k AND b.ts > a.ts AND b.ts < a.ts + INTERVAL '2' SECOND AND a.v + b.v > 10"
_WINDOW = "{x}.k = {y}.k AND {x}.window_start = {y}.window_start AND {x}.window_end = {y}.window_end"
_SAME = _WINDOW.format(x="x", y="y")
# By name: the query. WA and WB are a and b in windows of ten seconds; SEMI and ANTI joins are LEFT SEMI and
# LEFT ANTI here.
INTERVALS = {
    "inner": f"SELECT a.id, b.id FROM a JOIN b ON {_BETWEEN}",
    "where": f"SELECT a.id, b.id FROM a, b WHERE {_AFTER}",
    "left": f"SELECT a.id, b.id, a.ts FROM a LEFT JOIN b ON {_AFTER}",
    "right": f"SELECT a.id, b.id FROM a RIGHT JOIN b ON {_BETWEEN}",
    "full": f"SELECT a.id, b.id FROM a FULL JOIN b ON {_AFTER}",
    "semi": f"SELECT a.id FROM a SEMI JOIN b ON {_AFTER}",
    "anti": f"SELECT a.id FROM a ANTI JOIN b ON {_AFTER}",
    "exists": f"SELECT a.id FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE {_AFTER})",
    "exists-between": f"SELECT a.id FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE {_BETWEEN})",
    "difference": "SELECT a.id, b.id FROM a JOIN b ON a.k = b.k AND b.ts - a.ts <= INTERVAL '2' SECOND AND INTERVAL '-1' SECOND < b.ts - a.ts",
    "itself": "SELECT x.id, y.id FROM a AS x LEFT JOIN a AS y ON x.k = y.k AND y.ts > x.ts AND y.ts <= x.ts + INTERVAL '1' SECOND",
    "same-time": "SELECT a.id, b.id FROM a JOIN b ON a.ts = b.ts",
    "two": f"SELECT a.id, b.id, c.id FROM a, b, b AS c WHERE {_AFTER} AND c.k = b.k AND c.ts BETWEEN b.ts AND b.ts + INTERVAL '1' SECOND",
}
WINDOWS = {
    "inner": f"SELECT x.id, y.id, x.window_end FROM WA AS x JOIN WB AS y ON {_SAME}",
    "left": f"SELECT x.id, y.id, x.window_end FROM WA AS x LEFT JOIN WB AS y ON {_SAME} AND x.v < y.v",
    "right": f"SELECT x.id, y.id, y.window_end FROM WA AS x RIGHT JOIN WB AS y ON {_SAME}",
    "full": "SELECT window_end, COUNT(*), COUNT(x.id), COUNT(y.id) FROM WA AS x FULL JOIN WB AS y USING (k, window_start, window_end)"
    " GROUP BY window_start, window_end",
    "in": "SELECT id, window_end FROM WA AS x WHERE (k, window_start, window_end) IN (SELECT k, window_start, window_end FROM WB AS y WHERE v > 9)",
    "exists": f"SELECT id, window_end FROM WA AS x WHERE EXISTS (SELECT * FROM WB AS y WHERE {_SAME} AND y.v = x.v)",
    "not-exists": f"SELECT id, window_end FROM WA AS x WHERE NOT EXISTS (SELECT * FROM WB AS y WHERE {_SAME} AND y.v = x.v)",
    "above": f"SELECT x.window_end, COUNT(*), SUM(y.v) FROM WA AS x JOIN WB AS y ON {_SAME} GROUP BY x.window_start, x.window_end",
    "top": "SELECT window_end, id, bid FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY id DESC, bid) AS n FROM"
    f" (SELECT x.id, y.id AS bid, x.window_start, x.window_end FROM WA AS x JOIN WB AS y ON {_SAME})) WHERE n <= 2",
}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session(
        {"execution.runtime-mode": "streaming", "execution.batch.max-rows": "60", "bounded.backend": "duckdb"}
    )
    for name, splits in SPLITS.items():
        declare(session, name, splits, tmp_path)
    yield session
    session.close()


def answer(words: str) -> Counter[tuple[Any, ...]]:
    start = "time_bucket(INTERVAL '10 seconds', ts)"
    for name in ("a", "b"):
        columns = f"*, {start} AS window_start, {start} + INTERVAL '10 seconds' AS window_end"
        words = words.replace(f"W{name.upper()}", f"(SELECT {columns} FROM {name} WHERE ts IS NOT NULL)")
    with database(**ON_TIME) as connection:
        return Counter(connection.execute(words).fetchall())


def ours(words: str) -> str:
    for name in ("a", "b"):
        words = words.replace(
            f"W{name.upper()}", f"TUMBLE(TABLE {name}, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
        )
    return words.replace("SEMI JOIN", "LEFT SEMI JOIN").replace("ANTI JOIN", "LEFT ANTI JOIN")


def submit(
    session: Session, text: str, parallelism: int, state_dir: Path | None
) -> tuple[Job, ResultChannel]:
    session.settings.set("parallelism.default", str(parallelism))
    query = session.parse(text)[0].node
    assert isinstance(query, Query)
    graph = session.pipeline.plan(session.pipeline.bind(query)).graph
    assert graph is not None
    sink = next(spec for chain in graph.chains for spec in chain.operators if isinstance(spec.node, Sink))
    assert sink.facts.insert_only, "time settles what is given"
    session.state.channels.release(sink.operator_id)
    channel = session.state.channels.channel(sink.operator_id)
    options = replace(
        JobOptions.from_settings(session.settings, name="act", state_dir=state_dir),
        checkpoint_interval_ms=20 if state_dir else 0,
    )
    return session.state.jobs.manager.submit(graph, options, "act" if state_dir else None), channel


def rows_of_a(job: Job) -> int:
    return max(
        (operator.rows_out for operator in job.metrics().operators if operator.name == "source a"), default=0
    )


def act(session: Session, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.streaming.three_acts.acts.rows_read", rows_of_a)
    expected = answer(words)
    straight = Folded()
    job, channel = submit(session, ours(words), 1, None)
    run_to_end(job, channel, straight)
    assert straight.rows == expected
    joins = [operator for operator in job.metrics().operators if operator.name.endswith("join")]
    assert joins
    assert all(operator.state_entries == 0 for operator in joins), "nothing is kept at the end of time"

    folded = Folded()
    state = tmp_path / "state"
    run_and_stop(*submit(session, ours(words), 2, state), folded, ROWS // 4)
    job, channel = submit(session, ours(words), 3, state)
    run_to_end(job, channel, folded)
    assert folded.rows == expected


@pytest.mark.parametrize("name", INTERVALS)
def test_interval_join_in_three_acts(
    session: Session, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    act(session, INTERVALS[name], tmp_path, monkeypatch)


@pytest.mark.parametrize("name", WINDOWS)
def test_window_join_in_three_acts(
    session: Session, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    act(session, WINDOWS[name], tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
def test_a_window_above_an_interval_join_drops_nothing(session: Session, kind: str) -> None:
    joined = f"SELECT a.id AS id, b.id AS other, a.ts AS ts FROM a {kind} JOIN b ON {_BETWEEN}"
    start = "time_bucket(INTERVAL '10 seconds', ts)"
    expected = answer(
        f"SELECT {start} + INTERVAL '10 seconds', COUNT(*), SUM(other) FROM ({joined}) WHERE ts IS NOT NULL GROUP BY {start}"
    )
    counted = "SELECT window_end, COUNT(*), SUM(other) FROM"
    text = f"{counted} TUMBLE(TABLE ({joined}), DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end"
    for parallelism in (1, 2):
        folded = Folded()
        job, channel = submit(session, text, parallelism, None)
        run_to_end(job, channel, folded)
        assert folded.rows == expected
        late = {
            operator.name: operator.late_rows for operator in job.metrics().operators if operator.late_rows
        }
        assert all(name.endswith("join") for name in late), late


def test_explain_says_what_frees_rows(session: Session) -> None:
    def explained(text: str) -> str:
        return "\n".join(
            session.execute(f"EXPLAIN OPTIMIZED {ours(text)}").final_rows().column(0).to_pylist()
        )

    bounded = "state bounded (rows of the left side until the watermark passes ts + 5 s, of the right side until the watermark passes ts + 3 s)"
    assert bounded in explained(INTERVALS["inner"])
    assert "WindowJoin left" in explained(WINDOWS["left"])
    assert "state bounded (rows of both sides until their window ends)" in explained(WINDOWS["left"])


def test_windows_that_correct_late_results_are_waited_for(session: Session) -> None:
    counted = (
        "SELECT k, window_start, window_end, COUNT(*) AS n FROM {w} GROUP BY k, window_start, window_end"
    )
    sides = [f"({counted.format(w=w)}) AS {name}" for w, name in (("WA", "x"), ("WB", "y"))]
    text = ours(f"SELECT x.k, x.n, y.n, x.window_end FROM {sides[0]} JOIN {sides[1]} ON {_SAME}")
    late = f"{text} EMIT ON WINDOW CLOSE WITH LATENESS INTERVAL '1' HOUR"
    answers = []
    for parallelism in ("1", "2"):
        session.settings.set("parallelism.default", parallelism)
        rows = session.execute(late).final_rows(PATIENCE_S)
        answers.append(Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True)))
    start = "time_bucket(INTERVAL '10 seconds', ts)"
    parts = [
        f"(SELECT k, {start} + INTERVAL '10 seconds' AS e, COUNT(*) AS n FROM {t} WHERE ts IS NOT NULL GROUP BY 1, 2) AS {t}_"
        for t in ("a", "b")
    ]
    tables = {name: pa.concat_tables(splits) for name, splits in SPLITS.items()}
    with database(**tables) as connection:
        words = (
            f"SELECT a_.k, a_.n, b_.n, a_.e FROM {parts[0]} JOIN {parts[1]} ON a_.k = b_.k AND a_.e = b_.e"
        )
        expected = Counter(connection.execute(words).fetchall())
    assert answers == [expected, expected]


_OF_FILE = "TUMBLE(TABLE f, DESCRIPTOR(ts), INTERVAL '10' SECONDS)"
_OF_ONE_WINDOW = "x.window_start = y.window_start AND x.window_end = y.window_end"
OF_A_FILE = {
    "aggregate": f"SELECT window_end, COUNT(*) FROM {_OF_FILE} GROUP BY window_start, window_end",
    "session": "SELECT window_end, COUNT(*) FROM SESSION(TABLE f, DESCRIPTOR(ts), INTERVAL '5' SECONDS) GROUP BY window_start, window_end",
    "interval join": "SELECT x.id, y.id FROM f AS x JOIN f AS y ON y.ts BETWEEN x.ts AND x.ts + INTERVAL '4' SECOND",
    "left interval join": "SELECT x.id, y.id FROM f AS x LEFT JOIN f AS y ON x.id < y.id AND y.ts BETWEEN x.ts AND x.ts + INTERVAL '4' SECOND",
    "window join": f"SELECT x.id, y.id FROM {_OF_FILE} AS x JOIN {_OF_FILE} AS y ON {_OF_ONE_WINDOW}",
    "full window join": f"SELECT x.id, y.id FROM {_OF_FILE} AS x FULL JOIN {_OF_FILE} AS y ON {_OF_ONE_WINDOW} AND x.id = y.id + 1",
}


@pytest.mark.parametrize("name", OF_A_FILE)
def test_a_file_has_one_meaning_as_a_stream(name: str, tmp_path: Path) -> None:
    """With and without source.replay the same rows are late, and given once; where none is late, the
    answer is that of the default mode.
    """

    def answer(mode: str, replay: bool, delay_s: int) -> tuple[Counter[Any], bool, int]:
        session = Session(
            {
                "execution.runtime-mode": mode,
                "execution.batch.max-rows": "2",
                "bounded.backend": "duckdb",
                "parallelism.default": "2",
            }
        )
        options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'parquet', 'source.replay' = '{replay}'"
        session.execute(
            f"CREATE TABLE f (id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '{delay_s}' SECOND) WITH ({options})"
        )
        found = session.execute(OF_A_FILE[name])
        rows = found.final_rows(PATIENCE_S)
        late = 0 if found.job is None else found.job.metrics().late_rows
        session.close()
        return (
            Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True)),
            found.shape.insert_only,
            late,
        )

    times = [datetime(2024, 1, 1) + timedelta(seconds=second) for second in (1, 8, 4, 30, 5, 31, 60, 52)]
    pq.write_table(
        pa.table({"id": list(range(len(times))), "ts": pa.array(times, pa.timestamp("ms"))}),
        tmp_path / "f.parquet",
    )
    file, recording = answer("streaming", False, 1), answer("streaming", True, 1)
    assert file == recording
    assert file[1] and file[2] > 0
    whole = answer("automatic", False, 100)
    assert answer("streaming", False, 100)[0] == whole[0] != file[0]
