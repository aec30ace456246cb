"""The match search of MATCH_RECOGNIZE: a depth-first search through the pattern's NFA. Preferred transitions
come first, so the first end it reaches is the match.

The only state of an unfinished match is ``steps``: the transition that matched each row. At the end of the
buffered rows a search stops; it resumes from the same steps when more rows arrive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, types

from penstock.engine.kernels.condition_interpreter import (
    ConditionCells,
    Conditions,
    Match,
    Stack,
    StackPrograms,
    evaluate_condition,
    running_total,
)
from penstock.engine.kernels.kernel import I64, IN_F64, IN_I64, IN_U8, OUT_F64, OUT_I64, OUT_U8, VOID, kernel
from penstock.planner.logical.condition_program import MAX_STACK

# How a search ends: with all partitions searched; with no space left for matches; where SKIP TO has no row,
# or leads to the match's first row; with too many steps for one match. 1 and 2 are faults of conditions
# (``condition_interpreter``).
DONE, FULL, NO_TARGET, NO_PROGRESS, TOO_FAR = 0, 3, 4, 5, 6

# What ``tests`` says of a row as a variable's: 0 it is none; it is one; the variable's program decides.
IS_MEMBER, PROGRAM_DECIDES = 1, 2

# AFTER MATCH SKIP, by the position in ``SkipTo``.
_PAST_LAST_ROW, _TO_NEXT_ROW, _TO_FIRST = 0, 1, 2

# How an attempt ends: with a match; at the end of the buffered rows; with no match from this row.
_MATCHED, _PENDING, _NO_MATCH = 1, 2, 3
# The last time of a match without WITHIN.
_FOREVER = 2**63 - 1


class TransitionTable(NamedTuple):
    """The NFA. The transitions of state s are those from ``offsets[s]`` to ``offsets[s + 1]``, preferred
    first.

    The last state is the start.
    """

    offsets: np.ndarray
    """int64[states + 1]."""
    targets: np.ndarray
    """int64[transitions]: the state a transition leads to; below 0: the match ends here."""
    labels: np.ndarray
    """int64[transitions]: the variable whose row it matches."""


class SearchRows(NamedTuple):
    """The sorted rows of all partitions, with the results of conditions on a single row."""

    times: np.ndarray
    """int64[rows]: event time, microseconds."""
    tests: np.ndarray
    """uint8[rows * variables]: see IS_MEMBER."""
    failed: np.ndarray
    """int64[states * rows]: the epoch in which the remaining pattern did not match from this state and row;
    empty where this is not noted.
    """


@njit(nogil=True)
def note_row(row, start, variable, conditions, match, cells):
    """Write the notes of a row that became a variable's: first and last rows of each set, running aggregates.
    Return a fault of the aggregates.
    """
    all_totals, _, is_member, variables, sets = conditions
    _, _, lasts, firsts, ints, floats, counts = match
    # The notes of the row before; at the first row of the match there are none.
    for group in range(sets):
        at = row * sets + group
        before = at - sets
        belongs = is_member[group * variables + variable]
        lasts[at] = row if belongs else (lasts[before] if row > start else -1)
        first = firsts[before] if row > start else -1
        firsts[at] = row if belongs and first < 0 else first
    fault = 0
    totals = all_totals.size // 4
    for total in range(totals):
        at = row * totals + total
        ints[at], floats[at], counts[at], wrong = running_total(
            total, row, start, variable, conditions, match, cells
        )
        fault = fault or wrong
    return fault


@njit(nogil=True)
def next_start(start, end, skip, skip_variables, match):
    """Return the row at which the search resumes after a match. A negative result is an error of SKIP TO."""
    if skip == _PAST_LAST_ROW:
        return end
    if skip == _TO_NEXT_ROW:
        return start + 1
    # SKIP TO FIRST x stops at the first row of x, SKIP TO LAST x goes on to the last.
    labels, steps = match.labels, match.steps
    target = -NO_TARGET
    for row in range(start, end):
        if skip_variables[labels[steps[row]]]:
            target = row
            if skip == _TO_FIRST:
                break
    # Resuming at the first row of the match would find the same match again.
    return -NO_PROGRESS if target == start else target


@njit(nogil=True)
def attempt(
    start, row, end, is_final, last_us, epoch, most_steps,
    rows, automaton, programs, conditions, match, cells, stack,
):  # fmt: skip
    """Search for the match that begins at ``start``. The rows before ``row`` are matched already.

    Rows end at ``end``; ``is_final`` means that no more will arrive. Rows after ``last_us`` are outside of
    WITHIN. Return the outcome, the row reached and a fault.
    """
    offsets, targets, labels = automaton.offsets, automaton.targets, automaton.labels
    times, tests, failed, steps = rows.times, rows.tests, rows.failed, match.steps
    count, variables = times.size, conditions.variables
    # ``offsets`` has one entry more than there are states, and the last state is the start.
    first_state, has_notes = offsets.size - 2, conditions.sets > 0
    # A resumed search continues in the state that its last step led to.
    state = targets[steps[row - 1]] if row > start else first_state
    transition, tried = offsets[state], 0
    while True:
        moved = False
        while transition < offsets[state + 1]:
            target = targets[transition]
            # The pattern ends here, and this end is preferred over the transitions after it.
            if target < 0:
                return _MATCHED, row, 0
            if row >= end:
                # Only rows can decide this transition: wait for them, or try the next one where none will
                # come.
                if not is_final:
                    return _PENDING, row, 0
            elif times[row] <= last_us:
                variable = labels[transition]
                test = tests[row * variables + variable]
                # A state that failed at this row before need not be tried again.
                if test and (failed.size == 0 or failed[target * count + row] != epoch):
                    # Transitions tried are what a search costs.
                    tried += 1
                    moved, fault = test == IS_MEMBER, 0
                    if not moved:
                        moved, fault = evaluate_condition(
                            row, start, variable, programs, conditions, match, cells, stack
                        )
                    if moved and not fault:
                        steps[row] = transition
                        if has_notes:
                            fault = note_row(row, start, variable, conditions, match, cells)
                    # An error of the query at this row, not a row that does not match.
                    if fault:
                        return _NO_MATCH, row, fault
                    if moved:
                        break
            transition += 1
        if moved:
            # The row matches: continue with the next one in the new state.
            row += 1
            state = target
            transition = offsets[state]
        # All transitions of the first row failed.
        elif row == start:
            return _NO_MATCH, row, 0
        elif tried > most_steps:
            return _NO_MATCH, start, TOO_FAR
        else:
            # No transition fits: step back a row, and try the transition after the one that took it.
            row -= 1
            # From this state and row on nothing matched in this epoch.
            if failed.size:
                failed[state * count + row] = epoch
            transition = steps[row] + 1
            state = targets[steps[row - 1]] if row > start else first_state


_SEARCH = types.Tuple([I64, I64, I64, I64])(
    *[IN_I64, OUT_I64, OUT_I64, IN_U8, I64],
    *[IN_I64, IN_U8, OUT_I64, I64, I64, I64],
    *[IN_I64, IN_I64, IN_I64],
    *[IN_I64, IN_I64, IN_I64, IN_I64, IN_U8, I64],
    *[IN_I64, IN_F64, IN_U8],
    *[OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_F64, OUT_I64],
    *[I64, IN_U8],
    *[OUT_I64, OUT_I64, OUT_I64, OUT_I64],
)


@kernel(_SEARCH)
def search(
    ends, starts, lengths, finals, part,
    times, tests, failed, within, now, most_steps,
    offsets, targets, labels,
    code, code_at, totals, navigations, is_member, variables,
    cell_ints, cell_floats, cell_valid,
    steps, lasts, firsts, total_ints, total_floats, total_counts,
    skip, skip_variables,
    match_parts, match_ends, out_rows, out_states,
):  # fmt: skip
    """Search the partitions from number ``part`` on. Return the outcome, the partition and row where the
    search ended, and the number of matches.

    A partition's rows are ``starts`` to ``ends``; the search advances ``starts``. The first ``lengths`` rows
    are an unfinished match, with their transitions in ``steps``. ``finals`` marks the partitions that get no
    more rows. Matches are written consecutively with their rows and states; ``match_ends`` has their ends.
    The other arrays: see SearchRows, TransitionTable, Conditions, ConditionCells and Match.
    """
    rows = SearchRows(times, tests, failed)
    automaton = TransitionTable(offsets, targets, labels)
    programs = StackPrograms(code, code_at)
    conditions = Conditions(totals, navigations, is_member, variables, is_member.size // variables)
    match = Match(steps, labels, lasts, firsts, total_ints, total_floats, total_counts)
    cells = ConditionCells(cell_ints, cell_floats, cell_valid, times.size + 1)
    stack = Stack(
        np.empty(MAX_STACK, np.int64), np.empty(MAX_STACK, np.float64), np.empty(MAX_STACK, np.int64)
    )
    matches, used = 0, 0
    while part < ends.size:
        # The notes of an unfinished match are not stored: its rows are noted again.
        for row in range(starts[part], starts[part] + lengths[part]):
            note_row(row, starts[part], labels[steps[row]], conditions, match, cells)
        while starts[part] < ends[part]:
            start = starts[part]
            last_us = times[start] + within if within >= 0 else _FOREVER
            is_final = finals[part] or last_us < now
            # Under WITHIN a failure depends on the match's first row; else it holds for every start.
            epoch = start + 1 if within >= 0 else 1
            end, at = ends[part], start + lengths[part]
            lengths[part] = 0
            outcome, row, fault = attempt(
                start, at, end, is_final, last_us, epoch, most_steps,
                rows, automaton, programs, conditions, match, cells, stack,
            )  # fmt: skip
            if fault:
                return fault, part, row, matches
            # The rows so far are the unfinished match.
            if outcome == _PENDING:
                lengths[part] = row - start
                break
            if outcome == _NO_MATCH:
                starts[part] = start + 1
                continue
            if matches >= match_ends.size or used + row - start > out_rows.size:
                # The caller takes the matches and calls again: the match is then found at once by its steps.
                lengths[part] = row - start
                return FULL, part, row, matches
            for matched in range(start, row):
                out_rows[used] = matched
                out_states[used] = targets[steps[matched]]
                used += 1
            match_parts[matches], match_ends[matches] = part, used
            matches += 1
            to = next_start(start, row, skip, skip_variables, match)
            if to < 0:
                # SKIP TO has failed: the negative result is the outcome.
                return -to, part, start, matches
            starts[part] = to
        part += 1
    return DONE, part, 0, matches


@njit(nogil=True)
def first_end(start, end, variables, tests, offsets, targets, labels, reached):
    """Return the first row at which a match that begins at ``start`` or later may end, or -1. Only conditions
    on a single row are considered.
    """
    states = offsets.size - 1
    reached[:] = 0
    # Breadth first, all states at once. Conditions on several rows are left out: never too late.
    now, later = 0, states  # the two halves of ``reached``: states before and after the row
    for row in range(start, end):
        reached[later : later + states] = 0
        reached[now + states - 1] = 1  # a match may begin at every row
        for state in range(states):
            if reached[now + state]:
                # Every transition that the conditions on the row alone allow.
                for k in range(offsets[state], offsets[state + 1]):
                    if targets[k] >= 0 and tests[row * variables + labels[k]]:
                        reached[later + targets[k]] = 1
        # A transition with a target below 0 ends the match in that state.
        for state in range(states - 1):
            if reached[later + state]:
                for k in range(offsets[state], offsets[state + 1]):
                    if targets[k] < 0:
                        return row
        now, later = later, now
    return -1


@kernel(VOID(IN_I64, IN_I64, IN_I64, I64, IN_U8, IN_I64, IN_I64, IN_I64, OUT_U8, OUT_I64))
def first_ends(starts, ends, parts, variables, tests, offsets, targets, labels, reached, rows):
    """Write the first row at which a match may still end, or -1, for each partition in ``parts``.

    ``reached`` has space for two sets of states.
    """
    for i in range(parts.size):
        part = parts[i]
        rows[i] = first_end(starts[part], ends[part], variables, tests, offsets, targets, labels, reached)
