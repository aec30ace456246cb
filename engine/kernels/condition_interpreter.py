"""Programs of DEFINE run per row tried: where their cells stand in the match, running aggregates, and the
stack machine.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.planner.logical.condition_program import Op

OVERFLOW, NO_DIVISION = 1, 2
_VALUE, _NULL = 0, 1
"""What an entry of the stack is; more than 1: a fault's number and 1, which counts only where the result
depends on it.
"""
COUNT, SUM, MIN, MAX, AVG = 0, 1, 2, 3, 4
_MAX = 2**63 - 1
_MIN = -(2**63)
_LOAD_I, _LOAD_F, _TOTAL_I, _TOTAL_F = int(Op.LOAD_I), int(Op.LOAD_F), int(Op.TOTAL_I), int(Op.TOTAL_F)
_TO_FLOAT, _SCALE, _UNITS = int(Op.TO_FLOAT), int(Op.SCALE), int(Op.UNITS)
_ADD_I, _SUBTRACT_I, _MULTIPLY_I = int(Op.ADD_I), int(Op.SUBTRACT_I), int(Op.MULTIPLY_I)
_ADD_F, _SUBTRACT_F, _MULTIPLY_F, _DIVIDE_F = (
    int(Op.ADD_F),
    int(Op.SUBTRACT_F),
    int(Op.MULTIPLY_F),
    int(Op.DIVIDE_F),
)
_NEGATE_I, _NEGATE_F, _ABS_I, _ABS_F = int(Op.NEGATE_I), int(Op.NEGATE_F), int(Op.ABS_I), int(Op.ABS_F)
_COMPARE_I, _COMPARE_F = int(Op.COMPARE_I), int(Op.COMPARE_F)
_AND, _OR, _NOT = int(Op.AND), int(Op.OR), int(Op.NOT)
_IS_NULL, _IS_NOT_NULL, _IS_TRUE = int(Op.IS_NULL), int(Op.IS_NOT_NULL), int(Op.IS_TRUE)


@njit(nogil=True)
def row_at(place, row, start, variable, rows, run):
    """Return the row a place stands for while ``row`` is tried as a variable's in the match that began at
    ``start``; -1 for none.
    """
    (_, places, member, width, groups), (steps, labels, lasts, firsts, _, _, _) = rows, run
    group, first, offset = places[3 * place], places[3 * place + 1], places[3 * place + 2]
    if group < 0:
        return row
    own = member[group * width + variable]
    if first:
        found = firsts[(row - 1) * groups + group] if row > start else -1
        if found < 0:
            found = row if own else -1
        while offset > 0 and found >= 0:
            found += 1
            while found < row and not member[group * width + labels[steps[found]]]:
                found += 1
            offset -= 1
            if found >= row:
                found = row if own and offset == 0 and found == row else -1
        return found
    found = row if own else (lasts[(row - 1) * groups + group] if row > start else -1)
    while offset > 0 and found >= 0:
        found = lasts[(found - 1) * groups + group] if found > start else -1
        offset -= 1
    return found


@njit(nogil=True)
def added(whole, more, bits):
    """Return a sum and whether it is out of the range of that many bits."""
    result = whole + more
    if (whole >= 0) == (more >= 0) and (result >= 0) != (whole >= 0):
        return result, True
    return result, bits < 64 and (result >= (1 << (bits - 1)) or result < -(1 << (bits - 1)))


@njit(nogil=True)
def multiplied(whole, factor, bits):
    """Return a product and whether it is out of the range of that many bits."""
    if whole == 0 or factor == 0:
        return 0, False
    if (whole == -1 and factor == _MIN) or (factor == -1 and whole == _MIN):
        return 0, True
    result = whole * factor
    if result // factor != whole or result % factor != 0:
        return result, True
    return result, bits < 64 and (result >= (1 << (bits - 1)) or result < -(1 << (bits - 1)))


@njit(nogil=True)
def total_at(total, row, start, variable, rows, run, cells):
    """Return a running aggregate with ``row`` as a variable's: its whole and floating-point part, how many
    values, and a fault.
    """
    (totals, _, member, width, _), (_, _, _, _, wholes, floats, counts) = rows, run
    columns_i, columns_f, valid, stride = cells
    function, column, group, many = (
        totals[4 * total],
        totals[4 * total + 1],
        totals[4 * total + 2],
        totals.size // 4,
    )
    whole, real, count = 0, 0.0, 0
    if row > start:
        at = (row - 1) * many + total
        whole, real, count = wholes[at], floats[at], counts[at]
    if not member[group * width + variable]:
        return whole, real, count, 0
    if column < 0:
        return whole, real, count + 1, 0
    cell = column * stride + row
    if not valid[cell]:
        return whole, real, count, 0
    fault = 0
    value_i, value_f = columns_i[cell], columns_f[cell]
    if function in (SUM, AVG):
        whole, over = added(whole, value_i, 64)
        fault = OVERFLOW if over else 0
        real += value_f
    elif function in (MIN, MAX):
        least = function == MIN
        if count == 0 or (value_i < whole) == least:
            whole = value_i
        if count == 0 or less(value_f, real) == least:
            real = value_f
    return whole, real, count + 1, fault


@njit(nogil=True)
def less(a, b):
    """Whether a floating-point number comes before another, NaN being the largest."""
    if np.isnan(a):
        return False
    return np.isnan(b) or a < b


@njit(nogil=True)
def compared(number, below, equal):
    """Return a comparison by its number, given whether the left side is below or equal to the right one."""
    if number in (0, 6):
        return equal
    if number == 1:
        return not equal
    if number == 2:
        return below
    if number == 3:
        return below or equal
    if number == 4:
        return not below and not equal
    return not below


@njit(nogil=True)
def pushed(op, a, b, row, start, variable, rows, run, cells, stack):
    """Run an instruction that puts a value on top of the stack: return the value, whether it is NULL, and
    a fault.
    """
    columns_i, columns_f, valid, stride = cells
    if op in (_LOAD_I, _LOAD_F):
        at = row_at(b, row, start, variable, rows, run)
        cell = a * stride + (at if at >= 0 else stride - 1)
        return columns_i[cell], columns_f[cell], not valid[cell], 0
    whole, real, count, fault = total_at(a, row, start, variable, rows, run, cells)
    function = rows[0][4 * a]
    if function == COUNT:
        return count, 0.0, False, fault
    if function == AVG:
        if count and rows[0][4 * a + 3] == 0:
            real = whole / count
        elif count:
            real = real / count
    return whole, real, count == 0, fault


@njit(nogil=True)
def connected(decides, stack_i, stack_n, left):
    """Run AND (decided by 0) or OR (by 1) on the two values from ``left`` on; a fault right of what
    decides is none.
    """
    right = left + 1
    if stack_n[left] > _NULL or (stack_n[left] == _VALUE and stack_i[left] == decides):
        return
    if stack_n[right] > _NULL or (stack_n[right] == _VALUE and stack_i[right] == decides):
        stack_i[left], stack_n[left] = decides, stack_n[right]
    elif stack_n[left] == _NULL or stack_n[right] == _NULL:
        stack_n[left] = _NULL
    else:
        stack_i[left] = 1 - decides


@njit(nogil=True)
def asked(op, stack_i, stack_n, here):
    """Run NOT or an IS test on the value on top."""
    if stack_n[here] > _NULL:
        return
    if op == _NOT:
        stack_i[here] = 1 - stack_i[here]
        return
    if op == _IS_NULL:
        stack_i[here] = stack_n[here]
    elif op == _IS_NOT_NULL:
        stack_i[here] = 1 - stack_n[here]
    else:
        wanted = 1 if op == _IS_TRUE else 0
        stack_i[here] = 1 if stack_n[here] == _VALUE and stack_i[here] == wanted else 0
    stack_n[here] = _VALUE


@njit(nogil=True)
def alone(op, a, stack_i, stack_f, here):
    """Run an instruction on the value on top; return a fault."""
    over = False
    if op == _TO_FLOAT:
        stack_f[here] = stack_i[here] / 10.0**a
    elif op == _SCALE:
        for _ in range(a):
            stack_i[here], more = multiplied(stack_i[here], 10, 64)
            over = over or more
    elif op == _UNITS:
        value = stack_i[here]
        stack_i[here] = value // a if value >= 0 else -(-value // a)
    elif op == _NEGATE_I:
        over = stack_i[here] == _MIN
        stack_i[here] = -stack_i[here]
    elif op == _ABS_I:
        over = stack_i[here] == _MIN
        stack_i[here] = abs(stack_i[here])
    elif op == _NEGATE_F:
        stack_f[here] = -stack_f[here]
    elif op == _ABS_F:
        stack_f[here] = abs(stack_f[here])
    return OVERFLOW if over else 0


@njit(nogil=True)
def together(op, a, stack_i, stack_f, left):
    """Run an instruction on the two values from ``left`` on, which are not NULL; the result takes the
    place of the first. Return a fault.
    """
    right = left + 1
    over = False
    if op == _ADD_I:
        stack_i[left], over = added(stack_i[left], stack_i[right], a)
    elif op == _SUBTRACT_I:
        over = stack_i[right] == _MIN
        if not over:
            stack_i[left], over = added(stack_i[left], -stack_i[right], a)
    elif op == _MULTIPLY_I:
        stack_i[left], over = multiplied(stack_i[left], stack_i[right], a)
    elif op == _ADD_F:
        stack_f[left] += stack_f[right]
    elif op == _SUBTRACT_F:
        stack_f[left] -= stack_f[right]
    elif op == _MULTIPLY_F:
        stack_f[left] *= stack_f[right]
    elif op == _DIVIDE_F:
        if stack_f[right] == 0.0:
            return NO_DIVISION
        stack_f[left] /= stack_f[right]
    elif op == _COMPARE_I:
        stack_i[left] = (
            1 if compared(a, stack_i[left] < stack_i[right], stack_i[left] == stack_i[right]) else 0
        )
    else:
        x, y = stack_f[left], stack_f[right]
        stack_i[left] = 1 if compared(a, less(x, y), x == y or (np.isnan(x) and np.isnan(y))) else 0
    return OVERFLOW if over else 0


@njit(nogil=True)
def joined(op, a, stack_i, stack_f, stack_n, left):
    """Run an instruction on the two values from ``left`` on, whatever they are."""
    right = left + 1
    if stack_n[left] > _NULL or stack_n[right] > _NULL:
        stack_n[left] = max(stack_n[left], stack_n[right])
    elif stack_n[left] == _VALUE and stack_n[right] == _VALUE:
        fault = together(op, a, stack_i, stack_f, left)
        stack_n[left] = fault + 1 if fault else _VALUE
    elif a == 6 and op in (_COMPARE_I, _COMPARE_F):
        stack_i[left] = 1 if stack_n[left] == stack_n[right] else 0
        stack_n[left] = _VALUE
    else:
        stack_n[left] = _NULL


@njit(nogil=True)
def holds(program, row, start, variable, rows, run, cells, stack):
    """Return whether a program holds for a row tried as a variable's, and a fault."""
    code, first, last = program
    stack_i, stack_f, stack_n = stack
    top = 0
    for at in range(first, last):
        op, a, b = code[3 * at], code[3 * at + 1], code[3 * at + 2]
        if op <= _TOTAL_F:
            stack_i[top], stack_f[top], null, fault = pushed(
                op, a, b, row, start, variable, rows, run, cells, stack
            )
            stack_n[top] = fault + 1 if fault else _NULL if null else _VALUE
            top += 1
        elif op <= _UNITS or (_NEGATE_I <= op <= _ABS_F):
            if stack_n[top - 1] == _VALUE:
                fault = alone(op, a, stack_i, stack_f, top - 1)
                stack_n[top - 1] = fault + 1 if fault else _VALUE
        elif op in (_AND, _OR):
            top -= 1
            connected(0 if op == _AND else 1, stack_i, stack_n, top - 1)
        elif op > _OR:
            asked(op, stack_i, stack_n, top - 1)
        else:
            top -= 1
            joined(op, a, stack_i, stack_f, stack_n, top - 1)
    if stack_n[0] > _NULL:
        return False, stack_n[0] - 1
    return stack_n[0] == _VALUE and stack_i[0] == 1, 0
