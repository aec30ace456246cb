"""Jobs that keep state of every kind over files, stopped in mid-run and gone on with after their tables
were declared otherwise.
"""

from __future__ import annotations

import json
from pathlib import Path

import penstock
from penstock.engine.job.job import Job
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.source_gate import gated

ROWS = 900
FLAG = "execution.state-recovery.ignore-unclaimed-state"
NARROW = "id INT, k TINYINT, v SMALLINT, d DECIMAL(10, 2), name STRING, ts TIMESTAMP(3)"
WIDE = "id BIGINT, k INT, v BIGINT, d DECIMAL(16, 2), name STRING, ts TIMESTAMP(3)"
LONGER = WIDE + ", note STRING"
_SOURCE = (
    "CREATE TABLE {name} ({columns}, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND{more}) WITH ('connector' = 'filesystem', 'path' = '{path}', "
    "'format' = '{format}', 'source.replay' = 'true', 'source.rows-per-second' = '{rate}');"
)
_SINK = "CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'format' = 'debezium-json', 'path' = '{path}');"

# By name: the columns of each sink and the query that fills it; together they have every operator that keeps
# state.
CATALOGUE: dict[str, dict[str, tuple[str, str]]] = {
    "aggregates": {
        "grouped": (
            "k BIGINT, n BIGINT, s BIGINT, lo BIGINT, hi DECIMAL(16, 2), av DOUBLE, t DECIMAL(38, 2)",
            "SELECT k, COUNT(*), SUM(v), MIN(v), MAX(d), AVG(k), SUM(d) FROM a GROUP BY k",
        ),
        "distinct_values": (
            "k BIGINT, n BIGINT, bits BIGINT",
            "SELECT k, COUNT(DISTINCT v), BIT_XOR(v) FROM a GROUP BY k",
        ),
        "retracted": (
            "n BIGINT, lo BIGINT, hi BIGINT",
            "SELECT n, MIN(k), MAX(s) FROM (SELECT k, COUNT(*) n, SUM(v) s FROM a GROUP BY k) GROUP BY n",
        ),
        "filtered": (
            "k BIGINT, n BIGINT",
            "SELECT k + 1, COUNT(*) FILTER (WHERE v * 2 > 30) FROM a WHERE v < 45 GROUP BY k + 1",
        ),
        "rare": ("v BIGINT", "SELECT DISTINCT v FROM a"),
        "unions": (
            "v BIGINT, n BIGINT",
            "SELECT v, COUNT(*) FROM (SELECT v FROM a UNION ALL SELECT v FROM b) GROUP BY v",
        ),
        "common": ("v BIGINT", "SELECT v FROM a INTERSECT SELECT v FROM b"),
    },
    "joins": {
        "joined": (
            "a BIGINT, b BIGINT, d DECIMAL(16, 2)",
            "SELECT a.id, b.v, b.d FROM a LEFT JOIN b ON a.id = b.id AND b.v > 10",
        ),
        "halves": (
            "id BIGINT",
            "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.id AND b.v > a.v)",
        ),
        "near": (
            "a BIGINT, b BIGINT",
            "SELECT a.id, b.v FROM a JOIN b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '1' SECOND AND b.ts",
        ),
        "versioned": (
            "a BIGINT, b BIGINT",
            "SELECT a.id, v.v FROM a LEFT JOIN b FOR SYSTEM_TIME AS OF a.ts AS v ON a.k = v.k",
        ),
    },
    "ranks": {
        "best": (
            "k BIGINT, id BIGINT, v BIGINT",
            "SELECT k, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) r FROM a) WHERE r <= 2",
        ),
        "first_seen": (
            "v BIGINT, id BIGINT",
            "SELECT v, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts) r FROM a) WHERE r = 1",
        ),
        "top": ("id BIGINT, d DECIMAL(16, 2)", "SELECT id, d FROM a ORDER BY d DESC, id LIMIT 5"),
        "shares": (
            "k BIGINT, s BIGINT, r BIGINT",
            "SELECT k, s, RANK() OVER (ORDER BY s) FROM (SELECT k, SUM(v) s FROM a GROUP BY k)",
        ),
    },
    "time": {
        "tumbled": (
            "k BIGINT, n BIGINT, s BIGINT, hi DECIMAL(16, 2), e TIMESTAMP(3)",
            "SELECT k, COUNT(*), SUM(v), MAX(d), window_end FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '20' SECOND)) "
            "GROUP BY k, window_start, window_end",
        ),
        "sessions": (
            "k BIGINT, s BIGINT, e TIMESTAMP(3)",
            "SELECT k, SUM(v), window_end FROM TABLE(SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECOND)) "
            "GROUP BY k, window_start, window_end",
        ),
        "running": (
            "id BIGINT, s BIGINT, last BIGINT, r BIGINT",
            "SELECT id, SUM(v) OVER w, LAG(v) OVER w, ROW_NUMBER() OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts)",
        ),
        "rises": (
            "k BIGINT, f BIGINT, l BIGINT",
            "SELECT k, f, l FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(R.v) AS f, LAST(R.v) AS l ONE ROW PER MATCH "
            "AFTER MATCH SKIP PAST LAST ROW PATTERN (S R{2,5}) DEFINE R AS R.v > PREV(R.v))",
        ),
    },
}
CARRIED: dict[str, tuple[str, str]] = {
    "joined": (
        "a BIGINT, x STRING, y STRING",
        "SELECT a.id, a.note, b.note FROM a LEFT JOIN b ON a.id = b.id AND b.v > 10",
    ),
    "near": (
        "a BIGINT, x STRING, y STRING",
        "SELECT a.id, a.note, b.note FROM a JOIN b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '1' SECOND AND b.ts",
    ),
    "versioned": (
        "a BIGINT, y STRING",
        "SELECT a.id, v.note FROM a LEFT JOIN b FOR SYSTEM_TIME AS OF a.ts AS v ON a.k = v.k",
    ),
    "best": (
        "k BIGINT, id BIGINT, x STRING",
        "SELECT k, id, note FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) r FROM a) WHERE r <= 2",
    ),
    "first_seen": (
        "v BIGINT, x STRING",
        "SELECT v, note FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts) r FROM a) WHERE r = 1",
    ),
    "top": ("id BIGINT, x STRING", "SELECT id, note FROM (SELECT * FROM a ORDER BY d DESC, id LIMIT 5)"),
    "running": (
        "id BIGINT, s BIGINT, x STRING",
        "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts), note FROM a",
    ),
    "thrice": (
        "id BIGINT, x STRING, y STRING",
        "SELECT a.id, b.note, c.note FROM a JOIN b ON a.id = b.id JOIN (SELECT * FROM b WHERE v > 5) c ON c.v = a.v AND c.id < 60",
    ),
}
"""Queries whose rows carry a column along that was added to the end of the tables: they are told with and
without it.
"""


def write_rows(root: Path, noted: bool) -> None:
    """Write what the tables read; ``noted``: rows from the middle on have a note."""
    for name, step in (("a", 7), ("b", 11)):
        lines = []
        for i in range(ROWS):
            row = {
                "id": i,
                "k": i * step % 5,
                "v": i * i * step % 50,
                "d": f"{i * step % 997}.{i % 100:02d}",
                "name": f"n{i % 13}",
            }
            row["ts"] = f"2024-01-01 00:{i // 600:02d}:{i // 10 % 60:02d}.{i % 10}00"
            if noted and i >= ROWS - 100:
                row["note"] = f"note {i}"
            lines.append(json.dumps(row))
        (root / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def changes_of(job: Job) -> list[str]:
    """Return what became of the state of a query that has changed."""
    return [] if job.state_diff is None else [str(change) for change in job.state_diff.changes]


class Tables:
    """The tables of a job, and the job over them."""

    def __init__(self, root: Path, name: str, queries: dict[str, tuple[str, str]]) -> None:
        self.root = root
        self.home = root / name
        self.queries = queries

    def opened(
        self, columns: str, rate: int = 0, formats: str = "json", suffix: str = "jsonl", **settings: str
    ) -> penstock.Connection:
        """Return a connection in which the tables have these columns."""
        made = penstock.connect(
            settings={
                "execution.checkpointing.dir": str(self.home / "state"),
                "execution.checkpointing.interval": "30 ms",
                "execution.batch.max-rows": "60",
                "pipeline.max-parallelism": "16",
                "pipeline.name": "job",
                "table.dml-sync": "false",
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )
        for name, more in (("a", ""), ("b", ", PRIMARY KEY (k) NOT ENFORCED")):
            told = {
                "columns": columns,
                "more": more,
                "path": self.root / f"{name}.{suffix}",
                "rate": rate,
                "format": formats,
            }
            made.execute(_SOURCE.format(name=name, **told).removesuffix(";"))
        for name, (sink, _) in self.queries.items():
            made.execute(_SINK.format(name=name, columns=sink, path=self.home / name).removesuffix(";"))
        return made

    def statement(self, queries: dict[str, tuple[str, str]] | None = None) -> str:
        """Return what starts the job."""
        inserts = [f"INSERT INTO {sink} {query};" for sink, (_, query) in (queries or self.queries).items()]
        return (
            inserts[0].removesuffix(";")
            if len(inserts) == 1
            else f"EXECUTE STATEMENT SET BEGIN {' '.join(inserts)} END"
        )

    def stop_in_mid_run(
        self, columns: str, statement: str | None = None, rows: int = ROWS // 4, **opened: str
    ) -> list[str]:
        """Run the job until it has read some rows and stop it with a checkpoint; return what became of its
        state.
        """
        with gated(max(rows, ROWS * 3 // 4)), self.opened(columns, rate=400, **opened) as made:
            made.execute(f"SET '{FLAG}' = 'true'")
            running = made.execute(statement or self.statement()).job
            assert running is not None
            await_that(lambda: running.metrics().rows_in >= rows or running.state.terminal, f"{rows} rows")
            made.execute(f"STOP JOB '{running.job_id}'")
            assert running.wait(PATIENCE_S) and running.error is None, running.error
            return changes_of(running)

    def finish(
        self, columns: str, statement: str | None = None, *, allowed: bool = True, **opened: str
    ) -> list[str]:
        """Run the job to its end; return what became of its state."""
        with self.opened(columns, **opened) as made:
            made.execute(f"SET '{FLAG}' = '{str(allowed).lower()}'")
            running = made.execute(statement or self.statement()).job
            assert running is not None and running.wait(PATIENCE_S)
            if running.error is not None:
                raise running.error
            return changes_of(running)

    def results(self) -> dict[str, list[str]]:
        """Return the rows each sink holds when all its changes are taken together, sorted."""
        return {sink: self._rows(sink) for sink in self.queries}

    def _rows(self, sink: str) -> list[str]:
        total: dict[str, int] = {}
        for path in sorted((self.home / sink).glob("*.json*")):
            for line in path.read_text(encoding="utf-8").splitlines():
                change = json.loads(line)
                for row, weight in ((change["before"], -1), (change["after"], 1)):
                    if row is not None:
                        text = json.dumps(list(row.values()))
                        total[text] = total.get(text, 0) + weight
        assert all(weight >= 0 for weight in total.values()), sink
        return sorted(text for text, weight in total.items() for _ in range(weight))
