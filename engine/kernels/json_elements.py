"""Where the elements of a JSON array begin and end, in one pass over its bytes."""

from __future__ import annotations

from penstock.engine.kernels.kernel import I64, IN_U8, OUT_I64, kernel

_QUOTE, _ESCAPE, _COMMA = ord('"'), ord("\\"), ord(",")
_OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT = ord("["), ord("]"), ord("{"), ord("}")


@kernel(I64(IN_U8, OUT_I64, OUT_I64))
def element_bounds(data, starts, ends):
    """Write the bounds of the elements of a JSON array, without blanks; return how many there are.

    ``starts`` and ``ends`` have space for ``len(data) // 2 + 1`` elements. -1 for bytes that are no array;
    elements themselves are not checked.
    """
    count, depth, start, end = 0, 0, -1, -1
    in_text, escaped, closed = False, False, False
    for i in range(data.size):
        letter = data[i]
        blank = letter == 32 or (9 <= letter <= 13)
        if in_text:
            end = i + 1
            if escaped:
                escaped = False
            elif letter == _ESCAPE:
                escaped = True
            elif letter == _QUOTE:
                in_text = False
            continue
        if blank:
            continue
        if closed:
            return -1
        if depth == 0:
            if letter != _OPEN_ARRAY:
                return -1
            depth = 1
            continue
        if depth == 1 and (letter in (_COMMA, _CLOSE_ARRAY)):
            if start < 0:
                # an empty array alone has no element before its end
                if letter == _COMMA or count:
                    return -1
            else:
                starts[count], ends[count] = start, end
                count += 1
                start = -1
            if letter == _CLOSE_ARRAY:
                closed = True
            continue
        if start < 0:
            start = i
        end = i + 1
        if letter == _QUOTE:
            in_text = True
        elif letter in (_OPEN_ARRAY, _OPEN_OBJECT):
            depth += 1
        elif letter in (_CLOSE_ARRAY, _CLOSE_OBJECT):
            depth -= 1
            if depth < 1:
                return -1
    return count if closed else -1
