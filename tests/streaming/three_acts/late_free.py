"""Tables of several splits with NULL keys, NULL times, rows out of order and late rows; and which of their
rows are on time for their own split.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.client.session import Session

START = datetime(2024, 1, 1)
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
SPLITS = 3
DELAY_S = 6


def rows_of(count: int, step: int, late: Callable[[int], int]) -> list[pa.Table]:
    """Return the splits of a table: seconds go up with the row number, jitter and are set back by
    ``late``.
    """
    splits = []
    for split in range(SPLITS):
        numbers = range(split, count, SPLITS)
        seconds = [i / 4 + i * step % 5 - late(i) for i in numbers]
        times = [
            None if i % 41 == step else START + timedelta(seconds=second)
            for i, second in zip(numbers, seconds, strict=True)
        ]
        keys = [None if i % 17 == step else "abcdefgh"[i * step % 8] for i in numbers]
        columns = [list(numbers), keys, [i * 7 % 23 for i in numbers], times]
        splits.append(
            pa.table(
                [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)],
                schema=SCHEMA,
            )
        )
    return splits


def on_time(splits: list[pa.Table]) -> pa.Table:
    """Return the rows that are not behind their own split's watermark, those without a time among them."""
    kept = []
    for split in splits:
        watermark = datetime.min
        mask = []
        for at in split.column("ts").to_pylist():
            mask.append(at is None or at >= watermark)
            if at is not None:
                watermark = max(watermark, at - timedelta(seconds=DELAY_S))
        kept.append(split.filter(pa.array(mask)))
    return pa.concat_tables(kept)


def declare(session: Session, name: str, splits: list[pa.Table], root: Path, more: str = "") -> None:
    """Declare a table of these splits as a recording to be replayed."""
    folder = root / name
    folder.mkdir()
    for number, split in enumerate(splits):
        pq.write_table(split, folder / f"{number}.parquet", row_group_size=1 << 20)
    session.execute(
        f"CREATE TABLE {name} (id BIGINT, k STRING, v BIGINT, ts TIMESTAMP(6), WATERMARK FOR ts AS ts - INTERVAL '{DELAY_S}' SECOND{more})"
        f" WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'parquet', 'source.replay' = 'true')"
    )


def database(**tables: pa.Table) -> duckdb.DuckDBPyConnection:
    """Return DuckDB over tables by name."""
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    return connection
