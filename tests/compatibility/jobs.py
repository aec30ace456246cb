"""The jobs whose checkpoints are kept for ever: what they read is a function of a number and a seed, so an
old one can be finished anywhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import penstock
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.source_gate import gated

ROWS = 1500
_SOURCE = f"""CREATE TABLE %s (id BIGINT, k INT, v INT, name STRING, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'datagen', 'number-of-rows' = '{ROWS}', 'rows-per-second' = '%d', 'splits' = '2', 'seed' = '%d',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{ROWS}', 'fields.k.min' = '1', 'fields.k.max' = '%d',
  'fields.v.min' = '1', 'fields.v.max' = '50', 'fields.name.length' = '6',
  'fields.ts.kind' = 'sequence', 'fields.ts.start' = '2024-01-01 00:00:00', 'fields.ts.step' = '100 ms');"""
_SINK = "CREATE TABLE %s (%s) WITH ('connector' = 'filesystem', 'format' = '%s', 'path' = 'out/%s');"

# By name: the columns of each sink and the query that fills it.
JOBS: dict[str, dict[str, tuple[str, str]]] = {
    "keyed": {
        "counts": (
            "k INT, n BIGINT, s BIGINT, m STRING",
            "SELECT k, COUNT(*), SUM(v), MAX(name) FROM a GROUP BY k",
        ),
        "distinct_names": ("n BIGINT, k BIGINT", "SELECT COUNT(DISTINCT v), COUNT(DISTINCT k) FROM a"),
    },
    "layered": {  # few of its keys change in the end: changes above a whole state
        "sums": (
            "k BIGINT, n BIGINT, s BIGINT",
            "SELECT k, COUNT(*), SUM(v) FROM (SELECT CASE WHEN id <= 100 THEN id ELSE MOD(id, 3) END AS k, v FROM a) GROUP BY k",
        ),
    },
    "windows": {
        "tumbled": (
            "k INT, n BIGINT, s BIGINT, e TIMESTAMP(3)",
            "SELECT k, COUNT(*), SUM(v), window_end FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '7' SECOND)) "
            "GROUP BY k, window_start, window_end",
        ),
        "sessions": (
            "k INT, n BIGINT, e TIMESTAMP(3)",
            "SELECT k, COUNT(*), window_end FROM TABLE(SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECOND)) "
            "GROUP BY k, window_start, window_end",
        ),
    },
    "in_time": {  # of few keys, so time goes on above layers that are not written again
        "sliding": (
            "k BIGINT, n BIGINT, s BIGINT, e TIMESTAMP(3)",
            "SELECT CASE WHEN id <= 80 THEN id ELSE MOD(id, 3) END, COUNT(*), SUM(v), window_end "
            "FROM TABLE(HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '100' SECOND)) "
            "GROUP BY CASE WHEN id <= 80 THEN id ELSE MOD(id, 3) END, window_start, window_end",
        ),
        "running": (
            "id BIGINT, n BIGINT, s BIGINT, last BIGINT",
            "SELECT id, COUNT(*) OVER w, SUM(v) OVER w, LAG(id) OVER w FROM a "
            "WINDOW w AS (PARTITION BY CASE WHEN id <= 80 THEN id ELSE MOD(id, 3) END ORDER BY ts)",
        ),
    },
    "interval_join": {
        "near": (
            "a BIGINT, b BIGINT",
            "SELECT a.id, b.id FROM a JOIN b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '1' SECOND AND b.ts",
        ),
    },
    "temporal_join": {
        "versions": (
            "a BIGINT, b BIGINT",
            "SELECT a.id, v.id FROM a LEFT JOIN b FOR SYSTEM_TIME AS OF a.ts AS v ON a.k = v.k",
        ),
    },
    "ranks": {
        "best": (
            "k INT, id BIGINT, v INT",
            "SELECT k, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) r FROM a) WHERE r <= 2",
        ),
        "first_seen": (
            "v INT, id BIGINT",
            "SELECT v, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts) r FROM a) WHERE r = 1",
        ),
    },
    "join": {
        "paired": (
            "a BIGINT, b STRING, v INT",
            "SELECT a.id, b.name, b.v FROM a LEFT JOIN b ON a.id = b.id AND b.v > 10",
        )
    },
    "match": {
        "rises": (
            "k INT, first BIGINT, last BIGINT",
            "SELECT k, f, l FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(R.id) AS f, LAST(R.id) AS l ONE ROW PER MATCH "
            "AFTER MATCH SKIP PAST LAST ROW PATTERN (S R{2,5}) DEFINE R AS R.v > PREV(R.v))",
        ),
    },
    "files": {"copied": ("id BIGINT, k INT, name STRING", "SELECT id, k, name FROM a WHERE v > 5")},
}
APPENDS = {"windows", "in_time", "interval_join", "temporal_join", "match", "files"}


def opened(
    job: str, rate: int, settings: Mapping[str, str] | None = None, *, wide: bool = False
) -> penstock.Connection:
    """Return a connection in which a job's tables are declared; its state and its output are below the
    current directory.

    ``wide``: numbers are declared BIGINT.
    """
    made = penstock.connect(
        settings={
            "execution.checkpointing.dir": "state",
            "execution.checkpointing.interval": "20 ms",
            "execution.batch.max-rows": "50",
            "parallelism.default": "2",
            "pipeline.max-parallelism": "16",
            "pipeline.name": job,
            "table.dml-sync": "false",
            **(settings or {}),
        }
    )
    source = _SOURCE.replace(" INT,", " BIGINT,") if wide else _SOURCE
    made.executescript(source % ("a", rate, 5, 9) + source % ("b", rate, 6, 9))
    for sink, (columns, _) in JOBS[job].items():
        made.execute(
            (_SINK % (sink, columns, "json" if job in APPENDS else "debezium-json", sink)).removesuffix(";")
        )
    return made


def statement(job: str) -> str:
    """Return what starts a job."""
    inserts = [f"INSERT INTO {sink} {query};" for sink, (_, query) in JOBS[job].items()]
    return (
        inserts[0].removesuffix(";")
        if len(inserts) == 1
        else f"EXECUTE STATEMENT SET BEGIN {' '.join(inserts)} END"
    )


def finish(job: str, *, wide: bool = False) -> list[str]:
    """Run a job to its end, from its checkpoint if it has one; return what became of the state of a
    changed query.
    """
    with opened(
        job,
        1_000_000,
        {"execution.state-recovery.ignore-unclaimed-state": "true"} if wide else None,
        wide=wide,
    ) as made:
        running = made.execute(statement(job)).job
        assert running is not None and running.wait(PATIENCE_S)
        if running.error is not None:
            raise running.error
        return [] if running.state_diff is None else [str(change) for change in running.state_diff.changes]


def stop_in_mid_run(job: str) -> None:
    """Run a job for a while and stop it with a checkpoint."""
    with gated(ROWS * 3 // 4), opened(job, 1000) as made:
        running = made.execute(statement(job)).job
        assert running is not None
        await_that(
            lambda: running.metrics().rows_in >= ROWS // 2 or running.state.terminal, "half of the job"
        )
        made.execute(f"STOP JOB '{running.job_id}'")
        assert running.wait(PATIENCE_S) and running.error is None, running.error


def results(job: str) -> dict[str, list[Any]]:
    """Return the rows each sink holds when all its changes are taken together, sorted."""
    return {sink: _rows(Path("out") / sink) for sink in JOBS[job]}


def _rows(directory: Path) -> list[Any]:
    total: Counter[str] = Counter()
    for path in sorted(directory.glob("*.json*")):
        for line in path.read_text(encoding="utf-8").splitlines():
            change = json.loads(line)
            sides = (
                ((change["before"], -1), (change["after"], 1))
                if "op" in change and "after" in change
                else ((change, 1),)
            )
            for row, weight in sides:
                if row is not None:
                    total[json.dumps(list(row.values()))] += weight
    assert all(weight >= 0 for weight in total.values())
    return sorted(json.loads(row) for row in total.elements())
