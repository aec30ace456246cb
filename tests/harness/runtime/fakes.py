"""Small operators for runtime tests: a replayable source of splits, a keyed window sum, a two-phase sink
over a ledger that survives crashes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.key_groups import groups_of_hashes
from penstock.engine.api.operator import (
    Context,
    HeadOperator,
    Operator,
    Output,
    Services,
    SourceStatus,
)
from penstock.engine.api.stream_elements import Batch
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.planner.logical.distribution import Edge, Forward, Partition
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.physical.operator_specs import AnyOperatorSpec, Chain, ChainEdge, JobGraph, OperatorSpec

ROWS = pa.schema([("key", pa.int64()), ("value", pa.int64()), ("time", pa.int64())])
SCHEMA = Schema((Field("key", BIGINT), Field("value", BIGINT), Field("time", BIGINT)))
Row = tuple[int, int, int]


def batch(rows: Sequence[Row]) -> Batch:
    columns = np.array(rows, np.int64).reshape(-1, 3).T.copy()
    return Batch(pa.RecordBatch.from_arrays([array_of(column) for column in columns], schema=ROWS))


def rows_of(given: Batch) -> list[Row]:
    return list(zip(*(given.rows.column(i).to_pylist() for i in range(3)), strict=True))


@dataclass
class Ledger:
    """The outside world of a sink: transactions staged and committed; a committed one can be committed
    again without effect.
    """

    staged: dict[str, list[Row]] = field(default_factory=dict)
    committed: dict[str, list[Row]] = field(default_factory=dict)

    def commit(self, transaction: str) -> None:
        if transaction in self.committed:
            return
        self.committed[transaction] = self.staged.pop(transaction)

    def rows(self) -> Counter[Row]:
        return Counter(row for rows in self.committed.values() for row in rows)


@dataclass
class Faults:
    """Failures to inject: operator names to the number of batches they live through, once."""

    after_batches: dict[str, int] = field(default_factory=dict)
    error: Exception = field(default_factory=lambda: ConnectionError("injected"))

    def check(self, name: str) -> None:
        if name in self.after_batches:
            self.after_batches[name] -= 1
            if self.after_batches[name] < 0:
                del self.after_batches[name]
                raise self.error


@dataclass(frozen=True)
class Numbers(LogicalPlan):
    splits: tuple[tuple[Row, ...], ...] = ()
    batch_rows: int = 3
    endless: bool = False


@dataclass(frozen=True)
class Pass(LogicalPlan):
    pass


@dataclass(frozen=True)
class SumWindows(LogicalPlan):
    size: int = 10


@dataclass(frozen=True)
class Ledgered(LogicalPlan):
    pass


def numbers_spec(
    operator_id: str,
    name: str,
    schema: Schema,
    splits: tuple[tuple[Row, ...], ...] = (),
    batch_rows: int = 3,
    endless: bool = False,
) -> AnyOperatorSpec:
    return OperatorSpec(operator_id, name, schema, Numbers(splits, batch_rows, endless))


def pass_spec(operator_id: str, name: str, schema: Schema) -> AnyOperatorSpec:
    return OperatorSpec(operator_id, name, schema, Pass())


def ledger_spec(operator_id: str, name: str, schema: Schema) -> AnyOperatorSpec:
    return OperatorSpec(operator_id, name, schema, Ledgered())


class NumbersSource(HeadOperator):
    """Gives the rows of its splits, the one furthest behind in time first, and the lowest time reached as
    watermark.
    """

    def __init__(self, node: Numbers) -> None:
        self._node = node

    def open(self, context: Context) -> None:
        self._context = context
        self._mine = [i for i in range(len(self._node.splits)) if i % context.parallelism == context.subtask]
        self._positions = dict.fromkeys(self._mine, 0)

    def list_states(self) -> dict[str, Any]:
        return {"splits": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [{"split": split, "position": position} for split, position in self._positions.items()]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            if item["split"] in self._positions:
                self._positions[item["split"]] = item["position"]

    def _time(self, split: int) -> int:
        rows, position = self._node.splits[split], self._positions[split]
        return rows[position][2] if position < len(rows) else 2**62

    def poll(self, out: Output) -> SourceStatus:
        self._context.services.get(Faults).check(self._context.name)
        split = min(self._mine, key=lambda s: (self._time(s), s), default=None)
        if split is None or self._positions[split] >= len(self._node.splits[split]):
            return SourceStatus() if self._node.endless else SourceStatus(ended=True)
        start = self._positions[split]
        piece = self._node.splits[split][start : start + self._node.batch_rows]
        self._positions[split] += len(piece)
        out.collect(batch(piece))
        low = min(self._time(s) for s in self._mine)
        if low < 2**62:
            out.watermark(low)
        return SourceStatus(more=True)


class PassOperator(Operator):
    """Passes rows on."""

    def open(self, context: Context) -> None:
        self._context = context

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        self._context.services.get(Faults).check(self._context.name)
        out.collect(batch)


class WindowSum(Operator):
    """Sums values per key and tumbling window; rows behind the watermark would be dropped and counted, and
    no test may lose any.
    """

    def __init__(self, node: SumWindows) -> None:
        self._size = node.size
        self._sums: dict[tuple[int, int], int] = {}
        self._watermark = -(2**63)

    def open(self, context: Context) -> None:
        self._context = context

    def keyed_states(self) -> dict[str, Any]:
        return {"sums": self}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        self._context.services.get(Faults).check(self._context.name)
        for key, value, time in rows_of(batch):
            window = (time // self._size + 1) * self._size
            if window <= self._watermark:
                self._context.metrics.late_rows += 1
                continue
            self._sums[window, key] = self._sums.get((window, key), 0) + value

    def on_watermark(self, time_us: int, out: Output) -> None:
        self._watermark = time_us
        closed = sorted(entry for entry in self._sums if entry[0] <= time_us)
        if closed:
            out.collect(batch([(key, self._sums.pop((window, key)), window) for window, key in closed]))
            self._context.metrics.windows_closed += len(closed)

    def snapshot(self) -> pa.Table:
        entries = [(key, window, total) for (window, key), total in sorted(self._sums.items())]
        columns = [np.array([e[i] for e in entries], np.int64) for i in range(3)]
        groups = groups_of_hashes(
            stable_hash([pa.array(columns[0])]), self._context.key_groups.max_parallelism
        )
        order = np.argsort(groups, kind="stable")
        return pa.table(
            {
                "key_group": groups[order],
                "key": columns[0][order],
                "window": columns[1][order],
                "total": columns[2][order],
            }
        )

    def restore(self, part: pa.Table) -> None:
        for key, window, total in zip(
            part["key"].to_pylist(), part["window"].to_pylist(), part["total"].to_pylist(), strict=True
        ):
            assert (window, key) not in self._sums
            self._sums[window, key] = total


class LedgerSink(Operator):
    """A two-phase sink: rows are staged before a barrier, and committed when the checkpoint is durable."""

    def open(self, context: Context) -> None:
        self._context = context
        self._ledger: Ledger = context.services.get(Ledger)
        self._rows: list[Row] = []
        self._pending: list[dict[str, Any]] = []

    def list_states(self) -> dict[str, Any]:
        return {"pending": self}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        self._context.services.get(Faults).check(self._context.name)
        self._rows += rows_of(batch)

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        if self._rows:
            transaction = f"{self._context.operator_id}-{self._context.subtask}-{checkpoint_id}-{len(self._ledger.staged)}-{len(self._ledger.committed)}"
            self._ledger.staged[transaction] = self._rows
            self._pending.append({"checkpoint": checkpoint_id, "transaction": transaction})
            self._rows = []

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        for item in [i for i in self._pending if i["checkpoint"] <= checkpoint_id]:
            self._ledger.commit(item["transaction"])
            self._pending.remove(item)

    def snapshot_items(self) -> list[dict[str, Any]]:
        return list(self._pending)

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        for number, item in enumerate(items):
            if number % self._context.parallelism == self._context.subtask:
                self._ledger.commit(item["transaction"])


_MAKERS = {
    Numbers: NumbersSource,
    Pass: lambda node: PassOperator(),
    SumWindows: WindowSum,
    Ledgered: lambda node: LedgerSink(),
}


def build(spec: AnyOperatorSpec, options: JobOptions) -> Operator:
    return _MAKERS[type(spec.node)](spec.node)


def make_splits(count: int, rows: int, keys: int, step: int = 3) -> tuple[tuple[Row, ...], ...]:
    """Rows in time order per split, every split over the same times."""
    return tuple(
        tuple(((i * 7 + split) % keys, i + split * 1000, i * step + split) for i in range(rows))
        for split in range(count)
    )


def expected(splits: Sequence[Sequence[Row]], size: int) -> Counter[Row]:
    sums: Counter[tuple[int, int]] = Counter()
    for key, value, time in (row for split in splits for row in split):
        sums[key, (time // size + 1) * size] += value
    return Counter((key, total, window) for (key, window), total in sums.items())


def window_job(
    splits: Sequence[Sequence[Row]],
    *,
    parallelism: int = 2,
    sources: int | None = None,
    batch_rows: int = 3,
    endless: bool = False,
    size: int = 10,
    sink_edge: Edge | None = None,
    max_parallelism: int = 16,
) -> JobGraph:
    """source -> pass | partition by key | window sum | sink."""
    numbers = numbers_spec("src", "numbers", SCHEMA, tuple(map(tuple, splits)), batch_rows, endless)
    chains = (
        Chain(0, (numbers, pass_spec("pass", "pass", SCHEMA)), sources or parallelism),
        Chain(1, (OperatorSpec("sum", "window sum", SCHEMA, SumWindows(size)),), parallelism),
        Chain(2, (ledger_spec("sink", "ledger", SCHEMA),), parallelism),
    )
    edges = (ChainEdge(0, 1, 0, Partition((0,))), ChainEdge(1, 2, 0, sink_edge or Forward()))
    return JobGraph(chains, edges, max_parallelism)


def services(ledger: Ledger | None = None, faults: Faults | None = None) -> Services:
    return Services(ledger if ledger is not None else Ledger(), faults if faults is not None else Faults())
