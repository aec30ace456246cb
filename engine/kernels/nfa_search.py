"""The search for matches: depth first through the pattern's automaton, the preferred way first, so that the
first end reached is the match.

The way of an unfinished match is what is kept of it: by row, which transition took it. A search that meets
the end of the rows there are stops there, and goes on from the same way when more have come.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from penstock.engine.kernels.condition_interpreter import holds, total_at
from penstock.engine.kernels.kernel import I64, IN_F64, IN_I64, IN_U8, OUT_F64, OUT_I64, OUT_U8, VOID, kernel
from penstock.planner.logical.condition_program import MAX_STACK

DONE, FULL, NO_TARGET, NO_PROGRESS, TOO_FAR = 0, 3, 4, 5, 6
"""How a search ends: well; with no room left for matches; where SKIP TO has no row, or the match's first;
with too many steps for one match.
"""
ALONE, ALONG = 1, 2
"""What is known of a row as a variable's: 0 it is none; it is one; its program decides."""

_FOUND, _WAITS, _NONE = 1, 2, 3
_FOREVER = 2**63 - 1


@njit(nogil=True)
def remember(row, start, variable, rows, run, cells):
    """Note where the last and first rows are once a row is taken as a variable's, and the running
    aggregates; return a fault of these.
    """
    (totals, _, member, width, groups), (_, _, lasts, firsts, wholes, floats, counts) = rows, run
    for group in range(groups):
        at = row * groups + group
        before = at - groups
        own = member[group * width + variable]
        lasts[at] = row if own else (lasts[before] if row > start else -1)
        first = firsts[before] if row > start else -1
        firsts[at] = row if own and first < 0 else first
    fault = 0
    many = totals.size // 4
    for total in range(many):
        at = row * many + total
        wholes[at], floats[at], counts[at], wrong = total_at(total, row, start, variable, rows, run, cells)
        fault = fault or wrong
    return fault


@njit(nogil=True)
def next_start(start, end, skip, skips, labels, steps):
    """Return where the search goes on after a match, or less than 0 for what is wrong with SKIP TO."""
    if skip == 0:
        return end
    if skip == 1:
        return start + 1
    found = -NO_TARGET
    for row in range(start, end):
        if skips[labels[steps[row]]]:
            found = row
            if skip == 2:
                break
    return -NO_PROGRESS if found == start else found


@njit(nogil=True)
def fits(variable, row, start, programs, rows, run, cells, stack):
    """Return whether the program of a variable holds for a row, and a fault."""
    code, code_at = programs
    program = (code, code_at[variable], code_at[variable + 1])
    return holds(program, row, start, variable, rows, run, cells, stack)


@njit(nogil=True)
def attempt(start, row, end, over, last_us, epoch, timed, automaton, programs, rows, run, cells, stack):
    """Search for the match that begins at ``start``, its rows before ``row`` taken; return what came of
    it, the row reached and a fault.
    """
    (times, tests, failed, most_steps), (offsets, targets, labels), steps = timed, automaton, run[0]
    nowhere, width, count = offsets.size - 2, rows[3], times.size
    remembers = rows[4] > 0
    place = targets[steps[row - 1]] if row > start else nowhere
    k, tried = offsets[place], 0
    while True:
        moved = False
        while k < offsets[place + 1]:
            target = targets[k]
            if target < 0:
                return _FOUND, row, 0
            if row >= end:
                if not over:
                    return _WAITS, row, 0
            elif times[row] <= last_us:
                test = tests[row * width + labels[k]]
                if test and (failed.size == 0 or failed[target * count + row] != epoch):
                    tried += 1
                    moved, fault = test == ALONE, 0
                    if not moved:
                        moved, fault = fits(labels[k], row, start, programs, rows, run, cells, stack)
                    if moved and not fault:
                        steps[row] = k
                        if remembers:
                            fault = remember(row, start, labels[k], rows, run, cells)
                    if fault:
                        return _NONE, row, fault
                    if moved:
                        break
            k += 1
        if moved:
            row += 1
            place = target
            k = offsets[place]
        elif row == start:
            return _NONE, row, 0
        elif tried > most_steps:
            return _NONE, start, TOO_FAR
        else:
            row -= 1
            if failed.size:
                failed[place * count + row] = epoch
            k = steps[row] + 1
            place = targets[steps[row - 1]] if row > start else nowhere


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
    code, code_at, totals, places, member, width,
    cells_i, cells_f, valid,
    steps, lasts, firsts, wholes, floats, counts,
    skip, skips,
    match_parts, match_ends, out_rows, out_places,
):  # fmt: skip
    """Search the parts from number ``part`` on; return how it ended, the part and row it ended at, and how
    many matches there are.

    A part's rows are those from ``starts`` (moved on as matches are found or missed) to ``ends``; ``lengths``
    of them are taken already by the way in ``steps``; ``finals`` marks the parts no row will follow.
    ``tests``: by row and variable. ``labels``: the variable of each transition. ``failed``: by place and row
    the epoch in which the rest of the pattern was found not to match there (no room: not noted). Matches are
    written with their rows and places, one after the other; ``match_ends`` says where each ends there.
    """
    rows, run = (
        (totals, places, member, width, member.size // width),
        (steps, labels, lasts, firsts, wholes, floats, counts),
    )
    cells, programs, automaton = (
        (cells_i, cells_f, valid, times.size + 1),
        (code, code_at),
        (offsets, targets, labels),
    )
    stack = (np.empty(MAX_STACK, np.int64), np.empty(MAX_STACK, np.float64), np.empty(MAX_STACK, np.int64))
    timed = (times, tests, failed, most_steps)
    matches, used = 0, 0
    while part < ends.size:
        for row in range(starts[part], starts[part] + lengths[part]):
            remember(row, starts[part], labels[steps[row]], rows, run, cells)
        while starts[part] < ends[part]:
            start = starts[part]
            last_us = times[start] + within if within >= 0 else _FOREVER
            over, epoch = finals[part] or last_us < now, start + 1 if within >= 0 else 1
            end, at = ends[part], start + lengths[part]
            lengths[part] = 0
            found, row, fault = attempt(
                start, at, end, over, last_us, epoch, timed, automaton, programs, rows, run, cells, stack
            )
            if fault:
                return fault, part, row, matches
            if found == _WAITS:
                lengths[part] = row - start
                break
            if found == _NONE:
                starts[part] = start + 1
                continue
            if matches >= match_ends.size or used + row - start > out_rows.size:
                lengths[part] = row - start
                return FULL, part, row, matches
            for taken in range(start, row):
                out_rows[used] = taken
                out_places[used] = targets[steps[taken]]
                used += 1
            match_parts[matches], match_ends[matches] = part, used
            matches += 1
            to = next_start(start, row, skip, skips, labels, steps)
            if to < 0:
                return -to, part, start, matches
            starts[part] = to
        part += 1
    return DONE, part, 0, matches


@njit(nogil=True)
def first_end(start, end, width, tests, offsets, targets, labels, reached):
    """Return the first row at which a match may end that begins at ``start`` or later, as far as rows
    alone tell, or -1.
    """
    places = offsets.size - 1
    reached[:] = 0
    now, later = 0, places
    for row in range(start, end):
        reached[later : later + places] = 0
        reached[now + places - 1] = 1
        for place in range(places):
            if reached[now + place]:
                for k in range(offsets[place], offsets[place + 1]):
                    if targets[k] >= 0 and tests[row * width + labels[k]]:
                        reached[later + targets[k]] = 1
        for place in range(places - 1):
            if reached[later + place]:
                for k in range(offsets[place], offsets[place + 1]):
                    if targets[k] < 0:
                        return row
        now, later = later, now
    return -1


@kernel(VOID(IN_I64, IN_I64, IN_I64, I64, IN_U8, IN_I64, IN_I64, IN_I64, OUT_U8, OUT_I64))
def first_ends(starts, ends, parts, width, tests, offsets, targets, labels, reached, rows):
    """Write for each of some parts the first row at which a match may still end, or -1; ``reached``: room
    for two sets of places.
    """
    for i in range(parts.size):
        rows[i] = first_end(starts[parts[i]], ends[parts[i]], width, tests, offsets, targets, labels, reached)
