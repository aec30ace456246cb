"""Updates and deletes whose event time is a column, many of them late: windows, joins in time and order by
time against a naive reading in DuckDB.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end
from tests.streaming.three_acts.change_files import Changes, Row, declared
from tests.streaming.three_acts.test_emit import _windows

CHANGES, DELAY_S = 900, 4
SETTINGS = {"execution.batch.max-rows": "61"}
TABLES = {
    "tumble": "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECONDS)",
    "hop": "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '20' SECONDS)",
    "cumulate": "CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '20' SECONDS)",
}
_GROUPS = "SELECT k, window_start, window_end, COUNT(*), SUM(v), MIN(d), COUNT(DISTINCT v) FROM {x} GROUP BY k, window_start, window_end"
_TOP = "SELECT id, v, window_end FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC NULLS LAST, id, ts, d) AS n"
_LAST = "SELECT k, id, v, window_end FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end ORDER BY ts DESC, id, d) AS n"
_RANKED = (
    "SELECT k, c, window_end FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY c DESC, k NULLS LAST) AS n"
    " FROM (SELECT k, window_start, window_end, COUNT(*) AS c FROM {x} GROUP BY k, window_start, window_end)) WHERE n <= 2"
)
# By name: the windows that are {x}, and the query, which DuckDB is asked over the rows that were on time for
# each window.
WINDOWS = {
    **{f"groups in {kind}": (kind, _GROUPS) for kind in TABLES},
    "corrected": ("tumble", f"{_GROUPS} EMIT CHANGES"),
    "top": ("tumble", f"{_TOP} FROM {{x}}) WHERE n <= 3"),
    "last in hop": ("hop", f"{_LAST} FROM {{x}}) WHERE n = 1"),
    "top groups": ("cumulate", _RANKED),
    "rows": ("hop", "SELECT k, v, COUNT(*) FROM {x} GROUP BY k, v, window_start, window_end"),
}


def _read(lines: list[str]) -> list[tuple[Row, int, datetime]]:
    """The rows of changes with their weights and what the watermark of their split was before each."""
    watermark, found = datetime.min + timedelta(days=1), []
    for line in lines:
        change = json.loads(line)
        for row, weight in ((change["before"], -1), (change["after"], 1)):
            if row is not None:
                time = datetime.fromisoformat(row["ts"])
                found.append((row, weight, watermark))
                watermark = max(watermark, time - timedelta(seconds=DELAY_S))
    return found


def _left(weighted: list[tuple[Any, int]]) -> list[Any]:
    """What weighted rows come to."""
    left: Counter[str] = Counter()
    for row, weight in weighted:
        left[json.dumps(row)] += weight
    assert min(left.values()) >= 0
    return [json.loads(text) for text, weight in left.items() for _ in range(weight)]


def _in_windows(lines: list[str], kind: str, each: bool) -> tuple[int, list[list[Any]]]:
    """How many rows are late for all their windows (``each``: for each of them), and the rows left in
    windows they were on time for.
    """
    late, found = 0, []
    for row, weight, watermark in _read(lines):
        windows = _windows(kind, datetime.fromisoformat(row["ts"]))
        open_windows = [window for window in windows if window[1] > watermark]
        late += len(windows) - len(open_windows) if each else not open_windows
        found += [([*row.values(), str(start), str(end)], weight) for start, end in open_windows]
    return late, _left(found)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, list[str]]]]:
    text, lines = "", {}
    for name, seed in (("t", 8), ("u", 9)):
        changes = Changes(seed, ids=25).happen(CHANGES)
        text += declared(name, changes.write(tmp_path_factory.mktemp("hasty") / name, files=1))
        lines[name] = changes.lines
    yield text.replace("INTERVAL '1' HOUR", f"INTERVAL '{DELAY_S}' SECONDS"), lines


def _acts(text: str, want: Counter[tuple[Any, ...]], late: int, place: Path) -> None:
    script = Script("late", SETTINGS, text)
    try:
        straight, folded = Folded(), Folded()
        job, channel = script.submit(1, None, 0)
        run_to_end(job, channel, straight)
        assert straight.rows == want
        assert job.metrics().late_rows == late > 20
        assert not any(operator.state_entries for operator in job.metrics().operators)
        given = rows_read(job)
        job, channel = script.submit(2, place, 20)
        run_and_stop(job, channel, folded, given // 3)
        job, channel = script.submit(3, place, 20)
        run_to_end(job, channel, folded)
        assert folded.rows == want
    finally:
        script.close()


@pytest.mark.parametrize("name", WINDOWS)
def test_changes_of_closed_windows_are_late(
    name: str, hasty: tuple[str, dict[str, list[str]]], tmp_path: Path
) -> None:
    kind, query = WINDOWS[name]
    late, rows = _in_windows(hasty[1]["t"], kind, "last" in name)
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE x (id BIGINT, k VARCHAR, v BIGINT, d DOUBLE, ts TIMESTAMP, window_start TIMESTAMP, window_end TIMESTAMP)"
        )
        connection.executemany("INSERT INTO x VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        want = Counter(connection.execute(query.format(x="x").replace("EMIT CHANGES", "")).fetchall())
    assert len(want) > 20
    _acts(hasty[0] + query.format(x=TABLES[kind]), want, late, tmp_path)


def _on_time(lines: list[str]) -> tuple[int, list[Row]]:
    """How many rows are behind the watermark, and what the others leave."""
    read = _read(lines)
    kept = [
        (row, weight) for row, weight, watermark in read if datetime.fromisoformat(row["ts"]) >= watermark
    ]
    return len(read) - len(kept), _left(kept)


JOINS = {
    "inner": "SELECT t.id, u.id, t.ts FROM t JOIN u ON t.k = u.k AND u.ts BETWEEN t.ts - INTERVAL '1' SECOND AND t.ts + INTERVAL '2' SECOND",
    "left": "SELECT t.id, t.ts, u.id FROM t LEFT JOIN u ON t.k = u.k AND u.v < t.v AND u.ts BETWEEN t.ts AND t.ts + INTERVAL '2' SECOND",
}


@pytest.mark.parametrize("name", JOINS)
def test_joins_of_late_changes(name: str, hasty: tuple[str, dict[str, list[str]]], tmp_path: Path) -> None:
    late = 0
    with duckdb.connect() as connection:
        for table, lines in hasty[1].items():
            count, rows = _on_time(lines)
            changes = Changes(0)
            changes.rows = dict(enumerate(rows))
            changes.load(connection, table)
            late += count
        want = Counter(connection.execute(JOINS[name]).fetchall())
    _acts(hasty[0] + JOINS[name], want, late, tmp_path)


def test_changes_in_the_order_of_time(hasty: tuple[str, dict[str, list[str]]], tmp_path: Path) -> None:
    """What is taken back before time passes it is not written, what is taken back later stays."""
    late, rows = _on_time(hasty[1]["t"])
    session = Session({**SETTINGS, "parallelism.default": "2"})
    try:
        for statement in session.parse(hasty[0]):
            session.run(statement)
        options = f"'connector' = 'filesystem', 'path' = '{tmp_path / 'out'}', 'format' = 'csv'"
        session.execute(f"CREATE TABLE written (ts TIMESTAMP(3), id BIGINT) WITH ({options})")
        job = session.execute("INSERT INTO written SELECT ts, id FROM t ORDER BY ts, id").job
        assert job is not None and job.wait(PATIENCE_S) and job.error is None
        assert job.metrics().late_rows == late and not any(
            operator.state_entries for operator in job.metrics().operators
        )
        lines = [
            line
            for file in sorted((tmp_path / "out").rglob("*.csv"))
            for line in file.read_text().splitlines()[1:]
        ]
        assert [line.split(",")[1] for line in lines] == [
            str(row["id"]) for row in sorted(rows, key=lambda row: (row["ts"], row["id"]))
        ]
    finally:
        session.close()
