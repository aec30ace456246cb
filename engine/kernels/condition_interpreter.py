"""The interpreter of DEFINE conditions: stack programs that run for one row tried as a variable of a match.

Programs read rows of the match through *navigations* (``LAST(A.x, 1)``, ``FIRST(B.x)``) and *running
aggregates* (``SUM(A.x)``). Both refer to a *variable set*: one variable, or the variables of a SUBSET. Their
inputs are noted row by row. So a search that steps back a row reads the notes of the row before:

```
row      start    start+1   start+2  <- tried as B
steps    A        A         ?           the transition that took the row; its label is the variable
lasts    0        1         .           by row and set: the last row of the set so far
firsts   0        0         .           by row and set: the first one
totals   x0       x0+x1     .           by row and aggregate
```

NamedTuples are unpacked once per function, and the stack's arrays are passed one by one. Reading fields at
each use made running sums a third slower (0.41 instead of 0.61 M rows/s).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from penstock.planner.logical.condition_program import Op

OVERFLOW, NO_DIVISION = 1, 2

# Tags of stack entries. A greater tag is a fault's number plus 1: a fault is an entry like another, because
# ``FALSE AND 1/0 = 1`` must not fail.
_VALUE, _NULL = 0, 1

# The functions of running aggregates, by their position in ``condition_program.TOTALS``.
COUNT, SUM, MIN, MAX, AVG = 0, 1, 2, 3, 4

# The comparisons, by number; the last one is IS NOT DISTINCT FROM, which never gives NULL.
_EQUAL, _NOT_EQUAL, _LESS, _AT_MOST, _GREATER, _AT_LEAST, _NOT_DISTINCT = 0, 1, 2, 3, 4, 5, 6

_MIN = -(2**63)

# numba compiles no enums: the operations as integers. Their order is that of ``Op``, which
# ``evaluate_condition`` relies on where it compares them with ``<=``.
_LOAD_I, _LOAD_F, _TOTAL_I, _TOTAL_F = int(Op.LOAD_I), int(Op.LOAD_F), int(Op.TOTAL_I), int(Op.TOTAL_F)
_TO_FLOAT, _SCALE, _UNITS = int(Op.TO_FLOAT), int(Op.SCALE), int(Op.UNITS)
_ADD_I, _SUBTRACT_I, _MULTIPLY_I = int(Op.ADD_I), int(Op.SUBTRACT_I), int(Op.MULTIPLY_I)
_ADD_F, _SUBTRACT_F = int(Op.ADD_F), int(Op.SUBTRACT_F)
_MULTIPLY_F, _DIVIDE_F = int(Op.MULTIPLY_F), int(Op.DIVIDE_F)
_NEGATE_I, _NEGATE_F, _ABS_I, _ABS_F = int(Op.NEGATE_I), int(Op.NEGATE_F), int(Op.ABS_I), int(Op.ABS_F)
_COMPARE_I, _COMPARE_F = int(Op.COMPARE_I), int(Op.COMPARE_F)
_AND, _OR, _NOT = int(Op.AND), int(Op.OR), int(Op.NOT)
_IS_NULL, _IS_NOT_NULL, _IS_TRUE = int(Op.IS_NULL), int(Op.IS_NOT_NULL), int(Op.IS_TRUE)


class StackPrograms(NamedTuple):
    """The conditions of DEFINE as stack programs. They are constant during a search."""

    code: np.ndarray
    """int64[3 * instructions]: operation, two operands."""
    code_at: np.ndarray
    """int64[variables + 1]: where each variable's program begins in ``code``, counted in instructions."""


class Conditions(NamedTuple):
    """The inputs of programs in a match: running aggregates, navigations and variable sets. They are constant
    during a search.
    """

    totals: np.ndarray
    """int64[4 * totals]: function, column (-1: COUNT(*)), variable set, whether the column is floating
    point.
    """
    navigations: np.ndarray
    """int64[3 * navigations]: variable set (-1: the row tried itself), whether FIRST, offset."""
    is_member: np.ndarray
    """uint8[sets * variables]: whether a set has a variable."""
    variables: int
    sets: int


class Match(NamedTuple):
    """The unfinished match: notes by row. They are valid from its first row to the row before the one
    tried.
    """

    steps: np.ndarray
    """int64[rows]: the transition that took the row."""
    labels: np.ndarray
    """int64[transitions]: the variable of each."""
    lasts: np.ndarray
    """int64[rows * sets]: the last row of the set so far, or -1."""
    firsts: np.ndarray
    """int64[rows * sets]: the first row of the set, or -1."""
    total_ints: np.ndarray
    """int64[rows * totals]: each running aggregate so far, of whole numbers."""
    total_floats: np.ndarray
    """float64[rows * totals]: the same of floating-point numbers."""
    total_counts: np.ndarray
    """int64[rows * totals]: how many values it is of."""


class ConditionCells(NamedTuple):
    """The columns that programs read, one after the other. Each has ``stride`` cells: one per row, and the
    last one for "no row".
    """

    ints: np.ndarray
    floats: np.ndarray
    valid: np.ndarray
    stride: int


class Stack(NamedTuple):
    """The stack of a program. An entry has a number of either kind and a tag (``_VALUE``, ``_NULL`` or a
    fault).
    """

    ints: np.ndarray
    floats: np.ndarray
    tags: np.ndarray


@njit(nogil=True)
def navigate(navigation, row, start, variable, conditions, match):
    """Return the row that FIRST or LAST refers to while ``row`` is tried as a variable's; -1 for none.

    ``start`` is the first row of the match.
    """
    _, navigations, is_member, variables, sets = conditions
    steps, labels, lasts, firsts, _, _, _ = match
    at = 3 * navigation
    group, first, offset = navigations[at], navigations[at + 1], navigations[at + 2]
    if group < 0:
        return row
    members = group * variables
    row_belongs = is_member[members + variable]
    if first:
        # FIRST(A.x, n): from the set's first row go forward over n rows of the set.
        target = firsts[(row - 1) * sets + group] if row > start else -1
        if target < 0:
            target = row if row_belongs else -1
        while offset > 0 and target >= 0:
            target += 1
            while target < row and not is_member[members + labels[steps[target]]]:
                target += 1
            offset -= 1
            if target >= row:
                # The row tried has no step yet: it is the last one that can be meant.
                target = row if row_belongs and offset == 0 and target == row else -1
        return target
    # LAST(A.x, n): from the set's last row go back by the notes, one row of the set each.
    target = row if row_belongs else (lasts[(row - 1) * sets + group] if row > start else -1)
    while offset > 0 and target >= 0:
        target = lasts[(target - 1) * sets + group] if target > start else -1
        # Its note of the row before: the last row of the set up to there.
        offset -= 1
    return target


@njit(nogil=True)
def add_checked(left, right, bits):
    """Return a sum, and whether it exceeds the range of ``bits`` bits."""
    result = left + right
    # Two numbers of one sign whose sum has the other have wrapped around 64 bits.
    if (left >= 0) == (right >= 0) and (result >= 0) != (left >= 0):
        return result, True
    return result, bits < 64 and (result >= (1 << (bits - 1)) or result < -(1 << (bits - 1)))


@njit(nogil=True)
def multiply_checked(left, right, bits):
    """Return a product, and whether it exceeds the range of ``bits`` bits."""
    if left == 0 or right == 0:
        return 0, False
    # -1 * MIN wraps to MIN, and dividing that by -1 again would trap.
    if (left == -1 and right == _MIN) or (right == -1 and left == _MIN):
        return 0, True
    result = left * right
    if result // right != left or result % right != 0:
        return result, True
    return result, bits < 64 and (result >= (1 << (bits - 1)) or result < -(1 << (bits - 1)))


@njit(nogil=True)
def running_total(total, row, start, variable, conditions, match, cells):
    """Return a running aggregate with ``row`` tried as a variable's. The result is (whole number,
    floating-point number, count of values, fault).
    """
    totals, _, is_member, variables, _ = conditions
    _, _, _, _, ints, floats, counts = match
    cell_ints, cell_floats, cell_valid, stride = cells
    at = 4 * total
    function, column, group = totals[at], totals[at + 1], totals[at + 2]
    # The total of the row before; none at the first row of the match.
    whole, real, count = 0, 0.0, 0
    if row > start:
        before = (row - 1) * (totals.size // 4) + total
        whole, real, count = ints[before], floats[before], counts[before]
    # A row of another variable changes nothing, nor does a NULL; COUNT(*) counts every row of its set.
    if not is_member[group * variables + variable]:
        return whole, real, count, 0
    if column < 0:
        return whole, real, count + 1, 0
    cell = column * stride + row
    if not cell_valid[cell]:
        return whole, real, count, 0
    fault = 0
    value, real_value = cell_ints[cell], cell_floats[cell]
    # Both kinds are computed: a column has zeros in the kind it is not of.
    # AVG is noted as a sum and divided when it is read.
    if function in (SUM, AVG):
        whole, over = add_checked(whole, value, 64)
        fault = OVERFLOW if over else 0
        real += real_value
    elif function in (MIN, MAX):
        is_min = function == MIN
        if count == 0 or (value < whole) == is_min:
            whole = value
        if count == 0 or is_less(real_value, real) == is_min:
            real = real_value
    return whole, real, count + 1, fault


@njit(nogil=True)
def is_less(a, b):
    """Return whether a floating-point number sorts before another; NaN is the largest."""
    if np.isnan(a):
        return False
    return np.isnan(b) or a < b


@njit(nogil=True)
def compare(comparison, below, equal):
    """Return the result of a comparison. ``below`` and ``equal`` compare the left side with the right one."""
    if comparison in (_EQUAL, _NOT_DISTINCT):
        return equal
    if comparison == _NOT_EQUAL:
        return not equal
    if comparison == _LESS:
        return below
    if comparison == _AT_MOST:
        return below or equal
    if comparison == _GREATER:
        return not below and not equal
    return not below


@njit(nogil=True)
def run_load(op, a, b, row, start, variable, conditions, match, cells):
    """Return the entry that LOAD or TOTAL pushes: (whole number, floating-point number, is NULL, fault)."""
    if op in (_LOAD_I, _LOAD_F):
        # LOAD: the cell of column ``a`` at the row of navigation ``b``; the last cell of a column is that of
        # no row.
        at = navigate(b, row, start, variable, conditions, match)
        ints, floats, valid, stride = cells
        cell = a * stride + (at if at >= 0 else stride - 1)
        return ints[cell], floats[cell], not valid[cell], 0
    # TOTAL: running aggregate ``a``.
    whole, real, count, fault = running_total(a, row, start, variable, conditions, match, cells)
    totals = conditions.totals
    function = totals[4 * a]
    if function == COUNT:
        return count, 0.0, False, fault
    if function == AVG:
        if count and totals[4 * a + 3] == 0:
            real = whole / count
        elif count:
            real = real / count
    return whole, real, count == 0, fault


@njit(nogil=True)
def run_and_or(decisive, ints, tags, left):
    """Run AND (0 decides it) or OR (1 decides it) on entry ``left`` and the next. The result replaces the
    first.

    The left side counts first: once it decides, a fault of the right side is ignored.
    """
    right = left + 1
    if tags[left] > _NULL or (tags[left] == _VALUE and ints[left] == decisive):
        return
    # Only the right side decides, by a fault or its value: NULL AND FALSE is FALSE.
    if tags[right] > _NULL or (tags[right] == _VALUE and ints[right] == decisive):
        ints[left], tags[left] = decisive, tags[right]
    # NULL AND TRUE is NULL.
    elif tags[left] == _NULL or tags[right] == _NULL:
        tags[left] = _NULL
    # Neither side decides, so both are the other truth value.
    else:
        ints[left] = 1 - decisive


@njit(nogil=True)
def run_not_or_is(op, ints, tags, top):
    """Run NOT, IS [NOT] NULL, IS TRUE or IS FALSE on the top entry."""
    # A fault stays a fault.
    if tags[top] > _NULL:
        return
    if op == _NOT:
        ints[top] = 1 - ints[top]
        return
    # The tag is the answer: 0 for a value, 1 for NULL.
    if op == _IS_NULL:
        ints[top] = tags[top]
    elif op == _IS_NOT_NULL:
        ints[top] = 1 - tags[top]
    else:
        wanted = 1 if op == _IS_TRUE else 0
        ints[top] = 1 if tags[top] == _VALUE and ints[top] == wanted else 0
    tags[top] = _VALUE


@njit(nogil=True)
def run_unary(op, a, ints, floats, top):
    """Run an operation on the top entry, which must be a value. Return a fault."""
    over = False
    if op == _TO_FLOAT:
        # CAST(decimal of scale a AS DOUBLE)
        floats[top] = ints[top] / 10.0**a
    elif op == _SCALE:
        # a decimal with ``a`` more digits after its point
        for _ in range(a):
            ints[top], wrapped = multiply_checked(ints[top], 10, 64)
            over = over or wrapped
    elif op == _UNITS:
        # an interval in units of ``a``: towards zero, as SQL divides, not downwards
        value = ints[top]
        ints[top] = value // a if value >= 0 else -(-value // a)
    elif op == _NEGATE_I:
        over = ints[top] == _MIN
        ints[top] = -ints[top]
    elif op == _ABS_I:
        over = ints[top] == _MIN
        ints[top] = abs(ints[top])
    elif op == _NEGATE_F:
        floats[top] = -floats[top]
    elif op == _ABS_F:
        floats[top] = abs(floats[top])
    return OVERFLOW if over else 0


@njit(nogil=True)
def run_binary_on_values(op, a, ints, floats, left):
    """Run an operation on entry ``left`` and the next, which must both be values. The result replaces the
    first. Return a fault.
    """
    right = left + 1
    over = False
    if op == _ADD_I:
        ints[left], over = add_checked(ints[left], ints[right], a)
    elif op == _SUBTRACT_I:
        # -MIN does not exist: refused, although MIN taken from a negative number would fit.
        over = ints[right] == _MIN
        if not over:
            ints[left], over = add_checked(ints[left], -ints[right], a)
    elif op == _MULTIPLY_I:
        ints[left], over = multiply_checked(ints[left], ints[right], a)
    elif op == _ADD_F:
        floats[left] += floats[right]
    elif op == _SUBTRACT_F:
        floats[left] -= floats[right]
    elif op == _MULTIPLY_F:
        floats[left] *= floats[right]
    elif op == _DIVIDE_F:
        if floats[right] == 0.0:
            return NO_DIVISION
        floats[left] /= floats[right]
    elif op == _COMPARE_I:
        ints[left] = 1 if compare(a, ints[left] < ints[right], ints[left] == ints[right]) else 0
    else:
        # COMPARE_F: NaN equals NaN, and is above all numbers.
        x, y = floats[left], floats[right]
        ints[left] = 1 if compare(a, is_less(x, y), x == y or (np.isnan(x) and np.isnan(y))) else 0
    return OVERFLOW if over else 0


@njit(nogil=True)
def run_binary(op, a, ints, floats, tags, left):
    """Run an operation on entry ``left`` and the next with any tags. A fault wins over NULL, NULL over a
    value.
    """
    right = left + 1
    # Either side's fault fails the comparison.
    if tags[left] > _NULL or tags[right] > _NULL:
        tags[left] = max(tags[left], tags[right])
    elif tags[left] == _VALUE and tags[right] == _VALUE:
        fault = run_binary_on_values(op, a, ints, floats, left)
        tags[left] = fault + 1 if fault else _VALUE
    elif a == _NOT_DISTINCT and op in (_COMPARE_I, _COMPARE_F):
        # NULL IS NOT DISTINCT FROM NULL is TRUE, and FALSE where one side is a value.
        ints[left] = 1 if tags[left] == tags[right] else 0
        tags[left] = _VALUE
    else:
        tags[left] = _NULL


@njit(nogil=True)
def evaluate_condition(row, start, variable, programs, conditions, match, cells, stack):
    """Return whether a variable's condition is TRUE for ``row`` in the match that begins at ``start``, and a
    fault.
    """
    code, code_at = programs
    ints, floats, tags = stack
    top = 0  # the number of entries
    for at in range(code_at[variable], code_at[variable + 1]):
        op, a, b = code[3 * at], code[3 * at + 1], code[3 * at + 2]
        if op <= _TOTAL_F:
            # LOAD, TOTAL: one entry more
            ints[top], floats[top], null, fault = run_load(
                op, a, b, row, start, variable, conditions, match, cells
            )
            tags[top] = fault + 1 if fault else _NULL if null else _VALUE
            top += 1
        elif op <= _UNITS or (_NEGATE_I <= op <= _ABS_F):
            # TO_FLOAT, SCALE, UNITS, -x, ABS(x): the top entry anew, NULL and faults as they are
            if tags[top - 1] == _VALUE:
                fault = run_unary(op, a, ints, floats, top - 1)
                tags[top - 1] = fault + 1 if fault else _VALUE
        elif op in (_AND, _OR):
            top -= 1
            run_and_or(0 if op == _AND else 1, ints, tags, top - 1)
        elif op > _OR:
            # NOT, IS NULL, IS TRUE, ..
            run_not_or_is(op, ints, tags, top - 1)
        else:
            # arithmetic and comparisons of two entries
            top -= 1
            run_binary(op, a, ints, floats, tags, top - 1)
    # The result is the only entry left. NULL is not TRUE: the row is no such variable.
    if tags[0] > _NULL:
        return False, tags[0] - 1
    return tags[0] == _VALUE and ints[0] == 1, 0
