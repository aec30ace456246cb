"""The search for one pattern in sorted rows: its NFA, and the evaluation of the variables' conditions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of, is_true, numbers_of, truths
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels import nfa_search as kernel
from penstock.engine.kernels.condition_interpreter import NO_DIVISION, OVERFLOW
from penstock.engine.operators.over.partitions import Partitions
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.condition_program import TOTALS, CellKind, Programs, programs_of
from penstock.planner.logical.match_recognize import Definition, MatchRecognize, RowValue, SkipTo, Value
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.logical.pattern_nfa import automaton_of
from penstock.planner.physical.operator_specs import OperatorSpec

MOST_STEPS = 10_000_000
"""The most rows that may be tried for one match."""

MOST_ROWS = 1_000_000
"""The most rows a match may have."""

# states x rows that the search notes as failed, 64 MiB; a larger search works without notes
_NOTES_MAX = 1 << 23

_FAULTS = {
    OVERFLOW: (
        "RUN-2002",
        "a value of DEFINE is out of the range of its type",
        "CAST to a wider type, or to DOUBLE",
    ),
    NO_DIVISION: ("RUN-2001", "DEFINE divides by zero", "test the divisor first: B.x <> 0 AND .."),
    kernel.NO_TARGET: (
        "RUN-2021",
        "AFTER MATCH SKIP TO names a variable that has no row in a match",
        "skip PAST LAST ROW, or to a variable every match has",
    ),
    kernel.NO_PROGRESS: (
        "RUN-2021",
        "AFTER MATCH SKIP TO leads to the first row of a match, where it would be found again",
        "skip TO NEXT ROW, or PAST LAST ROW",
    ),
    kernel.TOO_FAR: (
        "RUN-2022",
        f"the search for one match has tried {MOST_STEPS:,} rows",
        "make the conditions of neighbouring variables exclude each other, or add WITHIN INTERVAL ..",
    ),
}

# what a row alone decides of a variable: it matches, or the condition's program decides
_ALONE, _ALONG = 1, 2


@dataclass(frozen=True, eq=False)
class Parts:
    """Where partitions are searched, int64 each. From ``starts`` on, ``lengths`` rows belong to an unfinished
    match; the search goes to ``ends``.

    ``steps``: by row, the transition that accepted it. ``finals`` (uint8): whether no row will
    follow.
    """

    starts: np.ndarray
    lengths: np.ndarray
    ends: np.ndarray
    finals: np.ndarray
    steps: np.ndarray


@dataclass(frozen=True, eq=False)
class Cells:
    """Columns for condition programs, one after the other; each has a last cell for "no row". Integers,
    floats, validity.
    """

    whole: np.ndarray
    real: np.ndarray
    valid: np.ndarray


class ConditionEvaluation:
    """The conditions of the variables of one pattern, as arrays of programs: ``code`` with ``code_at`` by
    variable, ``totals``, ``places``, ``member``.

    ``member``: by set of rows and variable, whether the variable's rows belong to the set.
    """

    def __init__(self, definitions: Sequence[Definition], variables: int, time_zone: str) -> None:
        self._context = EvaluationContext(time_zone)
        self._variables = variables
        self._programs = programs_of(definitions)
        self._tests = [
            (test.variable, self._over(test.condition, test.values)) for test in self._programs.tests
        ]
        self._columns = [
            (column, self._over(column.expression, column.values)) for column in self._programs.columns
        ]
        self._encode(self._programs)

    def _encode(self, programs: Programs) -> None:
        # sets of variables that programs name (A, or SUBSET U = (A, B)), each once
        sets = list(
            dict.fromkeys(
                [
                    *(p.rows for p in programs.places if p.rows is not None),
                    *(total.rows for total in programs.totals),
                ]
            )
        )
        # (sets, variables) as one vector: 1 where the variable is in the set
        self.member = np.array(
            [number in rows for rows in sets for number in range(self._variables)], np.uint8
        )
        # FIRST and LAST in conditions, three numbers each: set (-1: the row itself), whether FIRST, offset
        places = [
            (-1 if p.rows is None else sets.index(p.rows), int(p.first), p.offset) for p in programs.places
        ]
        self.places = np.array(places, np.int64).ravel()
        # SUM(A.x) in conditions, four numbers each: function, column (-1: COUNT(*)), set, whether of floats
        totals = []
        for total in programs.totals:
            real = total.column is not None and programs.columns[total.column].kind is CellKind.FLOAT
            totals.append(
                (
                    TOTALS.index(total.function),
                    -1 if total.column is None else total.column,
                    sets.index(total.rows),
                    int(real),
                )
            )
        self.totals = np.array(totals, np.int64).ravel()
        # the instructions of all variables in one vector: variable v has code_at[v] up to code_at[v + 1]
        code: list[tuple[int, int, int]] = []
        code_at = [0]
        for variable in range(self._variables):
            code += programs.code.get(variable, [])
            code_at.append(len(code))
        self.code, self.code_at = np.array(code, np.int64).ravel(), np.array(code_at, np.int64)

    @property
    def alone(self) -> bool:
        """Whether every condition reads its own row only."""
        return self.code.size == 0

    def _over(self, expression: Expression, values: Sequence[Value]) -> _Over:
        return _Over(expression, values, self._context)

    def of(self, part: Partitions) -> np.ndarray:
        """Return what the row alone decides, uint8 by row and variable: 0 it does not match, 1 it does, 2 the
        program decides.
        """
        start = [_ALONG if variable in self._programs.code else _ALONE for variable in range(self._variables)]
        known = np.tile(np.array(start, np.uint8), (part.rows.num_rows, 1))
        for variable, condition in self._tests:
            # NULL is not TRUE: the row does not match
            known[~is_true(condition.of(part, False)), variable] = 0
        return known.ravel()

    def cells(self, part: Partitions) -> Cells:
        """Return the columns that programs load."""
        # one cell more than rows: the value at "no row"
        stride = part.rows.num_rows + 1
        shape = (len(self._columns), stride)
        whole, real, valid = np.zeros(shape, np.int64), np.zeros(shape, np.float64), np.zeros(shape, np.uint8)
        arrays = [over.of(part, True) for _, over in self._columns]
        ranks = iter(
            _ranks(
                [
                    array
                    for (column, _), array in zip(self._columns, arrays, strict=True)
                    if column.kind is CellKind.TEXT
                ]
            )
        )
        for number, ((column, _), array) in enumerate(zip(self._columns, arrays, strict=True)):
            valid[number] = truths(array.is_valid())
            # DOUBLE and REAL
            if column.kind is CellKind.FLOAT:
                real[number] = col.floats(array)
            # strings as ranks: they have the order and equality of the strings
            elif column.kind is CellKind.TEXT:
                whole[number] = next(ranks)
            else:
                # integers, times, BOOLEAN, and a DECIMAL's digits
                whole[number] = _whole(array)
        return Cells(whole.ravel(), real.ravel(), valid.ravel())


class _Over:
    """An expression whose values are all read at one row."""

    def __init__(self, expression: Expression, values: Sequence[Value], context: EvaluationContext) -> None:
        self._read = sorted(expression.columns())
        self._values = []
        for value in map(values.__getitem__, self._read):
            assert isinstance(value, RowValue)
            self._values.append((compile_expression(value.expression, context), value.before))
        positions = {old: new for new, old in enumerate(self._read)}
        self._evaluate = compile_expression(expression.remap(positions), context)

    def of(self, part: Partitions, absent: bool) -> pa.Array:
        """Return the expression at each of the sorted rows; with ``absent`` also at no row, where all values
        are NULL.
        """
        columns = [earlier(evaluate(part.rows), part, before) for evaluate, before in self._values]
        # the cell behind the last row: A.x where A has no row is NULL
        if absent:
            columns = [pa.concat_arrays([column, pa.nulls(1, column.type)]) for column in columns]
        columns.append(pa.nulls(part.rows.num_rows + absent))
        return self._evaluate(
            pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
        )


def earlier(values: pa.Array, part: Partitions, before: int) -> pa.Array:
    """Return, for each sorted row, the value so many rows before it in its partition, NULL where there is
    none.
    """
    if not before:
        return values
    at = np.arange(part.rows.num_rows) - before
    known = at >= part.starts
    return values.take(array_of(np.where(known, at, 0), ~known))


def _whole(array: pa.Array) -> np.ndarray:
    """Return the values as int64; a decimal's digits without its point. Undefined under NULL."""
    if not pa.types.is_decimal128(array.type):
        return col.words(array)
    low, high = col.wide_words(array)
    valid = truths(array.is_valid())
    # the upper half only repeats the sign while the digits fit into 64 bits
    if (valid & (high != low >> 63)).any():
        message = "a DECIMAL in DEFINE is out of the range of 18 digits"
        raise PenstockError("RUN-2002", message, hint="compute with CAST(A.x AS DOUBLE)", sqlstate="22003")
    return low


def _ranks(arrays: list[pa.Array]) -> list[np.ndarray]:
    """Return strings as their ranks among all strings of all arrays."""
    if not arrays:
        return []
    coded = pc.dictionary_encode(pa.concat_arrays(arrays))
    order = numbers_of(pc.sort_indices(coded.dictionary))
    rank = np.empty(order.size + 1, np.int64)
    # the last entry is for NULL, coded as -1
    rank[order] = np.arange(order.size)
    rank[-1] = 0
    return np.split(
        rank[numbers_of(coded.indices.fill_null(-1))], np.cumsum([len(array) for array in arrays])[:-1]
    )


@dataclass(frozen=True, eq=False)
class Matches:
    """Matches, as int64 arrays. By match, ``parts`` is its partition and ``ends`` the end of its rows in
    ``rows``. By row of a match, ``rows`` is its position and ``places`` the state of the NFA that accepted
    it.
    """

    parts: np.ndarray
    ends: np.ndarray
    rows: np.ndarray
    places: np.ndarray


class MatchSearch:
    """The NFA of a pattern and the conditions of its variables. By state of the NFA, ``labels``: its
    variable; ``excluded``: whether its row is not output.
    """

    def __init__(self, spec: OperatorSpec[MatchRecognize, PartitionFacts], time_zone: str) -> None:
        automaton = automaton_of(spec.node.pattern, spec.node.variables)
        self._tests = ConditionEvaluation(spec.node.definitions, len(spec.node.variables), time_zone)
        self._offsets, self._targets = (
            np.array(automaton.offsets, np.int64),
            np.array(automaton.targets, np.int64),
        )
        self.labels, self.excluded = (
            np.array(automaton.variables, np.int64),
            np.array(automaton.excluded, np.bool_),
        )
        # the variable each transition accepts; a negative target is the end of the pattern
        self._of_transition = np.where(self._targets < 0, 0, self.labels[self._targets])
        self._width = len(spec.node.variables)
        # -1: no WITHIN
        self._within = -1 if spec.node.within_us is None else spec.node.within_us
        self._skip = list(SkipTo).index(spec.node.skip)
        self._skips = np.array([number in spec.node.skip_rows for number in range(self._width)], np.uint8)

    @property
    def transitions(self) -> int:
        """The number of transitions."""
        return self._targets.size

    def of(
        self, part: Partitions, times: np.ndarray, parts: Parts, now_us: int
    ) -> tuple[Matches, np.ndarray]:
        """Return the matches, with ``parts`` advanced behind them, and what rows alone decide (for
        ``first_ends``).
        """
        tests = self._tests.of(part)
        cells = self._tests.cells(part)
        count, sets, totals = times.size, self._tests.member.size // self._width, self._tests.totals.size // 4
        places = self._offsets.size - 1
        # Notes of (place, row) that led to no match. Only where conditions read their own row alone: else the
        # same place and row may succeed after other rows.
        failed = np.zeros(
            places * count if self._tests.alone and places * count <= _NOTES_MAX else 0, np.int64
        )
        # scratch arrays of the kernel: by row and set, by row and total
        lasts, firsts = np.empty(count * sets, np.int64), np.empty(count * sets, np.int64)
        wholes, reals, counts = (
            np.empty(count * totals, np.int64),
            np.empty(count * totals),
            np.empty(count * totals, np.int64),
        )
        pieces: list[Matches] = []
        # rows of matches the output arrays can take, and the partition the search has reached
        capacity, at = max(1024, 2 * count), 0
        while True:
            out = [np.empty(capacity, np.int64) for _ in range(4)]
            ended, at, _, matches = kernel.search(
                *(parts.ends, parts.starts, parts.lengths, parts.finals, at),
                *(times, tests, failed, self._within, now_us, MOST_STEPS),
                *(self._offsets, self._targets, self._of_transition),
                *(
                    self._tests.code,
                    self._tests.code_at,
                    self._tests.totals,
                    self._tests.places,
                    self._tests.member,
                    self._width,
                ),
                *(cells.whole, cells.real, cells.valid),
                *(parts.steps, lasts, firsts, wholes, reals, counts),
                *(self._skip, self._skips),
                *out,
            )
            used = int(out[1][matches - 1]) if matches else 0
            pieces.append(Matches(out[0][:matches], out[1][:matches], out[2][:used], out[3][:used]))
            # every partition was searched to its end
            if ended == kernel.DONE:
                break
            # FULL: the output arrays are full; everything else is an error
            if ended != kernel.FULL:
                raise _fault(int(ended))
            # not even one match fits: twice the size; else search from where it stopped
            capacity *= 1 if matches else 2
        if int(parts.lengths.max(initial=0)) > MOST_ROWS:
            raise PenstockError(
                "RUN-2022",
                f"a match in the making has more than {MOST_ROWS:,} rows",
                hint="add WITHIN INTERVAL ..",
                sqlstate="54000",
            )
        return _joined(pieces), tests

    def first_ends(self, parts: Parts, tests: np.ndarray, waiting: np.ndarray) -> np.ndarray:
        """Return, for each of the ``waiting`` parts, the first row at which a match may still end, or -1."""
        # scratch array: states of the NFA that are reached now and next
        reached = np.empty(2 * (self._offsets.size - 1), np.uint8)
        rows = np.empty(waiting.size, np.int64)
        kernel.first_ends(
            parts.starts,
            parts.ends,
            waiting,
            self._width,
            tests,
            self._offsets,
            self._targets,
            self._of_transition,
            reached,
            rows,
        )
        return rows


def _joined(pieces: list[Matches]) -> Matches:
    if len(pieces) == 1:
        return pieces[0]
    # ends count rows of all matches together
    before = np.cumsum([0] + [matches.rows.size for matches in pieces])
    ends = np.concatenate([matches.ends + start for matches, start in zip(pieces, before[:-1], strict=True)])
    return Matches(
        np.concatenate([m.parts for m in pieces]),
        ends,
        np.concatenate([m.rows for m in pieces]),
        np.concatenate([m.places for m in pieces]),
    )


def _fault(ended: int) -> PenstockError:
    code, message, hint = _FAULTS[ended]
    return PenstockError(code, message, hint=hint, sqlstate="22000")
