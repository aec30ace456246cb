"""Files of changes made by a plain rule: rows of a keyed table created, updated and deleted, and the table
they leave behind.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

COLUMNS = "id BIGINT, k STRING, v BIGINT, d DOUBLE, ts TIMESTAMP(3)"
Row = dict[str, Any]


@dataclass
class Changes:
    """A table that writes down what happens to it. ``seed`` decides everything."""

    seed: int
    ids: int = 120
    rows: dict[int, Row] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def happen(self, count: int) -> Changes:
        """Let so many changes happen: half of them updates, a fifth deletes."""
        for number in range(count):
            identity = self._random.randrange(self.ids)
            old = self.rows.get(identity)
            if old is None:
                self.note("cr"[self._random.random() < 0.1], None, self._row(identity, number))
            elif self._random.random() < 0.3:
                self.note("d", old, None)
            else:
                self.note("u", old, self._row(identity, number))
        return self

    def empty(self) -> Changes:
        """Delete what is left."""
        for row in list(self.rows.values()):
            self.note("d", row, None)
        return self

    def note(self, op: str, before: Row | None, after: Row | None) -> None:
        """Write one change down."""
        self.lines.append(json.dumps({"before": before, "after": after, "op": op, "ts_ms": len(self.lines)}))
        row = after or before
        assert row is not None
        self.rows.pop(row["id"], None)
        if after is not None:
            self.rows[row["id"]] = after

    def _row(self, identity: int, number: int) -> Row:
        draw = self._random.random
        time = datetime(2024, 1, 1) + timedelta(seconds=number // 4, milliseconds=int(draw() * 9_000))
        return {
            "id": identity,
            "k": None if draw() < 0.08 else "abcdé"[int(draw() * 5)],
            "v": None if draw() < 0.1 else int(draw() * 40) - 10,
            "d": int(draw() * 16) / 4,
            "ts": time.isoformat(" ", "milliseconds"),
        }

    def write(self, directory: Path, files: int = 3) -> str:
        """Write the changes as files in their order; return the directory."""
        directory.mkdir(parents=True, exist_ok=True)
        size = -(-len(self.lines) // files)
        for number in range(files):
            piece = self.lines[number * size : (number + 1) * size]
            (directory / f"{number:03}.jsonl").write_text(
                "".join(f"{line}\n" for line in piece), encoding="utf-8"
            )
        return str(directory)

    def load(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        """Make the table that is left a table of DuckDB."""
        connection.execute(f"CREATE TABLE {name} (id BIGINT, k VARCHAR, v BIGINT, d DOUBLE, ts TIMESTAMP)")
        if self.rows:
            connection.executemany(
                f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)",
                [list(row.values()) for row in self.rows.values()],
            )


def declared(name: str, path: str, more: str = "") -> str:
    """Return the CREATE TABLE of files of changes, replayed as a stream, whose rows are never late."""
    options = f"'connector' = 'filesystem', 'path' = '{path}', 'format' = 'debezium-json', 'source.replay' = 'true'{more}"
    rest = "WATERMARK FOR ts AS ts - INTERVAL '1' HOUR, PRIMARY KEY (id) NOT ENFORCED"
    return f"CREATE TABLE {name} ({COLUMNS}, {rest}) WITH ({options});\n"
