"""TO_NUMBER, TRY_TO_NUMBER, TO_CHAR: formats such as '99,999.99', written with other functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.catalog.coercion import as_decimal
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import INT, NULL, STRING, Decimal
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.expressions.nodes import Caller, Cast, Expression, Literal, conjunction

_MOST_DIGITS = 38
# a sign or a dollar sign in front, digits in groups, a point and digits, a sign behind
_FORMAT = re.compile(
    r"(?P<front>(?:S|MI|\$)*)(?P<whole>[09]+(?:[,G][09]+)*)?(?:[.D](?P<part>[09]*))?(?P<behind>S|MI|PR)?"
)


@dataclass(frozen=True)
class NumberFormat:
    """A format of numbers: ``pattern`` is the regular expression of a text in it, ``kind`` the type of its
    number. ``enclosed``: a negative number is in angle brackets.
    """

    pattern: str
    kind: Decimal
    enclosed: bool
    groups: tuple[int, ...] = ()
    """The digits before the point, by groups."""
    filled: bool = False
    """Whether zeros are written in front."""
    pointed: bool = False
    front: str = ""
    """A sign in front: S, MI or nothing."""
    dollar: bool = False
    behind: str = ""
    """A sign behind: S, MI, PR or nothing."""


def number_format(written: str) -> NumberFormat | None:
    """Return the format that a text spells, None where it spells none.

    A sequence of digits that begins with 0 stands for as many digits, one that begins with 9 for as many or
    fewer.
    """
    match = _FORMAT.fullmatch(written.upper())
    if match is None:
        return None
    whole, part = match["whole"] or "", match["part"] or ""
    groups = [len(group) for group in re.split("[,G]", whole)] if whole else []
    digits, scale = sum(groups), len(part)
    signs = [match["front"].count("S"), match["front"].count("MI"), match["behind"] not in (None, "PR")]
    if not 0 < digits + scale <= _MOST_DIGITS or sum(signs) > 1 or match["front"].count("$") > 1:
        return None
    sign = {"S": "[+-]?", "MI": "-?", "$": r"\$"}
    front = "".join(sign[word] for word in re.findall(r"S|MI|\$", match["front"]))
    behind = sign.get(match["behind"] or "", "")
    number = _whole_pattern(groups, exact=whole.startswith("0"))
    # '.5' has the format '9.9'
    if scale and not whole.startswith("0"):
        number = f"(?:{number})?"
    if scale:
        number += rf"(?:\.[0-9]{{{scale}}})" if part.startswith("0") else rf"(?:\.[0-9]{{0,{scale}}})?"
    body = f"{front}{number}{behind}"
    enclosed = match["behind"] == "PR"
    return NumberFormat(
        f"^(?:{body}|<{body}>)$" if enclosed else f"^{body}$",
        Decimal(digits + scale, scale),
        enclosed,
        tuple(groups),
        whole.startswith("0"),
        match["part"] is not None,
        match["front"].replace("$", ""),
        "$" in match["front"],
        match["behind"] or "",
    )


def _whole_pattern(groups: Sequence[int], *, exact: bool) -> str:
    """Return the pattern of the digits before the point: any group may be the first one written."""
    if not groups:
        return ""
    full = ["".join(f",[0-9]{{{size}}}" for size in groups[i + 1 :]) for i in range(len(groups))]
    if exact:
        return f"[0-9]{{{groups[0]}}}{full[0]}"
    written = [f"[0-9]{{1,{size}}}{rest}" for size, rest in zip(groups, full, strict=True)]
    return f"(?:{'|'.join(written)})"


def to_number(args: Sequence[Expression], call: Caller, span: Span | None, *, tries: bool) -> Expression:
    """Return ``to_number(s, format)``: a DECIMAL, or an error for a text in another format; with ``tries``,
    NULL.
    """
    written = args[1].value if isinstance(args[1], Literal) else None
    spelled = number_format(written) if isinstance(written, str) else None
    if spelled is None or not isinstance(written, str):
        raise PenstockError(
            "SQL-1103",
            "to_number takes a constant format",
            span=span,
            hint="write to_number(s, '999,999.99'): digits 9 and 0, ',' '.' '$' 'S' 'MI' 'PR'",
            sqlstate="42804",
        )
    text = call("trim", [args[0]], span)
    # everything but digits, the point and the sign is left out
    digits = call("regexp_replace", [text, _text(r"[^0-9.]"), _text("")], span)
    amount = Cast(spelled.kind, True, arg=digits, safe=tries, span=span)
    negative = call("rlike", [text, _text("^<" if spelled.enclosed else "-")], span)
    value = case_of([(negative, call("negate", [amount], span))], amount, span)
    fits = call("rlike", [text, _text(spelled.pattern)], span)
    if tries:
        return case_of(
            [(fits, value)], Cast(spelled.kind, True, arg=Literal(NULL, True, value=None), safe=False), span
        )
    # a text that is no number: its cast says so, and names the format
    told = call("concat", [args[0], _text(f" in the format {written}")], span)
    wrong = Cast(spelled.kind, True, arg=told, safe=False, span=span)
    absent = call("is_null", [args[0]], span)
    nothing = Cast(spelled.kind, True, arg=Literal(NULL, True, value=None), safe=False)
    return case_of([(fits, value), (absent, nothing)], wrong, span)


def _text(value: str) -> Expression:
    return Literal(STRING, False, value=value)


def to_char(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    """Return ``to_char(number, format)`` as Spark writes it: of the format's width; signs of numbers that do
    not fit are written before as many #.
    """
    written = args[1].value if isinstance(args[1], Literal) else None
    spelled = number_format(written) if isinstance(written, str) else None
    kind = as_decimal(args[0].type)
    if spelled is None or kind is None:
        raise PenstockError(
            "SQL-1103",
            f"to_char takes a time, or a DECIMAL and a constant format of numbers; this is {args[0].type}",
            span=span,
            hint="write to_char(CAST(x AS DECIMAL(18, 2)), '999,999.99'), or format_number(x, 2)",
            sqlstate="42804",
        )
    number = Cast(kind, args[0].nullable, arg=args[0], safe=False, span=span)
    text = call("concat", [Cast(STRING, True, arg=call("abs", [number], span), safe=False), _text(".")], span)
    # digits that count: zeros in front and behind do not
    whole, part = (
        call("regexp_replace", [call("split_part", [text, _text("."), _count(turn)], span), *zeros], span)
        for turn, zeros in ((1, (_text("^0+"), _text(""))), (2, (_text("0+$"), _text(""))))
    )
    digits, scale = sum(spelled.groups), spelled.kind.scale
    negative = call("less", [number, Cast(kind, False, arg=_count(0), safe=False)], span)
    fits = conjunction(
        (
            call("less_equal", [call("length", [whole], span), _count(digits)], span),
            call("less_equal", [call("length", [part], span), _count(scale)], span),
        )
    )
    sign = _sign(spelled.front or ("<" if spelled.enclosed else ""), negative, span)
    shown = case_of([(fits, _grouped(spelled, whole, negative, call, span))], _no_digits(spelled), span)
    point = [_text(".")] * (scale > 0) + [call("rpad", [part, _count(scale), _text("0")], span)] * (scale > 0)
    behind = case_of([(fits, call("concat", point, span))], _text("." + "#" * scale), span) if scale else None
    width = digits + len(spelled.groups) - bool(spelled.groups) + scale + bool(scale)
    # the sign is right before the first digit, and blanks before it
    body = call("concat", [sign, shown, *([behind] if behind is not None else [])], span)
    reserved = 1 if spelled.front else 0
    if spelled.enclosed:
        padded = case_of(
            [(negative, call("concat", [_padded(body, width + 1, call, span), _text(">")], span))],
            call("concat", [_padded(body, width, call, span), _text("  ")], span),
            span,
        )
    else:
        padded = _padded(body, width + reserved, call, span)
    if spelled.pointed and not scale:
        padded = call("concat", [padded, _text(" ")], span)
    if spelled.behind in ("S", "MI"):
        padded = call("concat", [padded, _sign(spelled.behind, negative, span)], span)
    if spelled.dollar:
        padded = call("concat", [_text("$"), padded], span)
    absent = call("is_null", [args[0]], span)
    return case_of([(absent, Literal(STRING, True, value=None))], padded, span)


def _grouped(
    spelled: NumberFormat, whole: Expression, negative: Expression, call: Caller, span: Span | None
) -> Expression:
    """Return the digits before the point with their commas, without blanks in front."""
    digits, text = sum(spelled.groups), whole
    empty = call("equal", [whole, _text("")], span)
    if spelled.filled:
        text = call("lpad", [whole, _count(digits), _text("0")], span)
    elif spelled.pointed and digits:
        # ' .5' is ' 0.5', unless a sign is where the zero would be
        bare = [empty]
        if spelled.front == "MI" or spelled.enclosed:
            bare.append(call("not", [negative], span))
        if spelled.front != "S":
            text = case_of([(conjunction(tuple(bare)), _text("0"))], whole, span)
    # from the right: a comma where digits are before it
    pattern = "".join(rf"([0-9]{{{size}}})" for size in spelled.groups[1:])
    if not pattern:
        return text
    width = call("lpad", [text, _count(digits), _text("x")], span)
    first = f"([0-9x]{{{spelled.groups[0]}}})" + pattern.replace("[0-9]", "[0-9x]")
    commas = ",".join(f"${turn + 1}" for turn in range(len(spelled.groups)))
    joined = call("regexp_replace", [width, _text(f"^{first}$"), _text(commas)], span)
    return call("regexp_replace", [joined, _text("^[x,]+"), _text("")], span)


def _sign(word: str, negative: Expression, span: Span | None) -> Expression:
    """Return the sign of a format: S has one always, MI a blank, < nothing for a positive number."""
    if not word:
        return _text("")
    below = _text("<" if word == "<" else "-")
    above = _text({"S": "+", "MI": " "}.get(word, ""))
    return case_of([(negative, below)], above, span)


def _no_digits(spelled: NumberFormat) -> Expression:
    return _text(" ".join("#" * size for size in spelled.groups))


def _padded(text: Expression, width: int, call: Caller, span: Span | None) -> Expression:
    return call("lpad", [text, _count(width), _text(" ")], span)


def _count(value: int) -> Expression:
    return Literal(INT, False, value=value)
