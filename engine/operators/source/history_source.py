"""The history source: the output of a source and the operators behind it for rows that exist already,
computed by a bounded backend.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    BuildOperator,
    Context,
    HeadOperator,
    KeyGroups,
    ListState,
    Output,
    SourceStatus,
)
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.bounded.backend import BoundedResult
from penstock.engine.bounded.registry import BoundedBackends
from penstock.engine.connectors.filesystem.listing import FileListing, FileSplit
from penstock.engine.connectors.filesystem.source import check_unchanged
from penstock.engine.exchange.record_writer import TaskOutput
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.operators.source.source import SourceOperator
from penstock.engine.task.operator_chain import ChainedOperator, OperatorChain
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.scan import Scan, scan_of
from penstock.planner.physical.operator_specs import (
    AnyOperatorSpec,
    FinishedSplits,
    HistorySource,
    OperatorSpec,
)

# milliseconds until the next poll while the backend still computes
_ASK_AGAIN_MS = 5

# milliseconds between two polls of a source that has emitted everything
REST_MS = 1_000

_Steps = Iterator[int | None]
"""Work done in steps: None when there is more to do at once, else the milliseconds until the next step."""


class _SplitOutput(TaskOutput):
    """The output of the inner chain: batches are collected until they are drained."""

    def __init__(self) -> None:
        super().__init__([])
        self.batches: list[Batch] = []
        self.time_us: int | None = None

    def collect(self, batch: Batch) -> None:
        self.batches.append(batch)

    def watermark(self, time_us: int) -> None:
        self.time_us = time_us if self.time_us is None else max(self.time_us, time_us)

    def idle(self) -> None:
        """No one reads this watermark."""


class SubChain:
    """Runs operators inside an operator, over exactly ``splits``, whatever else the table holds by now. Their
    metrics count for no one else.
    """

    def __init__(
        self,
        specs: Sequence[AnyOperatorSpec],
        options: JobOptions,
        outer: Context,
        splits: Sequence[str],
        build: BuildOperator,
    ) -> None:
        """``outer``: the context of the operator it runs in; ``build`` builds the operator of a spec."""
        source, *others = specs
        assert isinstance(source.node, Scan)
        # without the option the source reads its splits and ends; it would wait for new files otherwise
        unwatched = {
            key: value for key, value in source.node.table.options.items() if key != "source.monitor-interval"
        }
        table = replace(source.node.table, options=unwatched)
        source = replace(source, node=replace(source.node, table=table))
        # subtask 0 of 1: the inner operators own all key groups
        groups = KeyGroups(0, outer.key_groups.max_parallelism, outer.key_groups.max_parallelism)
        made = [
            ChainedOperator(
                build(spec, options),
                Context(
                    spec.operator_id,
                    spec.name,
                    0,
                    1,
                    groups,
                    outer.clock,
                    OperatorMetrics(),
                    outer.services,
                    outer.job_id,
                    outer.attempt,
                ),
            )
            for spec in (source, *others)
        ]
        self._splits = sorted(splits)
        self._output = _SplitOutput()
        self._chain = OperatorChain(made, self._output, incremental=False)
        self._chain.open()
        self._reader = made[0].operator
        assert isinstance(self._reader, SourceOperator)
        # restored as assigned splits that are not read yet, so it reads these and no others
        self._reader.restore_items(
            [{"split": split, "position": None, "finished": False} for split in self._splits]
        )
        self._open = True

    def step(self) -> bool:
        """Read a step's worth; return whether there may be more."""
        # settle() emits what operators still have to emit: nobody asks for credit here
        ended = self._chain.poll().ended
        self._chain.settle()
        return not ended

    def drain(self) -> list[tuple[str, Batch]]:
        """Return the output since the last call, with the split of each batch (as far as the last operator
        still knows it).
        """
        batches, self._output.batches = self._output.batches, []
        return [(self._splits[batch.origin], batch) for batch in batches]

    def ended(self) -> list[tuple[str, Batch]]:
        """End the operators, and return what they still had."""
        while not self._chain.end() and self._chain.has_pending:
            self._chain.settle()
        return self.drain()

    @property
    def time_us(self) -> int:
        """The last watermark emitted, the least int64 without one."""
        # MIN_WATERMARK_US: no watermark was emitted
        return -(2**63) if self._output.time_us is None else self._output.time_us

    def close(self) -> None:
        """Release what is open."""
        if self._open:
            self._open = False
            self._chain.close()


class HistorySourceOperator(HeadOperator):
    """Emits the history of this subtask's files, then the watermark it reached, then nothing more; it has no
    state.

    First the event times of each file are read, and the watermarks they make. A file with a row behind its
    own watermark, which may be late for a window, is read as a stream, by the same operators. All others are
    computed by the backend in one query, for in them no row is late. Without a backend all files are read as
    streams. The watermark is emitted once, behind all rows.
    """

    def __init__(
        self, spec: OperatorSpec[HistorySource, OperatorFacts], options: JobOptions, build: BuildOperator
    ) -> None:
        """``build`` builds the operators that read files with late rows."""
        self._spec, self._node = spec, spec.node
        self._options = options
        self._build = build
        self._time_us = MIN_WATERMARK_US
        self._result: BoundedResult | None = None
        self._inner: SubChain | None = None
        self._steps: _Steps | None = None

    def open(self, context: Context) -> None:
        self._context = context
        by_file: dict[str, list[str]] = {}
        # all splits of a file go to one subtask: its rows are late or not in the order of the file
        for split in self._node.splits:
            by_file.setdefault(FileSplit.parse(split).path, []).append(split)
        files = sorted(by_file)
        if self._node.backend is None or (self._node.timing and self._node.backend != "spark"):
            mine = files[context.subtask :: context.parallelism]  # all subtasks read event times, or rows
        else:
            # one query aggregates more than several do, and a job of Spark costs much
            mine = files if context.subtask == 0 else []
        self._splits = tuple(split for path in mine for split in by_file[path])

    def poll(self, out: Output) -> SourceStatus:
        # a generator is the state machine: each poll runs it to its next yield
        if self._steps is None:
            self._steps = self._all(out)
        wait_ms = next(self._steps)
        if wait_ms is None:
            return SourceStatus(more=True)
        return SourceStatus(
            rests=wait_ms == REST_MS, wake_ms=int(self._context.clock.monotonic_ms()) + wait_ms
        )

    def close(self) -> None:
        with contextlib.ExitStack() as closing:
            for opened in (self._inner, self._result):
                if opened is not None:
                    closing.callback(opened.close)

    def _all(self, out: Output) -> _Steps:
        # 1. read the event times: which splits have late rows
        late: set[str] = set()
        if self._splits and self._node.timing:
            yield from self._times(late)
        # 2. splits without late rows: one query of the backend
        computed = tuple(
            split for split in self._splits if split not in late and self._node.backend is not None
        )
        if computed:
            yield from self._computed(computed, out)
        # 3. all others: our own operators, row by row
        read = tuple(split for split in self._splits if split not in computed)
        if read:
            yield from self._read(read, out)
        self._context.metrics.count("history_files_read_as_stream", len(late))
        # 4. one watermark behind all rows, so that no row of the history is late above
        if self._node.timing:
            self._emit_time(out)
        # 5. nothing more: the task waits for the barrier that ends the history
        while True:
            yield REST_MS

    def _times(self, late: set[str]) -> _Steps:
        """Read the event times; record the splits that have late rows, and the common watermark."""
        self._inner = chain = SubChain(
            self._node.timing, self._options, self._context, self._splits, self._build
        )
        while chain.step():
            for split, batch in chain.drain():
                # set only when some row of the batch is behind its split's watermark
                if batch.behind is not None:
                    late.add(split)
            yield None
        self._time_us = chain.time_us
        chain.close()

    def _computed(self, splits: tuple[str, ...], out: Output) -> _Steps:
        """Emit what the backend computes for splits that do not change in between."""
        backends: BoundedBackends = self._context.services.get(BoundedBackends)
        self._result = result = backends.run_history(self._spec, splits, time_zone=self._options.time_zone)
        while True:
            rows = result.poll()
            if rows is not None:
                out.collect(Batch(rows))
                yield None
            # all rows are emitted
            elif result.ended:
                break
            else:
                yield _ASK_AGAIN_MS
        result.close()
        table = scan_of(self._node.plan).table
        listing = FileListing(table.options["path"], "", table.options)
        for split in splits:
            # a file that was replaced meanwhile makes the result wrong: the job fails instead
            check_unchanged(listing, FileSplit.parse(split))

    def _read(self, splits: tuple[str, ...], out: Output) -> _Steps:
        """Emit what our own operators compute for splits."""
        self._inner = chain = SubChain(
            self._node.operators, self._options, self._context, splits, self._build
        )
        while chain.step():
            for _, batch in chain.drain():
                # the ordinal of the split means nothing outside the inner chain
                out.collect(replace(batch, origin=0))
            yield None
        for _, batch in chain.ended():
            out.collect(replace(batch, origin=0))
        chain.close()

    def _emit_time(self, out: Output) -> None:
        """A subtask that has read no time is idle."""
        if MIN_WATERMARK_US < self._time_us < MAX_WATERMARK_US:
            out.watermark(self._time_us)
        else:
            out.idle()


class FinishedSplitsOperator(HeadOperator, ListState):
    """Writes the state of a source into the checkpoint of its history: all splits are finished. The source
    with the same id resumes from this state.
    """

    def __init__(self, spec: OperatorSpec[FinishedSplits, OperatorFacts], options: JobOptions) -> None:
        self._splits = spec.node.splits

    def open(self, context: Context) -> None:
        self._context = context

    def list_states(self) -> dict[str, ListState]:
        return {"splits": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [{"split": split, "position": None, "finished": True} for split in self._splits]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        """Nothing is restored into a history: it starts anew."""

    def poll(self, out: Output) -> SourceStatus:
        return SourceStatus(rests=True, wake_ms=int(self._context.clock.monotonic_ms()) + REST_MS)
