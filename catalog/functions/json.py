"""Functions of JSON in texts, declared."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.functions.bitwise import function_of as of
from penstock.catalog.functions.type_rules import Function, Mismatch, Operand, Typing, fixed, wanted
from penstock.catalog.types import (
    BOOLEAN,
    INT,
    NULL,
    STRING,
    Array,
    DataType,
    DayTimeInterval,
    Map,
    Null,
    Row,
    String,
    Variant,
    YearMonthInterval,
)

_TEXT = fixed(STRING, result=STRING)
_COUNT = fixed(STRING, result=INT)
# Of IS JSON: the second argument of is_json, in small letters.
_KINDS = ("value", "object", "array", "scalar")


# A constant: the type of the result follows from it.
def _constant_text(operand: Operand, what: str, example: str) -> None:
    if not operand.constant or not isinstance(operand.value, str):
        raise Mismatch(f"{what} is no constant text", f"write {example}")


def _tested(operands: Sequence[Operand]) -> Typing:
    for operand in operands[1:]:
        if operand.value not in _KINDS:
            raise Mismatch(
                f"{operand.value} is no kind of JSON", "write x IS JSON VALUE, OBJECT, ARRAY or SCALAR"
            )
    return (wanted(operands[0], STRING, 1), *(STRING for _ in operands[1:])), BOOLEAN


def _read(operands: Sequence[Operand]) -> Typing:
    """The rule of ``from_json``. The result type is NULL here: the binder replaces it by the type of the
    schema.
    """
    _constant_text(operands[1], "the schema", "from_json(text, 'a INT, b ARRAY<STRING>')")
    # Other options of Spark are refused: to ignore one could change values in silence.
    for mode in operands[2:]:
        if mode.value not in ("PERMISSIVE", "FAILFAST"):
            raise Mismatch(
                "the only option is mode",
                "write map('mode', 'FAILFAST'), or leave it out: PERMISSIVE gives NULL",
            )
    return (wanted(operands[0], STRING, 1), *(STRING for _ in operands[1:])), NULL


def _schema(operands: Sequence[Operand]) -> Typing:
    _constant_text(operands[0], "the JSON", "schema_of_json('{\"a\": 1}')")
    return (STRING,), STRING


def _written(operands: Sequence[Operand]) -> Typing:
    kind = operands[0].type
    if not isinstance(kind, Row | Array | Map | Variant):
        raise Mismatch(
            f"argument 1 is {kind}, wanted a ROW, an ARRAY, a MAP or a VARIANT", "write to_json(struct(a, b))"
        )
    # By type, when the statement is planned: no row can then fail.
    writable(kind)
    return (kind,), STRING


def writable(kind: DataType) -> None:
    """Refuse a type without a form in JSON: maps whose keys are nested, intervals."""
    match kind:
        # Element by element.
        case Array(element):
            writable(element)
        case Map(key, value):
            # A key is written as a text; flat values have one.
            if isinstance(key, Row | Array):
                raise Mismatch("the keys of a JSON object are texts", f"CAST the keys, {key}, to STRING")
            writable(key)
            writable(value)
        case Row(fields):
            for _, part in fields:
                writable(part)
        case DayTimeInterval() | YearMonthInterval():
            raise Mismatch(f"{kind} has no form in JSON", "CAST it to STRING")


def readable(kind: DataType) -> None:
    """Refuse a type that is not read from JSON: maps whose keys are no texts, intervals."""
    match kind:
        case Array(element):
            readable(element)
        case Map(key, value):
            # Narrower than writing: a text such as "1" is read as a text, and CAST by the user.
            if not isinstance(key, String):
                raise Mismatch(
                    f"the keys of a JSON object are texts, not {key}", "write MAP<STRING, ..> and CAST it"
                )
            readable(value)
        case Row(fields):
            for _, part in fields:
                readable(part)
        case DayTimeInterval() | YearMonthInterval():
            raise Mismatch(f"{kind} has no form in JSON", "read it as STRING")
        case Variant():
            raise Mismatch("from_json has no VARIANT", "write parse_json(text), or read it as STRING")


def _object(operands: Sequence[Operand]) -> Typing:
    """The marks of the values first, then keys and values in turn."""
    # The first operand has a mark for each value; keys are at 1, 3, .., values at 2, 4, ..
    # The marks are such as "absent vj": v values are encoded, j values are JSON already.
    for key in operands[1::2]:
        if not isinstance(key.type, String | Null):
            raise Mismatch(f"a key is {key.type}, wanted STRING", "CAST it to STRING")
    for value in operands[2::2]:
        writable(value.type)
    return (STRING, *(STRING if i % 2 == 0 else o.type for i, o in enumerate(operands[1:]))), STRING


def _array(operands: Sequence[Operand]) -> Typing:
    for value in operands[1:]:
        writable(value.type)
    return tuple(o.type for o in operands), STRING


JSON: tuple[Function, ...] = (
    of(
        # Of Spark: any value at the path, objects as JSON text.
        "get_json_object",
        "get_json_object(s, path)",
        "The value at a path as text.",
        _TEXT,
        nullable=True,
        fallible=True,
    ),
    of(
        # The three of the SQL standard: a scalar, an object or array, and whether there is something.
        "json_value",
        "json_value(s, path)",
        "The value at a path, if it is no object and no array.",
        _TEXT,
        nullable=True,
        fallible=True,
    ),
    of(
        "json_query",
        "json_query(s, path)",
        "The object or array at a path.",
        _TEXT,
        nullable=True,
        fallible=True,
    ),
    of(
        "json_exists",
        "json_exists(s, path)",
        "Whether there is something at a path.",
        fixed(STRING, result=BOOLEAN),
        fallible=True,
    ),
    of(
        # Nullable whatever the argument: NULL says that the text is no array.
        "json_array_length",
        "json_array_length(s)",
        "The number of elements; NULL for what is no array.",
        _COUNT,
        nullable=True,
    ),
    of(
        "json_length",
        "json_length(s)",
        "The number of elements of an array, of fields of an object; 1 of another value.",
        _COUNT,
        nullable=True,
    ),
    of(
        "json_object_keys",
        "json_object_keys(s)",
        "The names of an object's fields.",
        fixed(STRING, result=Array(STRING)),
        nullable=True,
    ),
    Function(
        "is_json",
        "is_json(s)",
        "Whether the text is JSON; also s IS JSON [VALUE | OBJECT | ARRAY | SCALAR].",
        _tested,
        (1, 2),
    ),
    Function(
        "from_json",
        "from_json(s, 'a INT, b ARRAY<STRING>'[, map('mode', 'FAILFAST')])",
        "The text as a ROW, or as the ARRAY<..> or MAP<..> that is named; NULL for what cannot be "
        "read, FAILFAST raises.",
        _read,
        (2, 3),
        nullable=True,
        fallible=True,
    ),
    Function(
        "to_json",
        "to_json(x)",
        "A ROW, ARRAY, MAP or VARIANT as JSON; fields that are NULL are left out.",
        _written,
        (1, 1),
    ),
    Function(
        "schema_of_json",
        "schema_of_json('json')",
        "The type of a constant as from_json takes it.",
        _schema,
        (1, 1),
        fallible=True,
    ),
    # KEY k VALUE v arrives here as the pair k, v.
    Function(
        "json_object",
        "json_object(KEY k VALUE v, .. [NULL | ABSENT ON NULL])",
        "An object; also json_object(k, v, ..) and 'k': v. A NULL key raises.",
        _object,
        (1, None),
        nullable=False,
        fallible=True,
    ),
    # ABSENT ON NULL unless said, as in the standard; json_object has NULL ON NULL.
    Function(
        "json_array",
        "json_array(a, b, .. [NULL | ABSENT ON NULL])",
        "An array; NULLs are left out by default.",
        _array,
        (1, None),
        nullable=False,
    ),
)
