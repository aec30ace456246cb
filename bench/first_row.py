"""Start, run a keyed window over an endless stream, stop at its first row: the whole process is the figure."""

from __future__ import annotations

import penstock

with penstock.connect() as connection:
    connection.execute(
        "CREATE TEMPORARY TABLE ticks (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        "WITH ('connector' = 'datagen', 'rows-per-second' = '100000', 'fields.k.kind' = 'random', 'fields.k.min' = '0', 'fields.k.max' = '99')"
    )
    cursor = connection.execute("SELECT k, COUNT(*) AS n FROM ticks GROUP BY k")
    row = cursor.fetchone()
    cursor.close()
    if row is None:
        raise SystemExit("no row came")
