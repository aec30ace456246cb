"""Tables whose rows come when the test says so: changes with weights, in splits, given up to a cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.client.session import Session
from penstock.engine.api.operator import (
    Context,
    HeadOperator,
    ListState,
    Output,
    SourceStatus,
    SplitEvent,
    SplitEventKind,
)
from penstock.engine.api.stream_elements import Batch
from penstock.engine.expressions.compiler import compile_predicate
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.planner.physical.operator_specs import AnyOperatorSpec

Row = tuple[Any, ...]
# how a table says so
CHANGING = {
    "connector": "filesystem",
    "path": "/nonexistent",
    "format": "debezium-json",
    "source.replay": "true",
}
_END = 1 << 60


@dataclass(frozen=True)
class Feed:
    """One table: per split its changes in order, a row and its weight each."""

    schema: pa.Schema
    splits: tuple[tuple[tuple[Row, int], ...], ...]
    time_column: str | None = None
    delay: float = 0
    key: tuple[str, ...] = ()

    @property
    def retracts(self) -> bool:
        return any(weight < 0 for split in self.splits for _, weight in split)

    @property
    def longest(self) -> int:
        return max((len(split) for split in self.splits), default=0)

    def rows(self, cut: int = _END) -> Counter[Row]:
        """What the first ``cut`` changes of each split add up to."""
        total: Counter[Row] = Counter()
        for split in self.splits:
            for row, weight in split[:cut]:
                total[row] += weight
        return +total

    def table(self, cut: int = _END) -> pa.Table:
        rows = list(self.rows(cut).elements())
        columns = [pa.array([row[i] for row in rows], kind.type) for i, kind in enumerate(self.schema)]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def taken_back(self) -> Feed:
        """The feed, followed by the retraction of everything."""
        splits = []
        for split in self.splits:
            left: Counter[Row] = Counter()
            for row, weight in split:
                left[row] += weight
            splits.append(split + tuple((row, -weight) for row, weight in left.items() if weight))
        return replace(self, splits=tuple(splits))


@dataclass
class Feeds:
    """The feeds of a test by table name, and how far each may be read: the service fed sources find."""

    tables: dict[str, Feed]
    cut: int = _END
    batch_rows: int = 9
    ending: bool = True
    opened: set[str] = field(default_factory=set)

    def register(self, session: Session) -> None:
        """Declare the tables in a session."""
        for name, feed in self.tables.items():
            session.register(
                name,
                feed.schema.empty_table(),
                time_column=feed.time_column,
                delay=feed.delay if feed.time_column else None,
                stream=True,
            )
            table = session.catalog.find(name)
            assert table is not None and not hasattr(table, "query")
            options = CHANGING if feed.retracts else table.options  # type: ignore[union-attr]
            session.catalog.drop_table(name)
            session.catalog.create_table(replace(table, options=options, primary_key=feed.key), False)  # type: ignore[type-var, arg-type]


class FeedOperator(HeadOperator, ListState):
    """Gives the splits of one feed, dealt to subtasks in turn; a round gives each split one batch."""

    def __init__(self, spec: AnyOperatorSpec, time_zone: str = "UTC") -> None:
        self._spec = spec
        self._keep = (
            None
            if spec.node.predicate is None
            else compile_predicate(spec.node.predicate, EvaluationContext(time_zone))
        )
        self._given: dict[int, int] = {}

    def open(self, context: Context) -> None:
        self._feeds: Feeds = context.services.get(Feeds)
        self._feed = self._feeds.tables[self._spec.node.table.name]
        self._mine = range(context.subtask, len(self._feed.splits), context.parallelism)
        self._announced = False
        self._ended: set[int] = set()

    def list_states(self) -> dict[str, ListState]:
        return {"splits": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [{"split": split, "row": self._given.get(split, 0)} for split in self._mine]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        self._given = {item["split"]: item["row"] for item in items}

    def poll(self, out: Output) -> SourceStatus:
        if not self._announced:
            self._announced = True
            for split in self._mine:
                out.split(SplitEvent(SplitEventKind.OPENED, split, f"split-{split}"))
        gave = False
        for split in self._mine:
            gave |= self._give(split, out)
        # at once where there is no split, as every finite source does
        ended = len(self._ended) == len(self._mine)
        return SourceStatus(more=gave and not ended, ended=ended)

    def _give(self, split: int, out: Output) -> bool:
        if split in self._ended:
            return False
        changes = self._feed.splits[split]
        begin = self._given.get(split, 0)
        end = min(begin + self._feeds.batch_rows, self._feeds.cut, len(changes))
        if begin < end:
            self._given[split] = end
            out.collect(self._batch(changes[begin:end], split))
            return True
        if self._feeds.ending and begin == len(changes):
            self._ended.add(split)
            out.split(SplitEvent(SplitEventKind.ENDED, split, f"split-{split}"))
        else:
            # as every source says: a restored split tells its time so
            out.split(SplitEvent(SplitEventKind.EMPTY, split, f"split-{split}"))
        return False

    def _batch(self, changes: Sequence[tuple[Row, int]], split: int) -> Batch:
        source = self._spec.node.table.source_schema.to_arrow()
        columns = [
            pa.array([row[i] for row, _ in changes], source.field(i).type) for i in self._spec.node.columns
        ]
        fields = [source.field(i) for i in self._spec.node.columns]
        rows = pa.RecordBatch.from_struct_array(pa.array([{}] * len(changes), pa.struct([])))
        if columns:
            rows = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
        weights = np.array([weight for _, weight in changes], np.int64)
        batch = Batch(rows, None if (weights == 1).all() else weights, origin=split)
        return batch if self._keep is None else batch.filter(self._keep(rows))
