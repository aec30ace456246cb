"""Functions of JSON in texts, declared."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.bit_functions import function_of as of
from catalog.function_rules import Function, Mismatch, Operand, Typing, fixed, wanted
from catalog.types import BOOLEAN, INT, STRING, Array

_TEXT = fixed(STRING, result=STRING)
_COUNT = fixed(STRING, result=INT)
_KINDS = ("value", "object", "array", "scalar")


def _tested(operands: Sequence[Operand]) -> Typing:
    for operand in operands[1:]:
        if operand.value not in _KINDS:
            raise Mismatch(f"{operand.value} is no kind of JSON", "write x IS JSON VALUE, OBJECT, ARRAY or SCALAR")
    return (wanted(operands[0], STRING, 1), *(STRING for _ in operands[1:])), BOOLEAN


JSON: tuple[Function, ...] = (
    of("get_json_object", "get_json_object(s, path)", "The value at a path as text.", _TEXT, nullable=True, fallible=True),
    of("json_value", "json_value(s, path)", "The value at a path, if it is no object and no array.", _TEXT, nullable=True, fallible=True),
    of("json_query", "json_query(s, path)", "The object or array at a path.", _TEXT, nullable=True, fallible=True),
    of("json_exists", "json_exists(s, path)", "Whether there is something at a path.", fixed(STRING, result=BOOLEAN), fallible=True),
    of("json_array_length", "json_array_length(s)", "The number of elements; NULL for what is no array.", _COUNT, nullable=True),
    of("json_length", "json_length(s)", "The number of elements of an array, of fields of an object; 1 of another value.", _COUNT, nullable=True),
    of("json_object_keys", "json_object_keys(s)", "The names of an object's fields.", fixed(STRING, result=Array(STRING)), nullable=True),
    Function("is_json", "is_json(s)", "Whether the text is JSON; also s IS JSON [VALUE | OBJECT | ARRAY | SCALAR].", _tested, (1, 2)),
)
