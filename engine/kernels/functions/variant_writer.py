"""VARIANT values, which are canonical JSON texts, in the binary encoding of Parquet and Spark: a dictionary
of the names of fields, and the value.

Numbers with an exponent are doubles: Arrow parses them between the two passes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.functions.json_paths import put_unescaped, string_end
from penstock.engine.kernels.kernel import I64, IN_F64, IN_I32, IN_I64, IN_U8, OUT_I64, OUT_U8, kernel
from penstock.engine.kernels.pointers import pointer

_DEEPEST = 62
_LARGEST_SCALAR = 18
"""A decimal of 38 digits: the type, the scale and 16 bytes."""
_FRAME = 6
"""Words of a container: whether it is an object, its values, the next one, and where the identifiers, offsets
and values begin.
"""
_LIMB = 32
_LOW = (1 << 32) - 1


@njit(nogil=True)
def _scalar_end(data, pos, end):
    """Return the position behind a number or a word, which a comma, a bracket or the end follows."""
    while pos < end and data[pos] != 44 and data[pos] != 93 and data[pos] != 125:
        pos += 1
    return pos


@njit(nogil=True)
def _width(bound):
    return 1 if bound < 256 else 2 if bound < 65_536 else 4


@njit(nogil=True)
def _is_double(data, pos, end):
    while pos < end:
        if data[pos] == 69:
            return True
        pos += 1
    return False


@njit(nogil=True)
def _measure(data, pos, end, counts, at, doubles, stack):
    """Count the values of each container of one text, in the order in which they begin. Return the next place
    in ``counts``, a bound of the scalars' bytes, the number of all values, and that of fields.
    """
    depth, scalars, values, fields = 0, 0, 0, 0
    while True:
        byte = data[pos]
        if byte in (123, 91):
            counts[at] = 0
            stack[2 * depth], stack[2 * depth + 1] = at, byte == 123
            at += 1
            depth += 1
            pos += 1
            if data[pos] != 125 and data[pos] != 93:
                if byte == 123:
                    fields += 1
                    pos, _ = string_end(data, pos + 1, end)
                    pos += 1
                continue
            pos += 1
            depth -= 1
        elif byte == 34:
            behind, _ = string_end(data, pos + 1, end)
            scalars += behind - pos + 4
            pos = behind
        else:
            behind = _scalar_end(data, pos, end)
            scalars += min(behind - pos + 1, _LARGEST_SCALAR) + 6
            if byte < 97 and _is_double(data, pos, behind):
                doubles[0] += 1
                doubles[2 * doubles[0] - 1], doubles[2 * doubles[0]] = pos, behind
            pos = behind
        values += 1
        while depth:
            counts[stack[2 * depth - 2]] += 1
            if data[pos] == 44:
                pos += 1
                if stack[2 * depth - 1]:
                    fields += 1
                    pos, _ = string_end(data, pos + 1, end)
                    pos += 1
                break
            pos += 1
            depth -= 1
            values += 1
        if not depth:
            return at, scalars, values, fields


@kernel(I64(IN_I32, IN_U8, IN_U8, OUT_I64, OUT_I64, OUT_I64))
def measure(offsets, bytes_in, valid, counts_out, doubles_out, sizes_out):
    """Measure canonical texts, those that are not NULL. ``counts_out``: the values of each container;
    ``doubles_out``: a count, then the bounds of the numbers that are doubles. ``sizes_out``: four words a
    text, a bound of its value's bytes, of its dictionary's, the width of its offsets, that of identifiers.
    Return how many ``counts_out`` there are.
    """
    data, counts, doubles = pointer(bytes_in), pointer(counts_out), pointer(doubles_out)
    stack_array = np.zeros(2 * _DEEPEST, np.int64)
    stack, at = pointer(stack_array), 0
    doubles[0] = 0
    for i in range(offsets.size - 1):
        begin, end = I64(offsets[i]), I64(offsets[i + 1])
        if valid.size and not valid[i]:
            sizes_out[4 * i], sizes_out[4 * i + 1] = 1, 3
            sizes_out[4 * i + 2] = sizes_out[4 * i + 3] = 1
            continue
        first = at
        at, scalars, values, fields = _measure(data, begin, end, counts, at, doubles, stack)
        containers = at - first
        # identifiers have at most the bytes of offsets, and each container an offset more than it has values
        narrow = scalars + 9 * containers + 2 * values
        width = 1 if narrow < 256 else 2 if narrow + 2 * values + containers < 65_536 else 4
        sizes_out[4 * i] = scalars + containers * (5 + 2 * width) + 2 * width * values + 8
        sizes_out[4 * i + 1] = 16 + 4 * fields + (end - begin)
        sizes_out[4 * i + 2], sizes_out[4 * i + 3] = width, min(width, _width(fields))
    return at


@njit(nogil=True)
def _put(out, at, value, width):
    """Write a number of so many bytes, the lowest first; return the position behind."""
    for k in range(width):
        out[at + k] = (value >> (8 * k)) & 255
    return at + width


@njit(nogil=True)
def _put_integer(out, at, value):
    """Write a whole number in the smallest of four types."""
    if -128 <= value <= 127:
        out[at] = 3 << 2
        return _put(out, at + 1, value, 1)
    if -32_768 <= value <= 32_767:
        out[at] = 4 << 2
        return _put(out, at + 1, value, 2)
    if -2_147_483_648 <= value <= 2_147_483_647:
        out[at] = 5 << 2
        return _put(out, at + 1, value, 4)
    out[at] = 6 << 2
    return _put(out, at + 1, value, 8)


@njit(nogil=True)
def _put_long(data, pos, end, out, at, limbs):
    """Write a number of up to 38 digits: one that a word holds as a whole number, another as a decimal of 16
    bytes.
    """
    negative = data[pos] == 45
    scale, pointed = 0, False
    for k in range(4):
        limbs[k] = 0
    for k in range(pos + negative, end):
        if data[k] == 46:
            pointed = True
            continue
        scale += pointed
        carry = np.int64(data[k]) - 48
        for limb in range(4):
            carry += limbs[limb] * 10
            limbs[limb] = carry & _LOW
            carry >>= _LIMB
    if negative:
        carry = np.int64(1)
        for limb in range(4):
            carry += limbs[limb] ^ _LOW
            limbs[limb] = carry & _LOW
            carry >>= _LIMB
    # the sign of the low half goes on in the high half
    sign = _LOW if limbs[1] >> 31 else 0
    if not pointed and limbs[2] == sign and limbs[3] == sign and negative == (sign != 0):
        out[at] = 6 << 2
        at += 1
        for limb in range(2):
            at = _put(out, at, limbs[limb], 4)
        return at
    out[at], out[at + 1] = 10 << 2, scale
    at += 2
    for limb in range(4):
        at = _put(out, at, limbs[limb], 4)
    return at


@njit(nogil=True)
def _put_number(data, pos, end, out, at, limbs):
    """Write a number without an exponent."""
    negative = data[pos] == 45
    digits, scale, value, pointed = 0, 0, np.int64(0), False
    for k in range(pos + negative, end):
        if data[k] == 46:
            pointed = True
            continue
        # zeros in front are no digits
        digits += digits > 0 or data[k] != 48
        scale += pointed
        if digits > 18:
            return _put_long(data, pos, end, out, at, limbs)
        value = value * 10 + (np.int64(data[k]) - 48)
    value = -value if negative else value
    if not pointed:
        return _put_integer(out, at, value)
    short = digits <= 9 and scale <= 9
    if not short and scale > 18:
        return _put_long(data, pos, end, out, at, limbs)
    out[at], out[at + 1] = (8 << 2) if short else (9 << 2), scale
    return _put(out, at + 2, value, 4 if short else 8)


@njit(nogil=True)
def _put_text(data, pos, behind, out, at):
    """Write the string whose quotes are at ``pos`` and before ``behind``."""
    raw = behind - pos - 2
    if raw <= 63:
        last = put_unescaped(data, pos + 1, behind - 1, out, at + 1)
        out[at] = ((last - at - 1) << 2) | 1
        return last
    last = put_unescaped(data, pos + 1, behind - 1, out, at + 5)
    out[at] = 16 << 2
    _put(out, at + 1, last - at - 5, 4)
    return last


@njit(nogil=True)
def _name(data, pos, behind, row, names, ends, table, mask):
    """Return the identifier of the name whose quotes are at ``pos`` and before ``behind``, and add it to the
    names of this row where it is new. ``ends[0]`` counts them; the table has two words a place.
    """
    count = ends[0]
    begin = ends[count] if count else 0
    end = put_unescaped(data, pos + 1, behind - 1, names, begin)
    place = np.int64(end - begin)
    for k in range(begin, end):
        place = (place * 31 + np.int64(names[k])) & 0xFFFFFFFF
    place = (place ^ (place >> 15)) & mask
    while table[2 * place] == row + 1:
        known = table[2 * place + 1]
        first = ends[known] if known else 0
        if ends[known + 1] - first == end - begin:
            same = True
            for k in range(end - begin):
                same = same and names[first + k] == names[begin + k]
            if same:
                return known
        place = (place + 1) & mask
    table[2 * place], table[2 * place + 1] = row + 1, count
    ends[0], ends[count + 1] = count + 1, end
    return count


@njit(nogil=True)
def _before(names, ends, left, right):
    """Return whether a name sorts before another one by its bytes."""
    a, b = ends[left] if left else 0, ends[right] if right else 0
    a_end, b_end = ends[left + 1], ends[right + 1]
    while a < a_end and b < b_end:
        if names[a] != names[b]:
            return names[a] < names[b]
        a += 1
        b += 1
    return a == a_end and b < b_end


@njit(nogil=True)
def _get(out, at, width):
    value = np.int64(0)
    for k in range(width):
        value |= np.int64(out[at + k]) << (8 * k)
    return value


@njit(nogil=True)
def _sort_fields(out, stack, frame, width, id_width, names, ends):
    """Order the fields of an object by name: a canonical text has them so, but for names with escapes."""
    ids, offs = stack[frame + 3], stack[frame + 4]
    for i in range(1, stack[frame + 1]):
        k = i
        while k > 0:
            one = _get(out, ids + id_width * (k - 1), id_width)
            other = _get(out, ids + id_width * k, id_width)
            if not _before(names, ends, other, one):
                break
            before = _get(out, offs + width * (k - 1), width)
            here = _get(out, offs + width * k, width)
            _put(out, ids + id_width * (k - 1), other, id_width)
            _put(out, ids + id_width * k, one, id_width)
            _put(out, offs + width * (k - 1), here, width)
            _put(out, offs + width * k, before, width)
            k -= 1


@njit(nogil=True)
def _open(out, at, stack, frame, in_object, count, width, id_width):
    """Write the head of a container and leave room for its identifiers and offsets."""
    large = count > 255
    if in_object:
        out[at] = 2 | ((width - 1) << 2) | ((id_width - 1) << 4) | (large << 6)
    else:
        out[at] = 3 | ((width - 1) << 2) | (large << 4)
    at = _put(out, at + 1, count, 4 if large else 1)
    stack[frame], stack[frame + 1], stack[frame + 2], stack[frame + 3] = in_object, count, 0, at
    at += id_width * count if in_object else 0
    stack[frame + 4] = at
    at += width * (count + 1)
    stack[frame + 5] = at
    return at


@njit(nogil=True)
def _put_value(data, pos, end, out, at, counts, container, row, width, id_width, doubles, names, ends, table,
               mask, stack, limbs):  # fmt: skip
    """Write the value of one text; return the position behind it, and the next place in ``counts``."""
    depth, frame = 0, -_FRAME
    while True:
        if depth:
            _put(out, stack[frame + 4] + width * stack[frame + 2], at - stack[frame + 5], width)
            if stack[frame]:
                behind, _ = string_end(data, pos + 1, end)
                known = _name(data, pos, behind, row, names, ends, table, mask)
                _put(out, stack[frame + 3] + id_width * stack[frame + 2], known, id_width)
                pos = behind + 1
            stack[frame + 2] += 1
        byte = data[pos]
        opened = byte in (123, 91)
        if opened:
            depth += 1
            frame += _FRAME
            at = _open(out, at, stack, frame, np.int64(byte == 123), counts[container], width, id_width)
            container += 1
            pos += 1
            opened = stack[frame + 1] > 0
        elif byte == 34:
            behind, _ = string_end(data, pos + 1, end)
            at = _put_text(data, pos, behind, out, at)
            pos = behind
        elif byte >= 97:
            # null, true, false
            out[at] = 0 if byte == 110 else 4 if byte == 116 else 8
            at += 1
            pos = _scalar_end(data, pos, end)
        else:
            behind = _scalar_end(data, pos, end)
            if _is_double(data, pos, behind):
                out[at] = 7 << 2
                doubles[0] += 1
                at = _put(out, at + 1, doubles[doubles[0]], 8)
            else:
                at = _put_number(data, pos, behind, out, at, limbs)
            pos = behind
        while depth and not opened:
            if data[pos] == 44:
                pos += 1
                break
            # the end of a container
            _put(out, stack[frame + 4] + width * stack[frame + 1], at - stack[frame + 5], width)
            if stack[frame]:
                _sort_fields(out, stack, frame, width, id_width, names, ends)
            pos += 1
            depth -= 1
            frame -= _FRAME
        if not depth:
            return at, container


@njit(nogil=True)
def _put_names(out, at, names, ends):
    """Write the dictionary of one value; return the position behind."""
    count = ends[0]
    size = ends[count] if count else 0
    width = _width(max(size, count))
    out[at] = 1 | ((width - 1) << 6)
    at = _put(out, at + 1, count, width)
    at = _put(out, at, 0, width)
    for k in range(count):
        at = _put(out, at, ends[k + 1], width)
    for k in range(size):
        out[at + k] = names[k]
    return at + size


@kernel(I64(IN_I32, IN_U8, IN_U8, IN_I64, IN_F64, IN_I64, OUT_I64, OUT_U8, OUT_I64, OUT_U8, OUT_I64))
def write(offsets, bytes_in, valid, counts_in, doubles_in, sizes, value_offsets, values_out, name_offsets,
          names_out, table_out):  # fmt: skip
    """Write the dictionary and the value of each text that ``measure`` has measured; a NULL has an empty
    dictionary and a null. ``table_out``: zeros, two words a place, a power of two of places, more than any
    text has names. Return the number of texts.
    """
    data, counts, out, names = pointer(bytes_in), pointer(counts_in), pointer(values_out), pointer(names_out)
    longest = 0
    for i in range(offsets.size - 1):
        longest = max(longest, I64(offsets[i + 1]) - I64(offsets[i]))
    doubles_array = np.zeros(doubles_in.size + 1, np.int64)
    doubles_array[1:] = doubles_in.view(np.int64)
    stack_array, limbs_array = np.zeros(_FRAME * _DEEPEST, np.int64), np.zeros(4, np.int64)
    text_array, ends_array = np.empty(longest + 1, np.uint8), np.zeros(longest // 4 + 2, np.int64)
    stack, limbs, doubles = pointer(stack_array), pointer(limbs_array), pointer(doubles_array)
    text, ends, table, mask = pointer(text_array), pointer(ends_array), pointer(table_out), 0
    mask = table_out.size // 2 - 1
    at, behind, container = 0, 0, 0
    value_offsets[0] = name_offsets[0] = 0
    for i in range(offsets.size - 1):
        ends[0] = 0
        if valid.size and not valid[i]:
            out[at] = 0
            at += 1
        else:
            at, container = _put_value(
                data, I64(offsets[i]), I64(offsets[i + 1]), out, at, counts, container, i, sizes[4 * i + 2],
                sizes[4 * i + 3], doubles, text, ends, table, mask, stack, limbs,
            )  # fmt: skip
        behind = _put_names(names, behind, text, ends)
        value_offsets[i + 1], name_offsets[i + 1] = at, behind
    return offsets.size - 1
