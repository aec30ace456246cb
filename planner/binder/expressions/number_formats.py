"""TO_NUMBER and TRY_TO_NUMBER: formats such as '99,999.99', as a regular expression and a cast."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import NULL, STRING, Decimal
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.expressions.nodes import Cast, Expression, Literal

Caller = Callable[[str, Sequence[Expression], Span | None], Expression]
"""Makes the call of a scalar function."""

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
        f"^(?:{body}|<{body}>)$" if enclosed else f"^{body}$", Decimal(digits + scale, scale), enclosed
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
