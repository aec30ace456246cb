"""Causes and cures of errors: windows, joins in time, patterns and VERIFY."""

from __future__ import annotations

STREAMING: dict[str, tuple[str, str]] = {
    "SQL-1601": (
        "The construct is known and not supported here.",
        "Write what the hint names; LANGUAGE_STATUS lists what works.",
    ),
    "SQL-1602": (
        "A hint has no effect here, or does not exist.",
        "Leave it out, or write the hint that the message names.",
    ),
    "SQL-1603": (
        "OPTIONS cannot change this table.",
        "Give the hint to the tables it reads, or declare another table with LIKE.",
    ),
    "SQL-1701": (
        "A window is on a column without a watermark.",
        "Add WATERMARK FOR ts AS ts - INTERVAL '5' SECOND to CREATE TABLE.",
    ),
    "SQL-1702": (
        "A watermark is on a column that is no timestamp.",
        "Add a computed column such as event_time AS to_timestamp(text).",
    ),
    "SQL-1703": (
        "A stream that never ends cannot be sorted for a table, a view, or an OFFSET.",
        "Order by a time attribute first, add LIMIT, or drop ORDER BY.",
    ),
    "SQL-1704": (
        "The size of a window is no multiple of its slide or step.",
        "Choose a size that is, and write the slide before the size.",
    ),
    "SQL-1705": (
        "A size of a window is no fixed positive length.",
        "Write INTERVAL '10' MINUTE; months and years have no fixed length.",
    ),
    "SQL-1706": (
        "A session window in GROUP BY has a key that is an expression.",
        "Compute the key in a subquery first.",
    ),
    "SQL-1707": ("GROUP BY names two different windows.", "Leave one of them out."),
    "SQL-1708": (
        "A window function is used as a value, or reads another window.",
        "Write TUMBLE_START(ts, size), alike in SELECT and GROUP BY.",
    ),
    "SQL-1710": (
        "WITH LATENESS is on a query without a window aggregate.",
        "Aggregate within windows, or leave WITH LATENESS out.",
    ),
    "SQL-1711": (
        "EMIT asks for final rows, and the query has no window that would close.",
        "Group by window_start and window_end, or leave EMIT out.",
    ),
    "SQL-1712": (
        "LATE ROWS INTO is at a wrong place, or the query has not exactly one window.",
        "Write it last, in an INSERT with one window.",
    ),
    "SQL-1714": (
        "WITH HISTORY or BACKFILL is at a wrong place.",
        "Write INSERT INTO .. SELECT .. WITH HISTORY.",
    ),
    "SQL-1715": (
        "One row would be in too many windows, or the history cannot be computed.",
        "Choose a longer slide, or read the reason in the message.",
    ),
    "SQL-1721": (
        "FOR SYSTEM_TIME AS OF or SNAPSHOT is outside of JOIN and LEFT JOIN.",
        "Write l JOIN r FOR SYSTEM_TIME AS OF l.ts ON ..",
    ),
    "SQL-1722": (
        "The time of a temporal join is no event-time column of the left side.",
        "Declare a WATERMARK on the left table, and name that column.",
    ),
    "SQL-1723": (
        "A stream is joined as of processing time.",
        "Join as of an event-time column, or look up a bounded table.",
    ),
    "SQL-1724": (
        "The right side of a temporal join has no versions.",
        "Declare PRIMARY KEY and WATERMARK, or keep the last row of each key by ROW_NUMBER.",
    ),
    "SQL-1725": ("A temporal join does not compare the whole key.", "Add the missing columns to ON."),
    "SQL-1726": ("The tables of a NATURAL JOIN share no column name.", "Write JOIN .. ON .."),
    "SQL-1727": (
        "Both sides of a temporal join have times of different types.",
        "Declare both TIMESTAMP, or both TIMESTAMP_LTZ.",
    ),
    "SQL-1728": (
        "A lookup join compares nothing that the table can be searched by.",
        "Write ON l.k = t.k with a column of the table.",
    ),
    "SQL-1729": (
        "LATERAL SNAPSHOT is at a wrong place, or an argument is not valid.",
        "Write JOIN LATERAL SNAPSHOT(..) with the arguments of the hint.",
    ),
    "SQL-1730": (
        "A table that is read again on an interval is aggregated or joined first.",
        "Join the table itself, and aggregate afterwards.",
    ),
    "SQL-1733": (
        "A process table function is called in a way that it does not declare.",
        "Write PARTITION BY, on_time and constants as the hint says.",
    ),
    "SQL-1741": (
        "A pattern of MATCH_RECOGNIZE is empty, too large, or repeats nothing.",
        "Write {n}, {n,} or {n,m}, and count the rows in a DEFINE.",
    ),
    "SQL-1742": (
        "A variable of a pattern is unknown or defined twice.",
        "Define each variable of the PATTERN once.",
    ),
    "SQL-1743": ("MEASURES is missing, so a match has no column.", "Add MEASURES A.ts AS started."),
    "SQL-1744": (
        "MATCH_RECOGNIZE is not ordered by a time attribute.",
        "Write ORDER BY ts, and declare a WATERMARK for ts.",
    ),
    "SQL-1745": (
        "AFTER MATCH SKIP TO leads back to the first row of the match.",
        "Write SKIP TO NEXT ROW, or SKIP PAST LAST ROW.",
    ),
    "SQL-1746": (
        "A call in MEASURES or DEFINE cannot be computed at that place.",
        "Write the call as the hint shows it.",
    ),
    "SQL-1751": (
        "A table of WITH RECURSIVE that reads itself is not a start and a step joined by UNION.",
        "Write r AS (SELECT .. UNION ALL SELECT .. FROM r ..).",
    ),
    "SQL-1752": (
        "The recursive term groups, orders or excludes its own rows.",
        "Read the table itself once, and group its rows below WITH.",
    ),
    "SQL-1753": (
        "The recursive term calls a function whose value changes from call to call.",
        "Compute it in the first SELECT, or in the query below WITH.",
    ),
    "VER-7001": (
        "VERIFY has nothing to compare: the query never ends, or the backend cannot compute it.",
        "Write UP TO TIMESTAMP '..', or verify a part of the query.",
    ),
    "VER-7002": (
        "Stream and batch have computed different rows.",
        "Read the rows in the detail. Late rows explain most differences; else report a defect.",
    ),
    "VER-7003": (
        "No table has a watermark, so a time cannot bound the rows.",
        "Declare a WATERMARK, or VERIFY without UP TO.",
    ),
    "VER-7004": ("The text behind UP TO is no timestamp.", "Write UP TO TIMESTAMP '2024-01-31 12:00:00'."),
}
