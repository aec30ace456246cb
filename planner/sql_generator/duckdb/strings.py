"""DuckDB's spellings of text functions, with Spark's values."""

from __future__ import annotations

import re

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import to_spark
from penstock.planner.expressions.nodes import Call, Literal
from penstock.planner.sql_generator.dialect import (
    Spelling,
    binary,
    cast,
    function,
    integer,
    named,
    same_names,
    text,
    when,
)
from penstock.planner.sql_generator.duckdb.casts import failing
from penstock.planner.sql_generator.duckdb.nested import concatenation
from penstock.planner.sql_generator.spark.functions import like


def constant(call: Call, position: int) -> object:
    """Return the value of a constant argument, ``None`` for any other argument."""
    arg = call.args[position] if position < len(call.args) else None
    return arg.value if isinstance(arg, Literal) else None


def refuse(call: Call, why: str) -> PenstockError:
    """Return the error BND-5101 of a function that DuckDB has, but not with these arguments."""
    hint = "SET 'bounded.backend' = 'spark', or SET 'execution.runtime-mode' = 'streaming'"
    return PenstockError(
        "BND-5101",
        f"function {call.function} has no spelling on the bounded backend duckdb {why}",
        hint=hint,
        span=call.span,
        sqlstate="0A000",
    )


# the largest constant size that DuckDB may compute with
_LARGEST = 10_000


def _modest(spelling: Spelling, position: int) -> Spelling:
    """A function whose result may be much larger than its input; it requires a small constant size.
    penstock's kernels check sizes, DuckDB's do not.
    """

    def spelled(call: Call, args: list[exp.Expr]) -> exp.Expr:
        value = constant(call, position) if position < len(args) else 0
        # A column's value is not known here: it might be any size.
        if not isinstance(value, int | str) or (len(value) if isinstance(value, str) else value) > _LARGEST:
            raise refuse(call, "with a size that is no small constant")
        return spelling(call, args)

    return spelled


def _kind(name: str) -> exp.DataType:
    return exp.DataType.build(name)


def _typed(spelling: Spelling) -> Spelling:
    return lambda call, args: cast(spelling(call, args), _kind(to_spark(call.type)))


def _at_least(low: int, value: exp.Expr) -> exp.Expr:
    return when(exp.LT(this=value, expression=integer(low)), integer(low), value.copy())


def _count(name: str) -> Spelling:
    """``left``, ``right``, ``repeat``: a negative number counts as zero."""
    return lambda call, args: function(name, args[0], _at_least(0, args[1]))


def _substr(call: Call, args: list[exp.Expr]) -> exp.Expr:
    """Start 0 is 1. A negative start counts from the end; characters before the text still count towards the
    length.
    """
    # a constant start from 0 on needs no CASE
    start = constant(call, 1)
    if isinstance(start, int) and start >= 0:
        length = [_at_least(0, args[2])] if len(args) > 2 else []
        return function("substr", args[0], integer(max(1, start)), *length)
    # substr('penstock', -3, 2): the start counts from 0 here, and may be before the text.
    from_end = binary(exp.Add, function("length", args[0].copy()), args[1].copy())
    position = cast(args[1], _kind("BIGINT"))
    begin = exp.Case(
        ifs=[
            exp.If(this=exp.LT(this=position, expression=integer(0)), true=from_end),
            exp.If(
                this=exp.GT(this=position.copy(), expression=integer(0)),
                true=binary(exp.Sub, position.copy(), integer(1)),
            ),
            exp.If(this=exp.EQ(this=position.copy(), expression=integer(0)), true=integer(0)),
        ]
    )
    first = _at_least(0, begin)
    if len(args) < 3:
        return function("substr", args[0], binary(exp.Add, first, integer(1)))
    # From the start before it is cut to 0: substr('abc', -5, 3) has one character.
    end = binary(exp.Add, begin.copy(), cast(args[2], _kind("BIGINT")))
    return function(
        "substr",
        args[0],
        binary(exp.Add, first, integer(1)),
        _at_least(0, binary(exp.Sub, end, first.copy())),
    )


def _concat(call: Call, args: list[exp.Expr]) -> exp.Expr:
    result = args[0]
    for arg in args[1:]:
        result = binary(exp.DPipe, result, arg)
    return result


def _padded(name: str) -> Spelling:
    """An empty pad only truncates."""

    def spelling(call: Call, args: list[exp.Expr]) -> exp.Expr:
        width = _at_least(0, args[1])
        # The default pad is a blank.
        if len(args) == 2:
            return function(name, args[0], width, text(" "))
        cut = function("left", args[0].copy(), width.copy())
        return when(
            exp.EQ(this=args[2], expression=text("")), cut, function(name, args[0], width, args[2].copy())
        )

    return spelling


def _trimmed(name: str) -> Spelling:
    return lambda call, args: function(name, args[0], args[1] if len(args) > 1 else text(" "))


def _position(call: Call, args: list[exp.Expr]) -> exp.Expr:
    part, whole = args[0], args[1]
    if len(args) == 2:
        return cast(function("instr", whole, part), _kind("INT"))
    # POSITION(part IN whole, start): search behind the start, then count from the beginning
    found = function("instr", function("substr", whole, args[2]), part)
    somewhere = exp.Case(
        ifs=[
            exp.If(this=exp.Is(this=found, expression=exp.null()), true=exp.null()),
            exp.If(this=exp.LT(this=args[2].copy(), expression=integer(1)), true=integer(0)),
            exp.If(this=exp.EQ(this=part.copy(), expression=text("")), true=integer(1)),
            exp.If(this=exp.EQ(this=found.copy(), expression=integer(0)), true=integer(0)),
        ],
        default=binary(exp.Sub, binary(exp.Add, found.copy(), args[2].copy()), integer(1)),
    )
    return cast(when(exp.Is(this=args[2].copy(), expression=exp.null()), integer(0), somewhere), _kind("INT"))


def _split_part(call: Call, args: list[exp.Expr]) -> exp.Expr:
    """An empty delimiter splits nothing."""
    # split_part('a', '', 1) and (.., -1) are 'a', other parts are empty; part 0 raises.
    zero = exp.EQ(this=args[2].copy(), expression=integer(0))
    ends = exp.In(this=args[2].copy(), expressions=[integer(1), integer(-1)])
    # An empty text that is NULL where the text is NULL.
    nothing = function("left", args[0].copy(), integer(0))
    whole = exp.Case(
        ifs=[exp.If(this=ends, true=args[0].copy()), exp.If(this=exp.Not(this=ends.copy()), true=nothing)]
    )
    pieces = when(exp.EQ(this=args[1].copy(), expression=text("")), whole, function("split_part", *args))
    return when(zero, failing("INVALID_INDEX_OF_ZERO: split_part counts from 1", _kind("TEXT")), pieces)


def _regexp_replace(call: Call, args: list[exp.Expr]) -> exp.Expr:
    """Spark's $1 is \\1 in DuckDB; in Spark a backslash quotes the next character."""
    by = constant(call, 2)
    if not isinstance(by, str):
        raise refuse(call, "with a replacement that is no constant")
    # quoted characters, groups, plain characters
    pieces = re.findall(r"\\(.)|\$(\d)|([^\\$])", by, flags=re.DOTALL)
    rewritten = "".join(
        f"\\{group}" if group else (quoted or plain).replace("\\", "\\\\") for quoted, group, plain in pieces
    )
    return function("regexp_replace", args[0], args[1], text(rewritten), text("g"))


def _regexp_extract(call: Call, args: list[exp.Expr]) -> exp.Expr:
    if len(args) > 2 and not isinstance(constant(call, 2), int):
        raise refuse(call, "with a group that is no constant")
    return function("regexp_extract", args[0], args[1], args[2] if len(args) > 2 else integer(1))


def _chr(call: Call, args: list[exp.Expr]) -> exp.Expr:
    # Spark's chr counts modulo 256, and is empty below zero.
    code = cast(binary(exp.Mod, args[0], integer(256)), _kind("INT"))
    return when(exp.LT(this=args[0].copy(), expression=integer(0)), text(""), function("chr", code))


def _sha2(call: Call, args: list[exp.Expr]) -> exp.Expr:
    if constant(call, 1) not in (0, 256):
        raise refuse(call, "with other than 256 bits")
    return function("sha256", args[0])


STRING_FUNCTIONS: dict[str, Spelling] = {
    **same_names("upper lower concat_ws translate contains starts_with ends_with md5 sha1"),
    "like": like(exp.Like),
    "ilike": like(exp.ILike),
    "rlike": named("regexp_matches"),
    "trim": _trimmed("trim"),
    "ltrim": _trimmed("ltrim"),
    "rtrim": _trimmed("rtrim"),
    "length": _typed(named("length")),
    "octet_length": _typed(named("strlen")),
    "substr": _substr,
    "left": _count("left"),
    "right": _count("right"),
    "repeat": _modest(_count("repeat"), 1),
    "space": _modest(lambda call, args: function("repeat", text(" "), _at_least(0, args[0])), 0),
    "concat": concatenation(_concat),
    "concat_op": concatenation(_concat),
    "replace": _modest(
        lambda call, args: function("replace", args[0], args[1], args[2] if len(args) > 2 else text("")), 2
    ),
    "lpad": _modest(_padded("lpad"), 1),
    "rpad": _modest(_padded("rpad"), 1),
    "instr": _typed(named("instr")),
    "position": _position,
    "split_part": _split_part,
    "regexp_replace": _modest(_regexp_replace, 2),
    "regexp_extract": _regexp_extract,
    "ascii": _typed(named("ascii")),
    "chr": _chr,
    "sha2": _sha2,
}
