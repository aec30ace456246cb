"""MatchValues: the rows shown of matches, with their measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import BOOLEAN
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.expressions.call_site import EvaluationContext
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.operators.match.condition_evaluation import earlier
from penstock.engine.operators.match.nfa_search import Matches
from penstock.engine.operators.over.over_frames import OverValues
from penstock.engine.operators.over.partitions import Partitions
from penstock.engine.operators.over.peers import PeerGroups
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.planner.expressions.nodes import Column
from penstock.planner.logical.match_recognize import Fact, MatchFact, Rows, RowsAggregate, RowValue, Value
from penstock.planner.logical.over import Frame, FrameUnit
from penstock.planner.physical.operator_specs import MatchSpec

_SO_FAR = Frame(FrameUnit.ROWS, None, 0)


@dataclass(frozen=True, eq=False)
class _Shown:
    """What is shown of matches, whose rows stand one after the other: ``part`` the sorted rows, ``matches``
    those found in them.

    ``rows``: the positions among the matches' rows of those shown; ``lasts``: of the last rows of their
    matches. Of each of the matches' rows, ``owners``: which match it is of, ``begins``: where that begins,
    ``labels``: its variable. ``numbers``: of each match within its partition.
    """

    part: Partitions
    matches: Matches
    rows: np.ndarray
    lasts: np.ndarray
    owners: np.ndarray
    begins: np.ndarray
    labels: np.ndarray
    numbers: np.ndarray


class MatchValues:
    """Computes the output of one pattern."""

    def __init__(
        self, spec: MatchSpec, labels: np.ndarray, excluded: np.ndarray, time_column: int, time_zone: str
    ) -> None:
        self._spec = spec
        self._schema = spec.schema.to_arrow()
        self._labels, self._excluded = labels, excluded
        self._time_column = time_column
        self._zone = time_zone
        context = EvaluationContext(time_zone)
        self._measures = [compile_expression(measure, context) for measure in spec.measures]
        self._expressions = [
            compile_expression(value.expression, context) if isinstance(value, RowValue) else None
            for value in spec.values
        ]
        self._names = pa.array(spec.variables, pa.string())
        self._columns = range(len(spec.input_schema)) if spec.all_rows else spec.partition

    def of(self, part: Partitions, matches: Matches, numbers: np.ndarray) -> pa.RecordBatch:
        """Return the rows shown, match by match; ``numbers``: the number of each match in its partition."""
        lengths = np.diff(matches.ends, prepend=0)
        owners = np.repeat(np.arange(lengths.size), lengths)
        ends = np.repeat(matches.ends, lengths)
        shown = np.flatnonzero(~self._excluded[matches.places]) if self._spec.all_rows else matches.ends - 1
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
        values = [self._value(number, value, what) for number, value in enumerate(self._spec.values)]
        values.append(pa.nulls(shown.size))
        batch = pa.RecordBatch.from_arrays(values, names=[str(number) for number in range(len(values))])
        at = array_of(matches.rows[shown])
        columns = [part.rows.column(index).take(at) for index in self._columns]
        columns += [evaluate(batch) for evaluate in self._measures]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _value(self, number: int, value: Value, what: _Shown) -> pa.Array:
        at = what.lasts if value.final else what.rows
        match value:
            case RowValue():
                return self._at_row(number, value, what, at)
            case RowsAggregate():
                return self._over_rows(value, what, at)
            case MatchFact(fact=Fact.CLASSIFIER):
                return self._names.take(array_of(what.labels[at]))
            case MatchFact(fact=Fact.NUMBER):
                return array_of(what.numbers[what.owners[at]])
        last = array_of(what.matches.rows[what.lasts])
        return what.part.rows.column(self._time_column).take(last)

    def _at_row(self, number: int, value: RowValue, what: _Shown, at: np.ndarray) -> pa.Array:
        """Find the row among its variables' as they are numbered through all matches."""
        evaluate = self._expressions[number]
        assert evaluate is not None
        member = self._member(value.rows)[what.labels]
        places = np.flatnonzero(member)
        so_far = np.cumsum(member)
        before = (so_far - member)[what.begins[at]]
        wanted = before + value.offset if value.first else so_far[at] - 1 - value.offset
        known = (wanted < so_far[at]) & (wanted >= before)
        rows = (
            what.matches.rows[places[np.where(known, wanted, 0)]]
            if places.size
            else np.zeros(at.size, np.int64)
        )
        values = earlier(evaluate(what.part.rows), what.part, value.before)
        return values.take(array_of(rows, ~known))

    def _member(self, rows: Rows) -> np.ndarray:
        return np.array([number in rows for number in range(len(self._spec.variables))], np.bool_)

    def _over_rows(self, value: RowsAggregate, what: _Shown, at: np.ndarray) -> pa.Array:
        """Aggregate over the rows of each match that are of the variables."""
        rows = what.part.rows.take(array_of(what.matches.rows))
        width = rows.num_columns
        member = array_of(self._member(value.rows)[what.labels])
        rows = pa.RecordBatch.from_arrays(
            [*rows.columns, member], names=[str(number) for number in range(width + 1)]
        )
        call = replace(value.call, filter=Column(BOOLEAN, False, index=width))
        if value.final or not self._spec.all_rows:
            totals = Accumulators([call], True, self._zone)
            totals.reserve(what.matches.ends.size)
            totals.add(what.owners, rows)
            return totals.results(np.arange(what.matches.ends.size))[0].take(array_of(what.owners[at]))
        ends = what.matches.ends[what.owners]
        whole = Partitions(rows, what.owners, what.begins, ends, np.arange(rows.num_rows))
        running = OverValues([call], (), _SO_FAR, self._zone)
        return running.of(whole, PeerGroups(what.begins == np.arange(rows.num_rows)))[0].take(array_of(at))


def numbered(parts: np.ndarray, before: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the number of each match, given its part (ascending) and how many matches each part had
    before.
    """
    begins = np.flatnonzero(np.diff(parts, prepend=-1))
    within = np.arange(parts.size) - np.repeat(begins, np.diff(np.append(begins, parts.size)))
    return np.asarray(before)[parts] + within + 1
