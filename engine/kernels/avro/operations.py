"""The instructions of programs that decode and encode Avro, and what a kernel returns of a value it cannot
decode. The compilers of programs (engine/formats/avro) and the kernels share them.

An instruction is eight numbers: operation, node, group, and up to five operands. A *node* is one column of
the output, at any depth. A *group* counts the items of all nodes of one level: rows, or the elements of one
list. All nodes of a group have an item more when the group has.
"""

from __future__ import annotations

from enum import IntEnum

WIDTH = 8
"""Numbers of an instruction."""
NODE_WIDTH = 4
"""Numbers of a node: where its words, validity and bytes begin, and how many bytes it may have."""


class ReadOp(IntEnum):
    """Operations of the reader. Their order groups them: numbers, texts, constants, skips, lists."""

    END = 0
    # numbers: operands are the least, the greatest, what it is multiplied with, what it is divided by
    INT = 1
    SCALED = 2
    FLOAT = 3
    DOUBLE = 4
    INT_AS_DOUBLE = 5
    BOOLEAN = 6
    # texts: FIXED has the size, ENUM the number of symbols and where their constants begin
    BYTES = 10
    FIXED = 11
    ENUM = 12
    UUID = 13
    # decimals: size (-1: written before it), digits added, low and high word of the limit
    DECIMAL = 14
    # constants: words, or the bounds of a text
    NULL_WORD = 20
    NULL_TEXT = 21
    VALID = 22
    WORD = 23
    TEXT = 24
    WIDE = 25
    NULL_ROW = 26
    # skips
    SKIP_INT = 30
    SKIP_BYTES = 31
    SKIP_FIXED = 32
    # control
    UNION = 40
    JUMP = 41
    BAD = 42
    # lists: the group of the elements, where to go at the end, the least bytes of an element
    LIST_BEGIN = 43
    LIST_NEXT = 44
    LIST_ITEM = 45
    LIST_CLOSE = 46
    LIST_NULL = 47
    SKIP_NEXT = 48


class ReadFault(IntEnum):
    """Why a value was not decoded."""

    NONE = 0
    TRUNCATED = 1
    LONG_NUMBER = 2
    NO_BRANCH = 3
    OUT_OF_RANGE = 4
    NULL = 5
    OTHER_BRANCH = 6
    NO_SYMBOL = 7
    UNKNOWN_SYMBOL = 8
    NO_BOOLEAN = 9
    NEGATIVE_LENGTH = 10
    TRAILING = 11
    BLOCK_COUNT = 12
    DIGITS = 13
    # no faults of the value: a buffer is full
    FULL_GROUP = 50
    FULL_BYTES = 51


class WriteOp(IntEnum):
    """Operations of the writer. Operand 3 is the size of a fixed; labels and branches begin at operand 4."""

    END = 0
    INT = 1
    FLOAT = 2
    DOUBLE = 3
    BOOLEAN = 4
    # decimals: of their own length, of a fixed one
    DECIMAL_BYTES = 5
    DECIMAL_FIXED = 6
    BYTES = 8
    FIXED = 9
    # the branch of NULL, the branch of values, where to go for NULL
    NULLABLE = 10
    # NULL is a fault
    REQUIRED = 11
    # a branch that is always the same
    BRANCH = 12
    JUMP = 13
    # the group of the elements, where to go
    LIST_BEGIN = 14
    LIST_NEXT = 15
    LIST_ITEM = 16
