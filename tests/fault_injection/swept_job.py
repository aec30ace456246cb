"""The job failpoints are swept over: two tables of files, one of which ends early, counted by key and
window into files, several per checkpoint.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import duckdb

Row = tuple[int, str, int, int]

SPLITS = {"much": 3, "little": 1}
ROWS = {"much": 200, "little": 60}

SCRIPT = """
CREATE TABLE much (k BIGINT, v BIGINT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{root}/much', 'format' = 'json', 'source.replay' = 'true', 'source.rows-per-second' = '{rate}');
CREATE TABLE little (k BIGINT, v BIGINT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{root}/little', 'format' = 'json', 'source.replay' = 'true', 'source.rows-per-second' = '{rate}');
CREATE TABLE counted (k BIGINT, ends STRING, n BIGINT, total BIGINT)
WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'json', 'sink.rolling.rows' = '{rolling}');
INSERT INTO counted
SELECT k, DATE_FORMAT(window_end, 'HH:mm:ss'), COUNT(*), SUM(v)
FROM TABLE(TUMBLE(TABLE both_tables, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end;
"""

VIEW = (
    "CREATE TEMPORARY VIEW both_tables AS SELECT k, v, ts FROM much UNION ALL SELECT k, v, ts FROM little;\n"
)


def script(root: Path, out: Path, *, rate: int = 0, rolling: int = 20) -> str:
    """Return the statements of the job; ``rate`` slows each replay to rows per second."""
    tables, insert = SCRIPT.split("INSERT INTO", 1)
    return (tables + VIEW + "INSERT INTO" + insert).format(root=root, out=out, rate=rate, rolling=rolling)


def write_input(root: Path, seed: int, scale: int = 1) -> None:
    """Write the files both tables read: rows in time order within each file, a little out of it now and
    then.
    """
    random = Random(seed)
    for table, files in SPLITS.items():
        (root / table).mkdir(parents=True)
        for number in range(files):
            lines = []
            for i in range(ROWS[table] * scale):
                ms = 1_600_000_000_000 + i * 300 + random.randrange(1_500)
                lines.append(json.dumps({"k": random.randrange(12), "v": i + 1_000 * number, "ms": ms}))
            (root / table / f"part-{number}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def expected(root: Path) -> Counter[Row]:
    """Return what DuckDB counts in the same files."""
    files = f"['{root}/much/*.jsonl', '{root}/little/*.jsonl'], columns = {{k: 'BIGINT', v: 'BIGINT', ms: 'BIGINT'}}"
    ends = "strftime(make_timestamp((ms // 10000 + 1) * 10000000), '%H:%M:%S')"
    rows = (
        duckdb.connect()
        .execute(f"SELECT k, {ends}, COUNT(*), SUM(v)::BIGINT FROM read_json({files}) GROUP BY ALL")
        .fetchall()
    )
    return Counter(rows)


def written(out: Path) -> Counter[Row]:
    """Return the rows of all published files."""
    lines = [
        line for path in out.glob("part-*.jsonl") for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return Counter((row["k"], row["ends"], row["n"], row["total"]) for row in map(json.loads, lines))


def unpublished(out: Path) -> list[str]:
    """Return what stands in the table's directory besides published files and the log that names them."""
    return sorted(
        str(path.relative_to(out))
        for path in out.rglob("*")
        if path.is_file() and path.suffix not in (".jsonl", ".commit")
    )
