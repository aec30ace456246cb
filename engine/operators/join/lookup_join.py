"""The lookup join: the keys of a batch are requested at once. Rows are emitted once their answer is there, in
input order or in order of the answers.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.registry import lookup_option, reload_ms
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.arrow_numpy import array_of, is_true
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    KeyedState,
    ListState,
    Operator,
    Output,
    PendingOutput,
    Recovered,
    Warned,
    start_output,
)
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch, Watermark
from penstock.engine.expressions.compiler import compile_predicate
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.lookup.cache import TableVersions
from penstock.engine.lookup.client import LookupClient, LookupTable
from penstock.engine.lookup.requests import lookup_asking
from penstock.engine.lookup.results import Asked, Met
from penstock.engine.state.rows.pending_lookups import PendingLookups
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.physical.operator_specs import OperatorSpec

# milliseconds until the next look for answers
_LOOK_AGAIN_MS = 1.0


class LookupJoinOperator(Operator):
    """Rows with outstanding requests are state: a barrier does not wait for answers, and a restored job
    requests again.

    A watermark is forwarded only after the rows in front of it. At most ``lookup.capacity`` batches are
    outstanding; then the inputs are blocked.
    """

    def __init__(self, spec: OperatorSpec[LookupJoin, OperatorFacts], options: JobOptions) -> None:
        self._spec, self._options = spec, options
        self._node, self._table = spec.node, spec.node.scan.table
        context = EvaluationContext(options.time_zone)
        self._keep = (
            None if spec.node.scan.predicate is None else compile_predicate(spec.node.scan.predicate, context)
        )
        self._residual = (
            None if spec.node.residual is None else compile_predicate(spec.node.residual, context)
        )
        # LEFT JOIN: a row without a match is padded with NULLs
        self._pads = spec.node.kind is JoinKind.LEFT
        self._output = spec.schema.to_arrow()
        self._in_order = lookup_option(spec.node.scan.table, "lookup.output-mode") == "ordered"
        self._capacity = int(lookup_option(spec.node.scan.table, "lookup.capacity") or 1)
        self._timeout_ms = float(lookup_option(spec.node.scan.table, "lookup.timeout") or 0)
        # batches with outstanding requests and the watermarks between them, in the order of the input
        self._pending: deque[Asked | Watermark] = deque()
        self._batches = 0
        # the last watermark whose rows have all been emitted
        self._passed_us = MIN_WATERMARK_US
        self._warned: set[tuple[str, str]] = set()

    def open(self, context: Context) -> None:
        self._context, self._clock, self._metrics = context, context.clock, context.metrics
        spec = self._spec
        self._restored = PendingLookups(spec.node.left.schema.to_arrow(), context.key_groups.start)
        arrow = spec.node.left.schema.to_arrow()
        what = LookupTable(
            spec.node.scan.table,
            spec.node.scan.columns,
            spec.node.scan.predicate,
            spec.node.right_keys,
            tuple(arrow.field(key).type for key in spec.node.left_keys),
        )
        # 0: requests run in the task's own thread
        threads = (
            int(lookup_option(spec.node.scan.table, "lookup.connections") or 1)
            if lookup_option(spec.node.scan.table, "lookup.async")
            else 0
        )
        self._client = LookupClient(what, self._keep, context.clock, threads, context.services)
        self._versions = self._open_versions(context)
        self._asking = lookup_asking(self._client, what, spec.node.left_keys, context.clock, self._versions)

    def _open_versions(self, context: Context) -> TableVersions | None:
        """A job with checkpoints names in them the version of a table that is reloaded."""
        options = self._options
        if reload_ms(self._table) is None or not (
            options.state_dir is not None or options.checkpoint_interval_ms > 0
        ):
            return None
        # the bounded backend knows where the rows are staged
        from penstock.engine.bounded.registry import BoundedBackends

        root = context.services.get(BoundedBackends).staging_root(
            options.state_dir, context.job_id, context.operator_id
        )
        return TableVersions(root, context.subtask, options.retained_checkpoints, context.clock)

    def list_states(self) -> dict[str, ListState]:
        return {} if self._versions is None else {"version": self._versions}

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        if self._versions is not None:
            self._versions.name(checkpoint_id)

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        if self._versions is not None:
            self._versions.complete(checkpoint_id)

    def keyed_states(self) -> dict[str, KeyedState]:
        # only the rows are stored, not their answers: a restore requests again
        self._restored.hold([rows.batch for rows in self._pending if isinstance(rows, Asked)])
        return {"under way": self._restored}

    def ready(self) -> bool:
        return self._batches < self._capacity

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        self._ask(batch)
        return start_output(self._emit_ready(out))

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        return start_output(self._pass_time(time_us, out))

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        # the end of the input: rows of the checkpoint that were not requested yet come first
        if time_us == MAX_WATERMARK_US:
            yield from self._resume_restored(out)
        # behind the rows in front of it; forwarded by _emit_ready
        if self._pending:
            self._pending.append(Watermark(time_us))
            return
        self._passed_us = time_us

    def passes_on(self, time_us: int) -> int:
        return self._passed_us

    def buffered_until_ms(self) -> float | None:
        # rows of a checkpoint wait to be requested
        if self._restored.has_restored:
            return 0.0
        if not self._pending:
            return None
        return 0.0 if self._head_is_done() else self._clock.monotonic_ms() + _LOOK_AGAIN_MS

    def release(self, out: Output) -> PendingOutput | None:
        return start_output(self._resume_restored(out))

    def _resume_restored(self, out: Output) -> PendingOutput:
        for batch in self._restored.take():
            self._ask(batch)
        yield from self._emit_ready(out)

    def settled(self) -> bool:
        return not self._pending and not self._restored.has_restored

    def close(self) -> None:
        if hasattr(self, "_client"):
            self._client.close()

    def _ask(self, batch: Batch) -> None:
        self._pending.append(self._asking.ask(batch, self._clock.monotonic_ms()))
        self._batches += 1

    def _head_is_done(self) -> bool:
        """Whether something can be emitted; a request that takes too long ends with an error."""
        now_ms = self._clock.monotonic_ms()
        # an answered batch may be emitted before earlier ones (unordered), but never across a watermark
        for rows in self._pending:
            if isinstance(rows, Watermark):
                return rows is self._pending[0]
            if rows.done or (rows.answer is not None and now_ms - rows.answer.asked_ms > self._timeout_ms):
                return True
            if self._in_order:
                return False
        return False

    def _emit_ready(self, out: Output) -> PendingOutput:
        """Emit what can be emitted: from the head, or out of order up to the first watermark."""
        waiting: list[Asked] = []
        while self._pending:
            rows = self._pending.popleft()
            # rows in front of the watermark are outstanding: it waits, and so do all rows behind it
            if isinstance(rows, Watermark):
                if waiting:
                    self._pending.appendleft(rows)
                    break
                self._passed_us = rows.time_us
                out.watermark(rows.time_us)
            # all keys are answered, by the table or the cache
            elif rows.done:
                yield from self._emit_answered(rows, out)
            else:
                self._check_timeout(rows)
                waiting.append(rows)
                if self._in_order:
                    break
        # back to the front, in their old order
        self._pending.extendleft(reversed(waiting))
        self._metrics.state_entries = sum(
            rows.batch.num_rows for rows in self._pending if isinstance(rows, Asked)
        )

    def _check_timeout(self, rows: Asked) -> None:
        if rows.answer is not None and self._clock.monotonic_ms() - rows.answer.asked_ms > self._timeout_ms:
            raise self._too_late()

    def _too_late(self) -> PenstockError:
        message = (
            f"table {self._table.name} was asked for rows and has not answered in "
            f"{self._timeout_ms / 1000:g} s"
        )
        hint = "raise 'lookup.timeout', or look at the database"
        return PenstockError(
            "RUN-2016", message, hint=hint, kind=Kind.EXTERNAL, retriable=True, sqlstate="57014"
        )

    def _emit_answered(self, rows: Asked, out: Output) -> PendingOutput:
        self._batches -= 1
        answer = rows.answer
        # None: the cache had all keys, nothing was requested
        if answer is not None:
            if answer.error is not None:
                raise answer.error
            self._count("lookup_requests", 1)
            self._count("lookup_retries", answer.retries)
            self._count("lookup_rows", 0 if answer.rows is None else answer.rows.num_rows)
            self._count("lookup_ms", round(answer.took_ms))
        self._asking.learn(rows, self._clock.monotonic_ms())
        self._metrics.counters["lookup_hits"], self._metrics.counters["lookup_misses"] = (
            self._asking.hits,
            self._asking.misses,
        )
        if self._asking.loads:
            self._metrics.counters["table_loads"], self._metrics.counters["failed_table_loads"] = (
                self._asking.loads,
                self._asking.failed_loads,
            )
            self._report_failure()
        yield from self._join(rows, out)

    def _report_failure(self) -> None:
        """Report a table that could not be reloaded, once per reason until a reload succeeds."""
        failure = self._asking.failure
        reason = None if failure is None else (failure.code, failure.message.splitlines()[0][:160])
        if reason is None and self._warned:
            self._warned.clear()
            self._context.report_event(Recovered(f"table {self._table.name} was read again"))
        elif reason is not None and reason not in self._warned:
            self._warned.add(reason)
            code, message = reason
            self._context.report_event(
                Warned(
                    code,
                    f"table {self._table.name} could not be read again and stays as it was: {message}",
                )
            )

    def _count(self, name: str, by: int) -> None:
        self._metrics.count(name, by)

    def _join(self, rows: Asked, out: Output) -> PendingOutput:
        # collected over all pieces: a row's matches may be in two of them
        matched = np.zeros(rows.batch.num_rows, np.bool_)
        for number, piece in enumerate(rows.pairs()):
            if number:
                yield
            self._emit_pairs(rows.batch, piece, matched, out)

    def _emit_pairs(self, batch: Batch, piece: Met, matched: np.ndarray, out: Output) -> None:
        """Emit one piece of pairs and, in a left join, the rows that are now known to have no match."""
        left, at = batch.rows, piece.at
        # pairs of an input row (`at`) and an answered row (`met`)
        columns = [*left.take(array_of(at)).columns, *piece.found.take(array_of(piece.met)).columns]
        # the ON condition beyond the equal keys; a row whose pairs all fail has no match
        if self._residual is not None and at.size:
            names = [str(i) for i in range(len(columns))]
            stored = is_true(self._residual(pa.RecordBatch.from_arrays(columns, names=names)))
            at, columns = at[stored], [column.filter(array_of(stored)) for column in columns]
        if self._pads:
            matched[at] = True
            # the pairs of rows first..last are complete with this piece
            single = piece.first + np.flatnonzero(~matched[piece.first : piece.last])
            at, columns = self._padded(left, at, columns, single)
        if at.size:
            # a retraction of the input retracts its pairs; lateness is that of the input row
            weights, behind = (
                None if values is None else values[at] for values in (batch.weights, batch.behind)
            )
            out.collect(Batch(pa.RecordBatch.from_arrays(columns, schema=self._output), weights, behind))

    def _padded(
        self, left: pa.RecordBatch, at: np.ndarray, columns: list[pa.Array], single: np.ndarray
    ) -> tuple[np.ndarray, list[pa.Array]]:
        """Insert rows without a match at their positions, padded with NULLs."""
        if not single.size:
            return at, columns
        nulls = [pa.nulls(single.size, kind) for kind in self._output.types[left.num_columns :]]
        added = [*left.take(array_of(single)).columns, *nulls]
        positions = np.concatenate([at, single])
        # the output has the order of the input
        order = array_of(np.argsort(positions, kind="stable"))
        return np.sort(positions), [
            pa.concat_arrays([column, more]).take(order) for column, more in zip(columns, added, strict=True)
        ]
