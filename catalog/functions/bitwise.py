"""Functions of bits, checksums, encodings and URLs, declared."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.coercion import common_type
from penstock.catalog.functions.type_rules import Function, Mismatch, Operand, Rule, Typing, fixed, wanted
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    INT,
    STRING,
    TINYINT,
    Array,
    BigInt,
    Binary,
    DataType,
    Decimal,
    Map,
    Null,
    Row,
    Time,
    is_integer,
    is_numeric,
)


def _integer(operand: Operand, position: int) -> DataType:
    # NULL & 5 is an INT that is NULL.
    if isinstance(operand.type, Null):
        return INT
    if not is_integer(operand.type):
        raise Mismatch(f"argument {position} is {operand.type}, wanted an integer")
    return operand.type


def integers(operands: Sequence[Operand]) -> Typing:
    """Integers of one type, which is the result's."""
    kind = _integer(operands[0], 1)
    for position, operand in enumerate(operands[1:], 2):
        # TINYINT & BIGINT is BIGINT: the sign bit fills the digits above.
        kind = common_type(kind, _integer(operand, position)) or kind
    return (kind,) * len(operands), kind


def shifted(operands: Sequence[Operand]) -> Typing:
    """INT or BIGINT, moved by an INT."""
    # As in Spark, narrower integers are shifted as INT.
    kind = BIGINT if isinstance(_integer(operands[0], 1), BigInt) else INT
    return (kind, wanted(operands[1], INT, 2)), kind


def _bits(result: DataType) -> Rule:
    def rule(operands: Sequence[Operand]) -> Typing:
        # bit_count(TRUE) is 1; getbit has no BOOLEAN form.
        kind = BOOLEAN if operands[0].type == BOOLEAN and len(operands) == 1 else _integer(operands[0], 1)
        return (kind, *(wanted(o, INT, i) for i, o in enumerate(operands[1:], 2))), result

    return rule


def hexadecimal(operands: Sequence[Operand]) -> Typing:
    """Numbers as BIGINT, STRING or BINARY, as hexadecimal text."""
    kind = operands[0].type
    return (
        # hex(255) is 'FF', hex('ABC') is '414243'.
        kind if isinstance(kind, Binary) else BIGINT if is_numeric(kind) else wanted(operands[0], STRING, 1),
    ), STRING


def text_or_bytes(result: DataType) -> Rule:
    """STRING or BINARY first, then texts."""

    def rule(operands: Sequence[Operand]) -> Typing:
        kind = operands[0].type
        first = kind if isinstance(kind, Binary) else wanted(operands[0], STRING, 1)
        return (first, *(wanted(operand, STRING, i) for i, operand in enumerate(operands[1:], 2))), result

    return rule


def hashed(result: DataType) -> Rule:
    """Anything flat."""

    def rule(operands: Sequence[Operand]) -> Typing:
        for position, operand in enumerate(operands, 1):
            kind = operand.type
            if isinstance(kind, Array | Map | Row | Time) or (
                # Up to 18 digits Spark hashes a decimal as a BIGINT; wider ones as bytes.
                isinstance(kind, Decimal) and kind.precision > 18
            ):
                raise Mismatch(
                    f"argument {position} is {kind}, which is not hashed", "hash its text or its parts"
                )
        return tuple(operand.type for operand in operands), result

    return rule


def function_of(
    name: str,
    usage: str,
    text: str,
    rule: Rule,
    *aliases: str,
    fallible: bool = False,
    nullable: bool | None = None,
) -> Function:
    """A function whose arguments are all those of its usage; those in brackets may be left out."""
    # "f(a, b[, c])" has from 2 to 3 arguments: commas before the bracket, and all commas.
    inside = usage[usage.index("(") + 1 : usage.rindex(")")]
    least = inside.split("[")[0].count(",") + 1 if inside.split("[")[0].strip() else 0
    return Function(
        name, usage, text, rule, (least, inside.count(",") + 1), aliases, nullable, fallible=fallible
    )


BIT_FUNCTIONS: tuple[Function, ...] = (
    # Names of operators: users write the signs.
    Function("bitwise_and", "a & b", "The bits both integers have.", integers, (2, 2)),
    Function("bitwise_or", "a | b", "The bits either integer has.", integers, (2, 2)),
    Function("bitwise_xor", "a ^ b", "The bits only one of both integers has.", integers, (2, 2)),
    Function("bitwise_not", "~a", "The bits the integer has not.", integers, (1, 1)),
    function_of("shiftleft", "shiftleft(a, n)", "The bits n places up.", shifted),
    function_of("shiftright", "shiftright(a, n)", "The bits n places down, the sign kept.", shifted),
    function_of(
        "shiftrightunsigned", "shiftrightunsigned(a, n)", "The bits n places down, zeros from above.", shifted
    ),
    function_of("bit_count", "bit_count(a)", "How many bits are set, of 64.", _bits(INT)),
    function_of(
        "getbit", "getbit(a, n)", "The bit of number n, from 0.", _bits(TINYINT), "bit_get", fallible=True
    ),
    function_of("bin", "bin(n)", "The integer in base 2.", fixed(BIGINT, result=STRING)),
    function_of("hex", "hex(x)", "An integer, or the bytes of a text, in base 16.", hexadecimal),
    function_of(
        "unhex", "unhex(s)", "The bytes of a text in base 16.", fixed(STRING, result=BINARY), fallible=True
    ),
    function_of(
        "conv",
        "conv(s, a, b)",
        "A number in base a written in base b (signed below 0).",
        fixed(STRING, INT, INT, result=STRING),
        fallible=True,
        nullable=True,
    ),
    function_of("crc32", "crc32(s)", "Checksum of the bytes.", text_or_bytes(BIGINT)),
    Function(
        "hash",
        "HASH(a, ..)",
        "Murmur3 hash as Spark has it; NULLs are skipped.",
        hashed(INT),
        (1, None),
        nullable=False,
    ),
    Function(
        "xxhash64",
        "xxhash64(a, ..)",
        "64-bit xxHash as Spark has it; NULLs are skipped.",
        hashed(BIGINT),
        (1, None),
        nullable=False,
    ),
    function_of("base64", "base64(s)", "The bytes in base 64.", text_or_bytes(STRING)),
    function_of(
        "unbase64",
        "unbase64(s)",
        "The bytes of a text in base 64.",
        fixed(STRING, result=BINARY),
        fallible=True,
    ),
    function_of(
        "encode",
        "encode(s, charset)",
        "The bytes of a text in a character set.",
        fixed(STRING, STRING, result=BINARY),
        fallible=True,
    ),
    function_of(
        "decode",
        "decode(bytes, charset)",
        "The text bytes are in a character set.",
        fixed(BINARY, STRING, result=STRING),
        fallible=True,
    ),
    function_of("url_encode", "url_encode(s)", "The text as part of a URL.", fixed(STRING, result=STRING)),
    function_of(
        "url_decode",
        "url_decode(s)",
        "The text of a part of a URL.",
        fixed(STRING, result=STRING),
        fallible=True,
    ),
    function_of(
        "try_url_decode",
        "try_url_decode(s)",
        "`url_decode`; NULL for a text that is none.",
        fixed(STRING, result=STRING),
        nullable=True,
    ),
    function_of(
        "luhn_check",
        "luhn_check(s)",
        "Whether a text of digits passes the checksum of card numbers.",
        fixed(STRING, result=BOOLEAN),
    ),
    function_of(
        "try_parse_url",
        "try_parse_url(url, part[, key])",
        "`parse_url`; NULL for a text that is no URL.",
        fixed(STRING, result=STRING),
        nullable=True,
    ),
    function_of(
        "parse_url",
        "parse_url(url, part[, key])",
        "PROTOCOL, HOST, PATH, QUERY (or the value of a key in it), REF, FILE, AUTHORITY or "
        "USERINFO of a URL.",
        fixed(STRING, result=STRING),
        fallible=True,
        nullable=True,
    ),
)
