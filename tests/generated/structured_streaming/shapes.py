"""Shapes of queries, each with Spark's verdict in an output mode: accepted, or refused with which
condition.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """``key``: in update mode, the columns that identify a row. ``closes``: rows come when time passes, so
    time must pass at the end too.

    ``refused``: what Spark says of it. ``static``: tables Spark reads as bounded. ``of``: the query of whose
    rows any will do, as many as ours.
    """

    name: str
    query: str
    mode: str = "append"
    key: tuple[int, ...] = ()
    closes: bool = False
    refused: str = ""
    static: tuple[str, ...] = ()
    of: str = ""


_TUMBLE = "FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECONDS) GROUP BY window_start, window_end, k"
_NEAR = "t.k = e.k AND e.ts BETWEEN t.ts - INTERVAL '5' SECONDS AND t.ts + INTERVAL '5' SECONDS"
# Spark never lets go of a row without a time
_TIMED = tuple(f"(SELECT * FROM {name} WHERE ts IS NOT NULL) AS {name}" for name in "te")
# and its FULL JOIN of streams takes NULL to be equal to NULL
_KEYED = tuple(one.replace("ts IS", "k IS NOT NULL AND ts IS") for one in _TIMED)
_GROUPED = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
_UNBOUNDED = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"

SHAPES = (
    Shape(
        "filter and project",
        "SELECT id, k, v * 2 + 1 AS y, upper(s) AS u, ts FROM t WHERE v > 1 OR s IS NULL",
    ),
    Shape(
        "tumble",
        f"SELECT k, COUNT(*) AS n, SUM(v) AS total, MIN(x) AS least, window_start {_TUMBLE}",
        closes=True,
    ),
    Shape(
        "hop",
        "SELECT s, COUNT(v) AS n, MAX(x) AS most, window_end "
        "FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '15' SECONDS) GROUP BY window_start, window_end, s",
        closes=True,
    ),
    Shape(
        "session",
        "SELECT k, COUNT(*) AS n, window_start, window_end "
        "FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '6' SECONDS) GROUP BY window_start, window_end, k",
        closes=True,
    ),
    Shape(
        "group by, update",
        "SELECT k, COUNT(*) AS n, SUM(v) AS total, MIN(x) AS least, MAX(s) AS last FROM t GROUP BY k",
        "update",
        (0,),
    ),
    Shape("group by, complete", "SELECT k, s, COUNT(v) AS n FROM t GROUP BY k, s", "complete"),
    Shape("having", f"{_GROUPED} HAVING COUNT(*) > 5", "complete"),
    Shape("distinct", "SELECT DISTINCT k, s FROM t", "update", (0, 1)),
    Shape("union all", "SELECT id, k FROM t WHERE k = 1 UNION ALL SELECT id, k FROM e"),
    Shape("interval join", f"SELECT t.id AS i, e.id AS j, t.k FROM t JOIN e ON {_NEAR}"),
    Shape(
        "interval left join",
        f"SELECT t.id AS i, e.id AS j, t.s FROM {_TIMED[0]} LEFT JOIN {_TIMED[1]} ON {_NEAR}",
        closes=True,
    ),
    Shape(
        "interval full join",
        f"SELECT t.id AS i, e.id AS j, e.v FROM {_KEYED[0]} FULL JOIN {_KEYED[1]} ON {_NEAR}",
        closes=True,
    ),
    Shape(
        "window over window",
        "WITH small AS (SELECT k, window_time, COUNT(*) AS n FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '4' SECONDS) "
        "GROUP BY k, window_start, window_end, window_time) SELECT k, window_start, COUNT(*) AS windows, SUM(n) AS n "
        "FROM TUMBLE(TABLE small, DESCRIPTOR(window_time), INTERVAL '12' SECONDS) GROUP BY k, window_start, window_end",
        closes=True,
    ),
    Shape("limit", "SELECT id, k FROM t WHERE v > 0 LIMIT 7", of="SELECT id, k FROM t WHERE v > 0"),
    Shape("first groups", f"{_GROUPED} ORDER BY n DESC, k LIMIT 2", "complete"),
    Shape("regular join", "SELECT t.id AS i, e.id AS j FROM t JOIN e ON t.k = e.k AND t.s = e.s"),
    Shape(
        "aggregate of a join",
        "SELECT t.k, COUNT(*) AS n FROM t JOIN e ON t.k = e.k GROUP BY t.k",
        "update",
        (0,),
    ),
    Shape(
        "static join", "SELECT t.id AS i, w.id AS j FROM t JOIN w ON t.k = w.k AND t.v = w.v", static=("w",)
    ),
    Shape(
        "window join",
        "SELECT a.id AS i, b.id AS j, a.window_start FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECONDS) AS a "
        "JOIN TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '10' SECONDS) AS b "
        "ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end",
    ),
    Shape("group by, append", _GROUPED, refused=_UNBOUNDED),
    Shape("distinct, append", "SELECT DISTINCT k FROM t", refused=_UNBOUNDED),
    Shape(
        "count distinct",
        "SELECT k, COUNT(DISTINCT s) AS n FROM t GROUP BY k",
        "update",
        (0,),
        refused="Distinct aggregations are not supported",
    ),
    Shape(
        "regular left join",
        "SELECT t.id AS i, e.id AS j FROM t LEFT JOIN e ON t.k = e.k",
        refused="without a watermark in the join keys",
    ),
    Shape(
        "join that is not of equals",
        "SELECT t.id AS i, e.id AS j FROM t JOIN e ON t.k < e.k",
        refused="join without equality predicate",
    ),
    Shape(
        "rank",
        "SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id) AS n FROM t",
        refused="NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING",
    ),
    Shape(
        "in", "SELECT id FROM t WHERE k IN (SELECT k FROM e)", refused="LeftSemi join between two streaming"
    ),
)
"""What Spark accepts in update mode and answers otherwise is not among them: it takes nothing back, so an
aggregate of an aggregate counts what was replaced as well."""
