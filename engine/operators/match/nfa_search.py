"""MatchSearch: one pattern looked for in sorted rows."""

from __future__ import annotations

import numpy as np

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.kernels import nfa_search as kernel
from penstock.engine.kernels.condition_interpreter import NO_DIVISION, OVERFLOW
from penstock.engine.operators.match.condition_evaluation import RowTests
from penstock.engine.operators.over.partitions import Partitions
from penstock.planner.logical.match_recognize import SkipTo
from penstock.planner.logical.pattern_nfa import automaton_of
from penstock.planner.physical.operator_specs import MatchSpec

MOST_STEPS = 10_000_000
"""How many rows may be tried for one match."""
MOST_ROWS = 1_000_000
"""How many rows a match may have."""
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


@dataclass(frozen=True, eq=False)
class Parts:
    """Where partitions are searched, int64 each: from ``starts``, ``lengths`` rows of which an unfinished
    match has taken, to ``ends``.

    ``steps``: by row, the transition that took it. ``finals``: whether no row will follow.
    """

    starts: np.ndarray
    lengths: np.ndarray
    ends: np.ndarray
    finals: np.ndarray
    steps: np.ndarray


@dataclass(frozen=True, eq=False)
class Matches:
    """Matches found, int64 each: their ``parts``, where each ends in ``rows``, which are its rows among
    the sorted ones, and their ``places``.
    """

    parts: np.ndarray
    ends: np.ndarray
    rows: np.ndarray
    places: np.ndarray


class MatchSearch:
    """The automaton of a pattern and the conditions of its variables. ``labels``: by place, its variable;
    ``excluded``: whether it is not shown.
    """

    def __init__(self, spec: MatchSpec, time_zone: str) -> None:
        automaton = automaton_of(spec.pattern, spec.variables)
        self._tests = RowTests(spec.definitions, len(spec.variables), time_zone)
        self._offsets, self._targets = (
            np.array(automaton.offsets, np.int64),
            np.array(automaton.targets, np.int64),
        )
        self.labels, self.excluded = (
            np.array(automaton.variables, np.int64),
            np.array(automaton.excluded, np.bool_),
        )
        self._of_transition = np.where(self._targets < 0, 0, self.labels[self._targets])
        self._width = len(spec.variables)
        self._within = -1 if spec.within_us is None else spec.within_us
        self._skip = list(SkipTo).index(spec.skip)
        self._skips = np.array([number in spec.skip_rows for number in range(self._width)], np.uint8)

    @property
    def transitions(self) -> int:
        """How many transitions there are."""
        return self._targets.size

    def of(
        self, part: Partitions, times: np.ndarray, parts: Parts, now_us: int
    ) -> tuple[Matches, np.ndarray]:
        """Return the matches, ``parts`` moved on behind them, and what rows alone fulfil (for
        ``first_ends``).
        """
        tests = self._tests.of(part)
        cells = self._tests.cells(part)
        count, sets, totals = times.size, self._tests.member.size // self._width, self._tests.totals.size // 4
        places = self._offsets.size - 1
        failed = np.zeros(
            places * count if self._tests.alone and places * count <= _NOTES_MAX else 0, np.int64
        )
        lasts, firsts = np.empty(count * sets, np.int64), np.empty(count * sets, np.int64)
        wholes, reals, counts = (
            np.empty(count * totals, np.int64),
            np.empty(count * totals),
            np.empty(count * totals, np.int64),
        )
        found: list[Matches] = []
        room, at = max(1024, 2 * count), 0
        while True:
            out = [np.empty(room, np.int64) for _ in range(4)]
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
            found.append(Matches(out[0][:matches], out[1][:matches], out[2][:used], out[3][:used]))
            if ended == kernel.DONE:
                break
            if ended != kernel.FULL:
                raise _fault(int(ended))
            room *= 1 if matches else 2
        if int(parts.lengths.max(initial=0)) > MOST_ROWS:
            raise PenstockError(
                "RUN-2022",
                f"a match in the making has more than {MOST_ROWS:,} rows",
                hint="add WITHIN INTERVAL ..",
                sqlstate="54000",
            )
        return _joined(found), tests

    def first_ends(self, parts: Parts, tests: np.ndarray, waiting: np.ndarray) -> np.ndarray:
        """Return for each of the ``waiting`` parts the first row at which a match may still end, or -1."""
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


def _joined(found: list[Matches]) -> Matches:
    if len(found) == 1:
        return found[0]
    before = np.cumsum([0] + [matches.rows.size for matches in found])
    ends = np.concatenate([matches.ends + start for matches, start in zip(found, before[:-1], strict=True)])
    return Matches(
        np.concatenate([m.parts for m in found]),
        ends,
        np.concatenate([m.rows for m in found]),
        np.concatenate([m.places for m in found]),
    )


def _fault(ended: int) -> PenstockError:
    code, message, hint = _FAULTS[ended]
    return PenstockError(code, message, hint=hint, sqlstate="22000")
