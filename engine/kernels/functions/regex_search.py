"""Regular expressions by tables of states, which ``engine/expressions/text/regex_automaton.py`` builds."""

from __future__ import annotations

from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I32, IN_I64, IN_U8, OUT_I32, OUT_I64, OUT_U8, VOID, kernel
from penstock.engine.kernels.pointers import pointer

_NOW, _AT_END = 1, 2
# of the finals and moves of a start
_START_WORDS = 4
_MASK_BITS = 20
_MASK = (1 << _MASK_BITS) - 1
_STEPS_PER_BYTE, _STEPS_PER_TEXT = 8, 512
"""Bytes that may be read of a text: each again for starts that lead nowhere. RE2 never reads one twice."""


@njit(nogil=True)
def _follow(begin, end, cell, data, classes, cells):
    """Return the end of the match that begins here, -1 where there is none, and where reading stopped."""
    found, at = I64(-1), begin
    if cells[cell] & _NOW:
        found = begin
    while at < end and cell > 0:
        cell = cells[cell + classes[data[at]]]
        at += 1
        if cells[cell] & _NOW:
            found = at
    if at == end and cells[cell] & _AT_END:
        found = end
    return found, at


@njit(nogil=True)
def _apply(final, slots, position, scratch, old, out, begin):
    """Write the slots of a match: those of the position that it was reached from, and what was set last."""
    source, mask = I64(final >> _MASK_BITS) - 1, final & _MASK
    for slot in range(slots):
        value = scratch[old + source * slots + slot] if source >= 0 else -1
        out[begin + slot] = position if mask >> slot & 1 else value


@njit(nogil=True)
def _move(step, steps, slots, position, scratch, old, new):
    """Write the slots of all positions of a state from those of the state before."""
    for i in range(steps[step]):
        source, mask = I64(steps[step + 1 + 2 * i]), steps[step + 2 + 2 * i]
        for slot in range(slots):
            value = scratch[old + source * slots + slot] if source >= 0 else -1
            scratch[new + i * slots + slot] = position if mask >> slot & 1 else value


@kernel(I64(IN_I32, IN_U8, IN_U8, IN_I32, IN_I32, IN_U8, IN_I64, I64, I64, OUT_I64, OUT_I32))
def find_matches(
    offsets, bytes_in, valid, classes_in, cells_in, firsts_in, starts, most, row, counts, spans_in
):  # fmt: skip
    """Write where the first ``most`` matches of each text from ``row`` on begin and end. With ``most`` above
    1 the pattern must not match the empty text.

    ``counts`` gets the number of matches of each text, -1 for one that would be read too often, and in its
    last place the number of all. Return the row at which ``spans`` was full, or the number of rows.
    """
    data, classes, cells = pointer(bytes_in), pointer(classes_in), pointer(cells_in)
    firsts, spans = pointer(firsts_in), pointer(spans_in)
    rows, full = counts.size - 1, spans_in.size // 2
    first_cell, next_cell = starts[0], starts[_START_WORDS]
    used = counts[rows]
    while row < rows:
        begin, end = I64(offsets[row]), I64(offsets[row + 1])
        at, before, matches = begin, used, I64(0)
        budget = _STEPS_PER_BYTE * (end - begin) + _STEPS_PER_TEXT
        if valid.size > 0 and valid[row] == 0:
            at = end + 1
        while matches < most and at <= end:
            cell = first_cell
            if at > begin:
                cell = next_cell
                if cell == 0:
                    break
                while at < end and firsts[data[at]] & 2 == 0:
                    at += 1
            elif at < end and firsts[data[at]] & 1 == 0:
                at += 1
                continue
            found, stopped = _follow(at, end, cell, data, classes, cells)
            budget -= stopped - at
            if budget < 0:
                matches, used = I64(-1), before
                break
            if found < 0:
                at += 1
                continue
            if used == full:
                counts[rows] = before
                return row
            spans[2 * used] = at
            spans[2 * used + 1] = found
            used += 1
            matches += 1
            at = found
        counts[row] = matches
        row += 1
    counts[rows] = used
    return row


@njit(nogil=True)
def _follow_runs(at, end, least_of_first, data, runs, bounds, sets, places):
    """Return the end of the match that begins here, -1 where there is none, and where reading stopped.
    ``places`` gets where each run begins, and the end.
    """
    least = least_of_first
    for run in range(runs):
        places[run] = at
        stop, begin = end, at
        if bounds[2 * run + 1] >= 0:
            stop = min(end, at + bounds[2 * run + 1])
        if run > 0:
            least = bounds[2 * run]
        while at < stop and sets[256 * run + I64(data[at])]:
            at += 1
        if at - begin < least:
            return I64(-1), at
    places[runs] = at
    return at, at


@kernel(
    I64(
        *(IN_I32, IN_U8, IN_U8, IN_I64, IN_U8, IN_U8, IN_I64),
        *(I64, I64, I64, I64, I64, OUT_I64, OUT_I64, OUT_I32, OUT_I32),
    )
)
def find_runs(
    offsets, bytes_in, valid, bounds_in, sets_in, firsts_in, slots_in,
    from_start, start_is_letter, to_end, most, row, places_in, counts, spans_in, groups_in,
):  # fmt: skip
    """Do what ``find_matches`` and ``locate_groups`` do, for a pattern that is runs of letters.
    ``places`` has room for one more than there are runs.
    """
    data, bounds, sets = pointer(bytes_in), pointer(bounds_in), pointer(sets_in)
    firsts, spans, places = pointer(firsts_in), pointer(spans_in), pointer(places_in)
    slots, groups, width = pointer(slots_in), pointer(groups_in), slots_in.size
    rows, full, runs = counts.size - 1, spans_in.size // 2, bounds_in.size // 2
    used = counts[rows]
    while row < rows:
        begin, end = I64(offsets[row]), I64(offsets[row + 1])
        at, before, matches = begin, used, I64(0)
        budget = _STEPS_PER_BYTE * (end - begin) + _STEPS_PER_TEXT
        if valid.size > 0 and valid[row] == 0:
            at = end + 1
        while matches < most and at <= end:
            least = bounds[0] if runs else I64(0)
            if at > begin:
                if from_start:
                    break
                while at < end and firsts[data[at]] & 2 == 0:
                    at += 1
            else:
                if at < end and firsts[data[at]] & 1 == 0:
                    at += 1
                    continue
                if start_is_letter:
                    least = I64(0)
            found, stopped = _follow_runs(at, end, least, data, runs, bounds, sets, places)
            budget -= stopped - at
            if budget < 0:
                matches, used = I64(-1), before
                break
            if found < 0 or (to_end and found < end):
                at += 1
                continue
            if used == full:
                counts[rows] = before
                return row
            spans[2 * used] = at
            spans[2 * used + 1] = found
            for slot in range(width):
                groups[used * width + slot] = places[slots[slot]]
            used += 1
            matches += 1
            at = found
        counts[row] = matches
        row += 1
    counts[rows] = used
    return row


@kernel(
    VOID(
        *(IN_I32, IN_U8, IN_I32, IN_I32, IN_I32, IN_I32, IN_I32, IN_I64),
        *(I64, OUT_I64, OUT_I32, OUT_I32, OUT_I32),
    )
)
def locate_groups(
    offsets, bytes_in, classes_in, cells_in, moves_in, steps_in, finals_in, starts,
    slots, counts, spans_in, scratch_in, groups_in,
):  # fmt: skip
    """Write ``slots`` positions for each match: where its groups begin and end, -1 for one without part.
    ``scratch`` has room for the slots of all positions of two states.
    """
    data, classes, cells, moves = pointer(bytes_in), pointer(classes_in), pointer(cells_in), pointer(moves_in)
    steps, finals, spans = pointer(steps_in), pointer(finals_in), pointer(spans_in)
    scratch, groups = pointer(scratch_in), pointer(groups_in)
    old, new, match = I64(0), scratch_in.size // 2, 0
    for row in range(counts.size - 1):
        begin, end = I64(offsets[row]), I64(offsets[row + 1])
        for _ in range(counts[row]):
            first, last = I64(spans[2 * match]), I64(spans[2 * match + 1])
            start = 0 if first == begin else _START_WORDS
            cell = starts[start]
            if first == last:
                final = starts[start + 3] if last == end and cells[cell] & _AT_END else starts[start + 2]
            else:
                _move(starts[start + 1], steps, slots, first, scratch, old, new)
                old, new = new, old
                for at in range(first, last - 1):
                    place = cell + classes[data[at]]
                    if moves[place]:
                        _move(moves[place], steps, slots, at + 1, scratch, old, new)
                        old, new = new, old
                    cell = I64(cells[place])
                place = cell + classes[data[last - 1]]
                at_end = last == end and cells[cells[place]] & _AT_END
                final = I64(finals[2 * place + 1] if at_end else finals[2 * place])
            _apply(final, slots, last, scratch, old, groups, match * slots)
            match += 1


@kernel(I64(IN_I32, IN_U8, IN_I64, IN_I32, IN_I32, I64, IN_I32, IN_U8, OUT_I64, OUT_U8))
def replace_matches(
    offsets, bytes_in, counts, spans_in, groups_in, slots, parts, literal_in, ends, out_in
):  # fmt: skip
    """Write texts with their matches replaced. ``parts`` has three numbers for each part of the replacement:
    the slot of a group, or -1, and where a literal begins and ends. Return the number of bytes.
    """
    data, spans, groups = pointer(bytes_in), pointer(spans_in), pointer(groups_in)
    literal, out = pointer(literal_in), pointer(out_in)
    used, match, three = 0, 0, parts.size
    ends[0] = 0
    for row in range(counts.size):
        at, end = I64(offsets[row]), I64(offsets[row + 1])
        for _ in range(counts[row]):
            for pos in range(at, I64(spans[2 * match])):
                out[used] = data[pos]
                used += 1
            for part in range(0, three, 3):
                slot = parts[part]
                if slot < 0:
                    for pos in range(parts[part + 1], parts[part + 2]):
                        out[used] = literal[pos]
                        used += 1
                else:
                    place = match * slots + slot
                    for pos in range(I64(groups[place]), I64(groups[place + 1])):
                        out[used] = data[pos]
                        used += 1
            at = I64(spans[2 * match + 1])
            match += 1
        for pos in range(at, end):
            out[used] = data[pos]
            used += 1
        ends[row + 1] = used
    return used


@kernel(I64(IN_I32, IN_U8, IN_I64, IN_I32, OUT_I64, OUT_U8))
def copy_between(offsets, bytes_in, pieces, spans_in, ends, out_in):
    """Write what is between the matches of texts, ``pieces`` of each: one more than matches, or none. Return
    the number of bytes.
    """
    data, spans, out = pointer(bytes_in), pointer(spans_in), pointer(out_in)
    used, match, piece = 0, 0, 1
    ends[0] = 0
    for row in range(pieces.size):
        at, left = I64(offsets[row]), pieces[row]
        while left > 0:
            left -= 1
            end = I64(spans[2 * match]) if left else I64(offsets[row + 1])
            for pos in range(at, end):
                out[used] = data[pos]
                used += 1
            ends[piece] = used
            piece += 1
            if left:
                at = I64(spans[2 * match + 1])
                match += 1
    return used
