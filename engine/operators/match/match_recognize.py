"""MATCH_RECOGNIZE: rows wait until the watermark has passed them; then the search for matches resumes over
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import BOOLEAN
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    KeyGroups,
    Output,
    PendingOutput,
    emit_batch,
)
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, Batch
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.operators.event_time_buffer import EventTimeBufferOperator
from penstock.engine.operators.match.nfa_search import Matches, MatchSearch, Parts, earlier
from penstock.engine.operators.over.over_frames import OverFrames
from penstock.engine.operators.over.partitions import Partitions, PeerGroups, partitioned
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.rows.match_buffer import BEFORE, MatchRows
from penstock.planner.expressions.nodes import Column
from penstock.planner.logical.match_recognize import (
    Fact,
    MatchFact,
    MatchRecognize,
    Rows,
    RowsAggregate,
    RowValue,
    Value,
)
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.logical.over import Frame, FrameUnit
from penstock.planner.physical.operator_specs import OperatorSpec

_FRESH = 2**62
"""The order of rows that have just passed: above those of unfinished matches."""

# RUNNING aggregates: from the first row of the match to the current one
_RUNNING = Frame(FrameUnit.ROWS, None, 0)


class MatchRecognizeOperator(EventTimeBufferOperator[MatchRows]):
    """Emits a match once no later row can change it: no preferred alternative is open any more.

    The state is the rows of each partition's unfinished match with their transitions, and the rows before it
    that PREV reads. The number of matches is stored where MATCH_NUMBER needs it. If the time of matches is
    used above, the watermark waits for the matches that may still be emitted.
    """

    _node: MatchRecognize

    def __init__(self, spec: OperatorSpec[MatchRecognize, PartitionFacts], options: JobOptions) -> None:
        super().__init__(spec, options)
        self._search = MatchSearch(spec, options.time_zone)
        self._values = MatchMeasures(
            spec, self._search.labels, self._search.excluded, self._time_column, options.time_zone
        )
        # by slot of the partition: the earliest time of a match still to come, MAX_WATERMARK_US without one
        self._delayed_us = np.zeros(0, np.int64)
        # at the first watermark after a restore all unfinished matches are searched again
        self._restored = True

    def _buffer(self, groups: KeyGroups) -> MatchRows:
        return MatchRows(
            self._input,
            self._node.partition,
            self._time_column,
            self._keys,
            groups,
            self._search.transitions,
            self._lives.writes,
            numbered=self._facts.arrival != 0,
        )

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        """Resume the search where rows have passed, and where time ends an unfinished match."""
        due = self._rows.due(self._watermark_us)
        # partitions with new rows, and those whose match ends because of time alone (WITHIN)
        slots = np.concatenate([self._rows.slots(due), self._timed_out(time_us == MAX_WATERMARK_US)])
        if slots.size:
            self._lives.touch(self._rows.slots(due), self._keys.capacity)
            touched = self._distinct.of(slots, self._keys.capacity)
            for number, (slots, some) in enumerate(self._rows.at_once(touched, due)):
                if number:
                    yield
                matched_rows = self._pass(some, slots, time_us == MAX_WATERMARK_US)
                if matched_rows is not None:
                    yield from emit_batch(matched_rows, out)
        self._metrics.state_entries = len(self._rows)

    def _clear(self, expired: np.ndarray) -> None:
        self._delayed_us[expired[expired < self._delayed_us.size]] = MAX_WATERMARK_US
        self._free(expired)

    def passes_on(self, time_us: int) -> int:
        delayed_us = int(self._delayed_us.min(initial=MAX_WATERMARK_US))
        return time_us if delayed_us == MAX_WATERMARK_US else min(time_us, delayed_us)

    def _timed_out(self, ends: bool) -> np.ndarray:
        """Return the slots of unfinished matches that no row can extend any more. After a restore all are
        returned once, to know what delays the watermark.
        """
        if self._node.within_us is None and not ends and not self._restored:
            return np.zeros(0, np.int64)
        unfinished = self._rows.begun()
        if not ends and not self._restored:
            assert self._node.within_us is not None
            # WITHIN: a row of this time would be too far from the first row of the match
            unfinished = unfinished[self._rows.times(unfinished) + self._node.within_us < self._watermark_us]
        self._restored = False
        return self._rows.slots(unfinished)

    def _pass(self, due: np.ndarray, touched: np.ndarray, ends: bool) -> Batch | None:
        """Resume the search in the partitions of due rows; return the matches."""
        rows = self._rows
        # stored rows of unfinished matches, and the due rows behind them
        _, earlier = rows.passed.expand(touched)
        ids = np.concatenate([earlier, due])
        part = partitioned(rows.store.take(ids), rows.slots(ids), self._order, rows.store.arrived(ids))
        # A mark is BEFORE for rows that only PREV reads. Else it is the position in the match times the
        # number of transitions, plus the transition that accepted the row.
        marks = np.concatenate([rows.marks(earlier), np.full(due.size, _FRESH)])[part.origins]
        if ((marks[1:] < marks[:-1]) & (part.slots[1:] == part.slots[:-1])).any():
            marks = marks[
                np.lexsort((marks, part.slots))
            ]  # rows that are equal in all columns have changed places
        parts = self._parts(part, marks, ends)
        times = rows.times(ids)[part.origins]
        # the search advances `parts`: behind its matches, up to an unfinished one
        matches, tests = self._search.of(part, times, parts, self._watermark_us)
        slots = part.slots[parts.ends - 1]
        matched_rows = self._match_rows(part, matches, slots) if matches.parts.size else None
        self._delay_watermark(parts, tests, times, slots)
        self._store_unfinished(
            part,
            parts,
            ids[part.origins],
            part.origins < earlier.size,
            0 if ends else self._node.history,
        )
        return matched_rows

    def _parts(self, part: Partitions, marks: np.ndarray, ends: bool) -> Parts:
        """Return where the search resumes in each partition."""
        # by partition: rows for PREV, then rows of the unfinished match, then new rows
        firsts = np.flatnonzero(part.starts == np.arange(part.starts.size))
        before = np.add.reduceat(marks == BEFORE, firsts, dtype=np.int64)
        accepted = (marks >= 0) & (marks < _FRESH)
        # the search resumes behind so many accepted rows
        lengths = np.add.reduceat(accepted, firsts, dtype=np.int64)
        steps = np.where(accepted, marks % self._search.transitions, 0)
        return Parts(firsts + before, lengths, part.ends[firsts], np.full(firsts.size, ends, np.uint8), steps)

    def _match_rows(self, part: Partitions, matches: Matches, slots: np.ndarray) -> Batch:
        before = np.zeros(slots.size, np.int64)
        # MATCH_NUMBER() counts through all watermarks
        if self._node.counts:
            self._totals.reserve()
            before = self._totals.rows[slots]
            self._totals.count(slots[matches.parts])
        return Batch(self._values.of(part, matches, numbered(matches.parts, before)))

    def _delay_watermark(self, parts: Parts, tests: np.ndarray, times: np.ndarray, slots: np.ndarray) -> None:
        """The watermark waits for matches that may still be emitted and end at a row that has passed."""
        # no operator above uses the time of matches: the watermark need not wait
        if not self._node.tells_time:
            return
        # new partitions delay nothing
        if self._keys.capacity > self._delayed_us.size:
            known = self._delayed_us.size
            self._delayed_us = grown(self._delayed_us, self._keys.capacity)
            self._delayed_us[known:] = MAX_WATERMARK_US
        self._delayed_us[slots] = MAX_WATERMARK_US
        # partitions with an unfinished match
        waiting = np.flatnonzero(parts.lengths)
        rows = self._search.first_ends(parts, tests, waiting)
        self._delayed_us[slots[waiting]] = np.where(rows < 0, MAX_WATERMARK_US, times[rows])

    def _store_unfinished(
        self, part: Partitions, parts: Parts, ids: np.ndarray, old: np.ndarray, history: int
    ) -> None:
        """Store the rows of unfinished matches and the rows before them that PREV reads. Drop the others, and
        partitions without state.
        """
        here = np.arange(ids.size)
        counts = parts.ends - np.append(0, parts.ends[:-1])
        # by row: where the search of its partition resumes next time
        starts = np.repeat(parts.starts, counts)
        stored = here >= starts - history
        # new rows that stay become passed rows; old rows that stay need nothing; all others are dropped
        self._rows.keep(ids[stored & ~old])
        self._rows.mark(
            ids[stored],
            np.where(here < starts, BEFORE, (here - starts) * self._search.transitions + parts.steps)[stored],
        )
        self._rows.forget(ids[old & ~stored], ids[~old & ~stored])
        if not self._node.counts:
            self._free(part.slots[parts.ends - 1])

    def _free(self, slots: np.ndarray) -> None:
        """Drop the partitions among these slots that have no row left."""
        unused = self._unused(slots)
        if unused.size:
            self._keys.remove(unused)


@dataclass(frozen=True, eq=False)
class _Shown:
    """The rows of matches: ``part`` are the sorted rows, ``matches`` the matches in them.

    ``rows``: positions of the emitted rows among the matches' rows; ``lasts``: of the last row of each match.
    By row of a match: ``owners`` its match, ``begins`` where that begins, ``labels`` its variable.
    ``numbers``: of each match within its partition.
    """

    part: Partitions
    matches: Matches
    rows: np.ndarray
    lasts: np.ndarray
    owners: np.ndarray
    begins: np.ndarray
    labels: np.ndarray
    numbers: np.ndarray


class MatchMeasures:
    """Computes the output columns of one pattern."""

    def __init__(
        self,
        spec: OperatorSpec[MatchRecognize, PartitionFacts],
        labels: np.ndarray,
        excluded: np.ndarray,
        time_column: int,
        time_zone: str,
    ) -> None:
        self._spec, self._node, self._facts = spec, spec.node, spec.facts
        self._schema = spec.schema.to_arrow()
        self._labels, self._excluded = labels, excluded
        self._time_column = time_column
        self._zone = time_zone
        context = EvaluationContext(time_zone)
        self._measures = [compile_expression(measure, context) for measure in spec.node.measures]
        self._expressions = [
            compile_expression(value.expression, context) if isinstance(value, RowValue) else None
            for value in spec.node.values
        ]
        self._names = pa.array(spec.node.variables, pa.string())
        self._columns = range(len(spec.node.input.schema)) if spec.node.all_rows else spec.node.partition

    def of(self, part: Partitions, matches: Matches, numbers: np.ndarray) -> pa.RecordBatch:
        """Return the output rows, match by match; ``numbers``: the number of each match in its partition."""
        # rows of each match; `matches.rows` has the rows of all matches one after the other
        lengths = np.diff(matches.ends, prepend=0)
        owners = np.repeat(np.arange(lengths.size), lengths)
        ends = np.repeat(matches.ends, lengths)
        # ALL ROWS PER MATCH: every row outside {- -}; ONE ROW PER MATCH: the last row of each
        shown = np.flatnonzero(~self._excluded[matches.places]) if self._node.all_rows else matches.ends - 1
        what = _Shown(
            part,
            matches,
            shown,
            ends[shown] - 1,
            owners,
            ends - np.repeat(lengths, lengths),
            self._labels[matches.places],
            numbers,
        )
        values = [self._value(number, value, what) for number, value in enumerate(self._node.values)]
        # one more column: a measure without columns still needs a number of rows
        values.append(pa.nulls(shown.size))
        batch = pa.RecordBatch.from_arrays(values, names=[str(number) for number in range(len(values))])
        at = array_of(matches.rows[shown])
        columns = [part.rows.column(index).take(at) for index in self._columns]
        columns += [evaluate(batch) for evaluate in self._measures]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _value(self, number: int, value: Value, what: _Shown) -> pa.Array:
        # FINAL sees the whole match, RUNNING the rows up to the current one
        at = what.lasts if value.final else what.rows
        match value:
            # FIRST(A.x), LAST(A.x, 1), PREV(A.x): the value of one row
            case RowValue():
                return self._at_row(number, value, what, at)
            # SUM(A.x)
            case RowsAggregate():
                return self._over_rows(value, what, at)
            # CLASSIFIER(): the name of the row's variable
            case MatchFact(fact=Fact.CLASSIFIER):
                return self._names.take(array_of(what.labels[at]))
            # MATCH_NUMBER()
            case MatchFact(fact=Fact.NUMBER):
                return array_of(what.numbers[what.owners[at]])
        # MATCH_ROWTIME(): the time of the last row
        last = array_of(what.matches.rows[what.lasts])
        return what.part.rows.column(self._time_column).take(last)

    def _at_row(self, number: int, value: RowValue, what: _Shown, at: np.ndarray) -> pa.Array:
        """Find the n-th row of the variables; their rows are numbered through all matches."""
        evaluate = self._expressions[number]
        assert evaluate is not None
        # by row of a match: whether it belongs to the variable
        member = self._member(value.rows)[what.labels]
        positions = np.flatnonzero(member)
        so_far = np.cumsum(member)
        # the variable's rows in earlier matches: the match's own are numbered from here
        before = (so_far - member)[what.begins[at]]
        # FIRST counts from the begin of the match, LAST back from the current row
        wanted = before + value.offset if value.first else so_far[at] - 1 - value.offset
        # no such row in the match: NULL
        known = (wanted < so_far[at]) & (wanted >= before)
        rows = (
            what.matches.rows[positions[np.where(known, wanted, 0)]]
            if positions.size
            else np.zeros(at.size, np.int64)
        )
        values = earlier(evaluate(what.part.rows), what.part, value.before)
        return values.take(array_of(rows, ~known))

    def _member(self, rows: Rows) -> np.ndarray:
        return np.array([number in rows for number in range(len(self._node.variables))], np.bool_)

    def _over_rows(self, value: RowsAggregate, what: _Shown, at: np.ndarray) -> pa.Array:
        """Aggregate over those rows of each match that belong to the variables."""
        rows = what.part.rows.take(array_of(what.matches.rows))
        width = rows.num_columns
        member = array_of(self._member(value.rows)[what.labels])
        rows = pa.RecordBatch.from_arrays(
            [*rows.columns, member], names=[str(number) for number in range(width + 1)]
        )
        # SUM(A.x) is SUM(x) FILTER (WHERE the row is A)
        call = replace(value.call, filter=Column(BOOLEAN, False, index=width))
        # one value a match; at its last row RUNNING is the same as FINAL
        if value.final or not self._node.all_rows:
            totals = Accumulators([call], True, self._zone)
            totals.reserve(what.matches.ends.size)
            totals.add(what.owners, rows)
            return totals.results(np.arange(what.matches.ends.size))[0].take(array_of(what.owners[at]))
        # RUNNING at each row: an OVER aggregate with one partition a match
        ends = what.matches.ends[what.owners]
        whole = Partitions(rows, what.owners, what.begins, ends, np.arange(rows.num_rows))
        running = OverFrames([call], (), _RUNNING, self._zone)
        return running.of(whole, PeerGroups(what.begins == np.arange(rows.num_rows)))[0].take(array_of(at))


def numbered(parts: np.ndarray, before: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the number of each match from its part (ascending) and how many matches each part had before."""
    begins = np.flatnonzero(np.diff(parts, prepend=-1))
    within = np.arange(parts.size) - np.repeat(begins, np.diff(np.append(begins, parts.size)))
    return np.asarray(before)[parts] + within + 1
