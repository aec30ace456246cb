"""Start, aggregate an endless stream, and leave the moment its first row is there: the time to that row is
the figure, not the tidying after it.

With the word ``processes``: on two worker processes, which end with this one.
"""

from __future__ import annotations

import os
import sys

import penstock

connection = penstock.connect()
if "processes" in sys.argv:
    connection.execute("SET 'deployment' = 'processes'")
    connection.execute("SET 'parallelism.default' = '2'")
connection.execute(
    "CREATE TEMPORARY TABLE ticks (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
    "WITH ('connector' = 'datagen', 'rows-per-second' = '100000', 'fields.k.kind' = 'random', 'fields.k.min' = '0', 'fields.k.max' = '99')"
)
row = next(connection.execute("SELECT k, COUNT(*) AS n FROM ticks GROUP BY k").changes())
os._exit(0 if row is not None else 1)
