"""WITH RECURSIVE, kept up to date: rows of the anchor, those the term derives from them, and so on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    BuildOperator,
    Context,
    KeyedState,
    Operator,
    Output,
    PendingOutput,
    emit_batch,
    start_output,
)
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import weights_of
from penstock.engine.expressions.evaluation_errors import too_many_iterations
from penstock.engine.operators.recursion.term_pipeline import TermPipeline
from penstock.engine.state.groups.row_derivations import NEVER, RowDerivations
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.physical.operator_specs import OperatorSpec, Recursion


class RecursiveUnionAllOperator(Operator):
    """UNION ALL: each derivation is a row. A change of an input changes the rows it leads to, by as much.

    Port 0 are the anchor's rows, the others those of the term. All that a batch leads to is emitted before
    the next. The rows themselves are not stored, only what the joins of the term store.
    """

    def __init__(
        self, spec: OperatorSpec[Recursion, OperatorFacts], options: JobOptions, build: BuildOperator
    ) -> None:
        """``build`` builds the operators of the term."""
        self._schema = spec.schema.to_arrow()
        self._most = spec.node.max_iterations
        self._term = TermPipeline(spec.node, options, build)

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._term.open(context)

    def on_restored(self) -> None:
        self._term.on_restored()

    def keyed_states(self) -> dict[str, KeyedState]:
        return self._term.keyed_states()

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        return start_output(self._derive(batch, port, out))

    def on_port_end(self, port: int, out: Output) -> PendingOutput | None:
        # the work table has rows as long as any input has
        if port:
            self._term.end_port(port)
        return None

    def close(self) -> None:
        self._term.close()

    def _derive(self, batch: Batch, port: int, out: Output) -> PendingOutput:
        batches = (
            [self._named(batch)] if port == 0 else list(map(self._named, self._term.process(port, batch)))
        )
        iteration = 0
        while batches:
            _check_iteration(iteration, self._most)
            following: list[Batch] = []
            for one in batches:
                yield from emit_batch(one, out)
                following += map(self._named, self._term.process(0, one))
            batches = following
            iteration += 1
        self._metrics.state_entries = self._term.state_entries

    def _named(self, batch: Batch) -> Batch:
        """The rows under the names of the result; what their source knew of time is gone."""
        return Batch(pa.RecordBatch.from_arrays(batch.rows.columns, schema=self._schema), batch.weights)


class RecursiveUnionOperator(RecursiveUnionAllOperator):
    """UNION: each row once, in the first iteration that derives it. The term sees that iteration beside it.

    A change is followed iteration by iteration, the earliest first. A row moves when its first iteration
    changes; what it leads to moves with it. So rows that only lead to each other vanish with the last row
    that led to them from outside. (Iterations are the loop times of differential dataflow, McSherry et al.,
    CIDR 2013.)
    """

    def open(self, context: Context) -> None:
        super().open(context)
        self._state = RowDerivations(
            [field.type for field in self._schema], context.key_groups.max_parallelism
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._state, **super().keyed_states()}

    def _derive(self, batch: Batch, port: int, out: Output) -> PendingOutput:
        due = _DueRows()
        if port == 0:
            due.add(0, batch)
        else:
            self._schedule(self._term.process(port, batch), due)
        # what each touched row was in before its first change
        touched: list[np.ndarray] = []
        before: list[np.ndarray] = []
        while (iteration := due.earliest()) is not None:
            _check_iteration(iteration, self._most)
            rows = self._counted(iteration, due)
            touched.append(rows)
            before.append(self._state.first[rows])
            moved = self._move(rows, iteration, due)
            if moved is not None:
                self._schedule(self._term.process(0, moved), due)
        if touched:
            yield from self._emit(np.concatenate(touched), np.concatenate(before), out)
        self._metrics.state_entries = len(self._state) + self._term.state_entries

    def _schedule(self, batches: list[Batch], due: _DueRows) -> None:
        """Make rows of the term due in the iteration behind that of the rows they come from."""
        for batch in batches:
            columns = batch.rows.columns
            come_from = columns[-1].to_numpy()
            rows = Batch(pa.RecordBatch.from_arrays(columns[:-1], schema=self._schema), batch.weights)
            for iteration in np.unique(come_from).tolist():
                due.add(iteration + 1, rows.take(np.flatnonzero(come_from == iteration)))

    def _counted(self, iteration: int, due: _DueRows) -> np.ndarray:
        """Count what is due in an iteration; return the rows that it may change, each once."""
        batches, slots = due.take(iteration)
        for batch in batches:
            slots.append(self._state.add(batch.rows.columns, weights_of(batch), iteration))
        return np.unique(np.concatenate(slots))

    def _move(self, rows: np.ndarray, iteration: int, due: _DueRows) -> Batch | None:
        """Move rows into an iteration, or out of it; return the changes of the work table."""
        first, earliest = self._state.first[rows], self._state.earliest(rows)
        enter = (earliest == iteration) & (first > iteration)
        leave = (earliest > iteration) & (first == iteration)
        # a row that a later iteration has may come back there, if that is still so then
        waits = (earliest > iteration) & (earliest != NEVER) & (leave | (first == NEVER))
        for later in np.unique(earliest[waits]).tolist():
            due.add_slots(later, rows[waits & (earliest == later)])
        self._state.first[rows[enter]] = iteration
        self._state.first[rows[leave]] = NEVER
        retracted = leave | (enter & (first != NEVER))
        if not (enter.any() or retracted.any()):
            return None
        slots = np.concatenate([rows[retracted], rows[enter]])
        iterations = np.concatenate([first[retracted], np.full(np.count_nonzero(enter), iteration)])
        weights = np.repeat(np.array([-1, 1]), [np.count_nonzero(retracted), np.count_nonzero(enter)])
        columns = [*self._state.rows.keys(slots), array_of(iterations)]
        names = [*self._schema.names, "iteration"]
        return Batch(pa.RecordBatch.from_arrays(columns, names), weights)

    def _emit(self, touched: np.ndarray, before: np.ndarray, out: Output) -> Iterator[None]:
        """Emit the rows that are there now and were not before, and those that are gone."""
        rows, positions = np.unique(touched, return_index=True)
        was, now = before[positions] != NEVER, self._state.first[rows] != NEVER
        gone, come = rows[was & ~now], rows[now & ~was]
        for slots, weight in ((gone, -1), (come, 1)):
            if slots.size:
                changed = pa.RecordBatch.from_arrays(self._state.rows.keys(slots), schema=self._schema)
                yield from emit_batch(
                    Batch(changed, np.full(slots.size, weight) if weight < 0 else None), out
                )
        self._state.forget(rows)


class _DueRows:
    """What is still to be looked at, by iteration: derivations to count, and slots of rows that may come
    back.
    """

    def __init__(self) -> None:
        self._batches: dict[int, list[Batch]] = {}
        self._slots: dict[int, list[np.ndarray]] = {}

    def add(self, iteration: int, batch: Batch) -> None:
        """Make derivations due."""
        self._batches.setdefault(iteration, []).append(batch)

    def add_slots(self, iteration: int, slots: np.ndarray) -> None:
        """Make rows due that may be in an iteration from now on."""
        self._slots.setdefault(iteration, []).append(slots)

    def earliest(self) -> int | None:
        """Return the first iteration that has something; None when nothing is left."""
        return min((*self._batches, *self._slots), default=None)

    def take(self, iteration: int) -> tuple[list[Batch], list[np.ndarray]]:
        """Take what is due in an iteration."""
        return self._batches.pop(iteration, []), self._slots.pop(iteration, [])


def _check_iteration(iteration: int, most: int) -> None:
    """Raise RUN-2025 behind the last iteration."""
    if iteration > most:
        fault = too_many_iterations(most)
        raise PenstockError(fault.code, fault.message, hint=fault.hint, sqlstate=fault.sqlstate)
