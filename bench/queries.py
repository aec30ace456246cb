"""The bench's queries: ours as a stream, and the same question to DuckDB as a batch on one thread."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """One question, in our words and in DuckDB's; ``{files}`` is the Parquet folder. ``sink`` are the
    columns of the answer.
    """

    name: str
    ours: str
    duckdb: str
    sink: str
    watermark: bool


QUESTIONS = (
    Question(
        "filter + project",
        "SELECT k, v * 2 AS w, x FROM events WHERE v >= 500",
        "SELECT k, v * 2 AS w, x FROM '{files}/*.parquet' WHERE v >= 500",
        "k BIGINT, w BIGINT, x DOUBLE",
        watermark=False,
    ),
    Question(
        "tumbling count + sum, 100 k keys",
        "SELECT window_start, k, COUNT(*) AS n, SUM(v) AS s FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '10' SECOND)) "
        "GROUP BY window_start, window_end, k",
        "SELECT time_bucket(INTERVAL '10 seconds', ts) AS window_start, k, count(*) AS n, sum(v)::BIGINT AS s FROM '{files}/*.parquet' GROUP BY 1, 2",
        "window_start TIMESTAMP(6), k BIGINT, n BIGINT, s BIGINT",
        watermark=True,
    ),
    Question(
        "running group aggregate, 100 k keys",
        "SELECT k, COUNT(*) AS n, SUM(v) AS s, MAX(x) AS m FROM events GROUP BY k",
        "SELECT k, count(*) AS n, sum(v)::BIGINT AS s, max(x) AS m FROM '{files}/*.parquet' GROUP BY k",
        "k BIGINT, n BIGINT, s BIGINT, m DOUBLE",
        watermark=False,
    ),
)


def events_ddl(files: str, *, watermark: bool) -> str:
    """Return our declaration of the events."""
    rule = ", WATERMARK FOR ts AS ts - INTERVAL '1' SECOND" if watermark else ""
    return (
        f"CREATE TEMPORARY TABLE events (ts TIMESTAMP(6), k BIGINT, v BIGINT, x DOUBLE{rule}) "
        f"WITH ('connector' = 'filesystem', 'path' = '{files}', 'format' = 'parquet', 'source.replay' = 'true')"
    )
