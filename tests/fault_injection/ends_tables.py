"""The tables that programs that end read and write: numbers that end, the same numbers as a watched
directory that does not, and two sinks.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 40_000
FILES = 4


def write_numbers(directory: Path) -> None:
    """Write 0 to ``ROWS`` - 1 as Parquet files."""
    directory.mkdir(parents=True)
    for number in range(FILES):
        values = pa.array(range(number * ROWS // FILES, (number + 1) * ROWS // FILES), pa.int64())
        pq.write_table(pa.table({"a": values}), directory / f"part-{number}.parquet")


def declarations(root: str | Path) -> list[str]:
    """Return the statements that declare them; numbers lie in ``numbers`` beside ``root``."""
    source = f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{Path(root).parent}/numbers'"

    def sink(name: str) -> str:
        return f"CREATE TABLE {name} (a BIGINT) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{root}/{name}')"

    return [
        f"CREATE TABLE numbers (a BIGINT) WITH ({source}, 'source.replay' = 'true')",
        f"CREATE TABLE endless (a BIGINT) WITH ({source}, 'source.monitor-interval' = '20 ms')",
        sink("copied"),
        sink("streamed"),
    ]


def committed(root: Path, name: str) -> Counter[int]:
    """Return the rows that a reader of a sink's directory sees."""
    files = [
        path
        for path in (root / name).rglob("*.parquet")
        if not any(part.startswith((".", "_")) for part in path.relative_to(root).parts)
    ]
    return Counter(value for path in files for value in pq.read_table(path).column("a").to_pylist())


def lost_or_doubled(rows: Counter[int]) -> str | None:
    """Say what is wrong with rows that should be all numbers, each once."""
    doubled, missing = sum(1 for count in rows.values() if count > 1), ROWS - len(rows)
    return f"{missing} rows are missing, {doubled} are there twice" if missing or doubled else None
