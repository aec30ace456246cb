"""Feeds as Spark's streams: files a batch each, a watermark as late as ours, and at the end rows that let
time pass.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.planner.sql_generator.query import ScannedTable
from tests.generated.queries.generated.relations import run
from tests.generated.queries.generated.trial import Arena, Rows, compare
from tests.generated.structured_streaming.printed import printed
from tests.generated.structured_streaming.shapes import Shape
from tests.harness.direct.feeds import Feed

BATCHES = 2
_WRITTEN_S = 1_700_000_000
_FAR = datetime(2030, 1, 1)
_LAST = {"id": -1, "k": -1, "s": "a", "v": 8, "x": Decimal("0.50")}
"""A row that passes the tests queries make: Spark tests rows before it looks at their time."""
_WAIT_S = 120


class Refused(Exception):
    """Spark does not run a query as a stream; the text is its condition and what it says."""


class Streams:
    """The tables of one variant as streams of a Spark session."""

    def __init__(self, spark: Any, arena: Arena, directory: Path) -> None:
        self._spark, self.arena, self._directory = spark, arena, directory
        self._ran = 0
        for name, feed in arena.tables.items():
            if not feed.retracts:
                _write(feed, directory / name)

    def answer(self, shape: Shape) -> Rows:
        """Run a query to the end of its input and return what its output adds up to."""
        name = f"ran_{self._ran}"
        self._ran += 1
        text, relations = self.text(self.arena, shape)
        try:
            for number, relation in enumerate(relations):
                self._table(relation.table.name, shape).createOrReplaceTempView(f"t_{number}")
            writer = self._spark.sql(text).writeStream.format("memory").queryName(name).outputMode(shape.mode)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination(_WAIT_S)
        except PySparkException as error:
            raise Refused(f"{error.getCondition()}: {error}") from error
        rows = [tuple(map(_plain, row.values())) for row in self._spark.table(name).toArrow().to_pylist()]
        self._spark.sql(f"DROP VIEW {name}")
        if shape.mode == "update":
            rows = list({tuple(row[i] for i in shape.key): row for row in rows}.values())
        return Counter(row for row in rows if not shape.closes or not _is_last(row))

    def check(self, shape: Shape) -> int:
        """Compare Spark's answer with ours, none of whose rows may be late; return how many rows it has."""
        ours = run(self.arena.tables, shape.of or shape.query)
        assert ours.late == 0
        theirs = self.answer(shape)
        if shape.of:
            count = run(self.arena.tables, shape.query).rows.total()
            compare(theirs - ours.rows, Counter(), shape.name)
            compare(Counter([(theirs.total(),)]), Counter([(count,)]), shape.name)
        else:
            compare(theirs, ours.rows, shape.name)
        return theirs.total()

    @staticmethod
    def text(arena: Arena, shape: Shape) -> tuple[str, tuple[ScannedTable, ...]]:
        """Return a query as Spark is told it, after our planner and optimizer, and the tables it reads."""
        (statement,) = arena.session.parse(shape.query)
        return printed(arena.session.pipeline.plan(arena.session.pipeline.bind(statement.node)).plan)  # type: ignore[arg-type]

    def _table(self, name: str, shape: Shape) -> Any:
        feed, place = self.arena.tables[name], self._directory / name
        # of Spark's time types only TIMESTAMP takes a watermark
        ddl = from_arrow_schema(feed.schema, prefer_timestamp_ntz=False)
        if name in shape.static:
            return self._spark.read.schema(ddl).parquet(str(place / "part-*"))
        stream = (
            self._spark.readStream.schema(ddl)
            .option("maxFilesPerTrigger", 1)
            .option("pathGlobFilter", "*" if shape.closes else "part-*")
        )
        frame = stream.parquet(str(place))
        return (
            frame
            if feed.time_column is None
            else frame.withWatermark(feed.time_column, f"{feed.delay} seconds")
        )


def _write(feed: Feed, place: Path) -> None:
    """Write the rows as they come over both splits, cut into files, and a last file with a row of a far
    time.
    """
    place.mkdir(parents=True)
    longest = max((len(split) for split in feed.splits), default=0)
    rows = [split[i][0] for i in range(longest) for split in feed.splits if i < len(split)]
    size = -(-len(rows) // BATCHES) or 1
    for number in range(BATCHES):
        pq.write_table(
            _table(rows[number * size : (number + 1) * size], feed.schema), place / f"part-{number}.parquet"
        )
    far = tuple(_FAR if field.name == feed.time_column else _LAST.get(field.name) for field in feed.schema)
    for number in range(2):  # the first moves the watermark, behind its own batch
        pq.write_table(
            _table([far] if feed.time_column else [], feed.schema), place / f"zlast-{number}.parquet"
        )
    # Spark reads the oldest first, and several may be written in one millisecond
    for seconds, path in enumerate(sorted(place.iterdir())):
        os.utime(path, (_WRITTEN_S + seconds, _WRITTEN_S + seconds))


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    return pa.table(
        [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _is_last(row: tuple[Any, ...]) -> bool:
    """Whether a row comes of those that let time pass."""
    return -1 in row or any(isinstance(value, datetime) and value.year >= _FAR.year - 1 for value in row)
