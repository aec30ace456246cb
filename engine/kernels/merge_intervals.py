"""Session windows: merges touching intervals of a key into one."""

from __future__ import annotations

from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I64, TABLE_I64, kernel

# Places an interval is moved by, on average, beyond which the intervals are in too little order.
_MOVES_PER_INTERVAL = 16


@kernel(I64(IN_I64, IN_I64, IN_I64, I64, OUT_I64, OUT_I64))
def order_by_key(keys, starts, distinct, earlier, cursors, order):
    """Write the positions of intervals by key, as ``distinct`` lists the keys, then by start. Return 0. Rows
    come nearly in the order of their times, so this takes a tenth of the time of a sort. Where they do not,
    return -1: ``order`` is not sorted by start.

    The intervals from ``earlier`` on are likely to start before the others. ``cursors`` by key are zeros, and
    are zeros again.
    """
    for i in range(keys.size):
        cursors[keys[i]] += 1
    before = 0
    for key in distinct:
        before += cursors[key]
        cursors[key] = before - cursors[key]
    for i in range(keys.size):
        at = i + earlier if i < keys.size - earlier else i - (keys.size - earlier)
        order[cursors[keys[at]]] = at
        cursors[keys[at]] += 1
    for key in distinct:
        cursors[key] = 0
    # the intervals of a key are next to each other: each moves down to its place among them
    left = _MOVES_PER_INTERVAL * keys.size
    for i in range(1, keys.size):
        moved, at = order[i], i
        while at > 0 and keys[order[at - 1]] == keys[moved] and starts[order[at - 1]] > starts[moved]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = moved
        left -= i - at
        if left < 0:
            return -1
    return 0


@kernel(I64(IN_I64, IN_I64, IN_I64, IN_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64))
def unite(order, keys, starts, ends, groups, group_keys, group_starts, group_ends):
    """Merge touching intervals of one key and number the unions. ``order`` has the positions of the intervals
    by key, then start. Write each interval's union, and the key and the bounds of each union. Return the
    number of unions.
    """
    unions = 0
    for i in order:
        # Another key, or a gap, begins a session. To begin where a session ends is to touch it.
        if unions == 0 or keys[i] != group_keys[unions - 1] or starts[i] > group_ends[unions - 1]:
            group_keys[unions] = keys[i]
            group_starts[unions] = starts[i]
            group_ends[unions] = ends[i]
            unions += 1
        elif ends[i] > group_ends[unions - 1]:
            group_ends[unions - 1] = ends[i]
        groups[i] = unions - 1
    return unions


@njit(nogil=True)
def _take_turn(
    first, last, times, turn, gap, groups, parents, group_starts, group_ends, now, size, then, count
):
    """Merge rows of one turn with the open sessions ``now`` of their key. Write the open sessions ``then``.
    Return the number of open sessions and of groups.
    """
    # Open sessions ascend by start, as do the rows, so one pass over both suffices.
    still_open, next_open, i = 0, 0, first
    # Sessions that ended before the turn are closed.
    while next_open < size and group_ends[now[next_open]] < turn:
        next_open += 1
    # Each round makes one interval: it starts at the earlier of the next row and the next open session.
    while i < last or next_open < size:
        group, begun = -1, i
        start = times[i] if i < last else group_starts[now[next_open]]
        if next_open < size:
            start = min(start, group_starts[now[next_open]])
        end = start
        while True:
            # Extend the interval by the next row or the next open session that touches it, until none does.
            if i < last and times[i] <= end:
                end = max(end, times[i] + gap)
                i += 1
            elif next_open < size and group_starts[now[next_open]] <= end:
                old_group = now[next_open]
                end = max(end, group_ends[old_group])
                # The first open session it meets gives its number; the others are merged into that.
                if group < 0:
                    group = old_group
                parents[old_group] = group
                next_open += 1
            else:
                break
        # Rows that meet no open session begin one, unless it would have ended before their turn.
        if group < 0 and end >= turn:
            group = count
            parents[group] = group
            count += 1
        if group >= 0:
            group_starts[group], group_ends[group] = start, end
            then[still_open] = group
            still_open += 1
        # Its rows; -1 where no session took them.
        for k in range(begun, i):
            groups[k] = group
    return still_open, count


@kernel(
    I64(IN_I64, IN_I64, IN_I64, I64, IN_I64, IN_I64, IN_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, TABLE_I64)
)
def unite_in_turn(
    keys,
    times,
    turns,
    gap,
    session_keys,
    session_starts,
    session_ends,
    groups,
    parents,
    group_starts,
    group_ends,
    scratch,
):
    """Assign rows to sessions of their key. Rows are sorted by key, turn and time. A row at its turn cannot
    join a session that ended before the turn.

    The first groups are the existing sessions, sorted by key and start; they must not touch. Write each row's
    group: -1 if the row's own session would end before its turn. Write each group's parent (itself, unless it
    was merged into another) and bounds. Rows of one turn count together. Return the number of groups.
    ``scratch`` has two rows, with a column for each row and each existing session.
    """
    count = session_keys.size
    for k in range(count):
        parents[k], group_starts[k], group_ends[k] = k, session_starts[k], session_ends[k]
    session = i = 0
    while i < keys.size:
        # Sessions of keys without rows are skipped.
        key = keys[i]
        while session < session_keys.size and session_keys[session] < key:
            session += 1
        # the row of scratch with the sessions that are open, by time, and how many there are
        now, size = 0, 0
        while session < session_keys.size and session_keys[session] == key:
            scratch[now, size] = session
            size += 1
            session += 1
        # The rows of a key, one turn after another.
        while i < keys.size and keys[i] == key:
            last = i
            while last < keys.size and keys[last] == key and turns[last] == turns[i]:
                last += 1
            size, count = _take_turn(
                i,
                last,
                times,
                turns[i],
                gap,
                groups,
                parents,
                group_starts,
                group_ends,
                scratch[now],
                size,
                scratch[1 - now],
                count,
            )
            # The sessions open after this turn are those open before the next: the two rows of scratch change
            # places.
            now, i = 1 - now, last
    for k in range(count):
        # Path halving: every group points to the one it finally merged into.
        while parents[parents[k]] != parents[k]:
            parents[k] = parents[parents[k]]
    # Rows of merged groups belong to the group that remained.
    for k in range(keys.size):
        if groups[k] >= 0:
            groups[k] = parents[groups[k]]
    return count
