"""Functions of IPv4 and IPv6 addresses in texts, written with other functions."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import BIGINT, INT, STRING
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.expressions.nodes import Caller, Cast, Expression, Literal, conjunction

_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = rf"^(?:{_BYTE}\.){{3}}{_BYTE}$"
_GREATEST = (1 << 32) - 1
_GROUP = "[0-9A-Fa-f]{1,4}"
_MOST_GROUPS = 7
"""Groups beside ``::``, which stands for one group at least."""


def _ipv6_pattern() -> str:
    """Return the pattern of IPv6 addresses. It looks nowhere ahead, because DuckDB's expressions cannot."""
    address = _ADDRESS[1:-1]
    forms = [f"(?:{_GROUP}:){{7}}{_GROUP}", f"(?:{_GROUP}:){{6}}{address}"]
    # so many groups before ::, the others behind it, where an IPv4 address at the end is two of them
    for before in range(_MOST_GROUPS + 1):
        left = f"{_GROUP}(?::{_GROUP}){{{before - 1}}}" if before else ""
        room = _MOST_GROUPS - before
        right = [f"{_GROUP}(?::{_GROUP}){{0,{room - 1}}}"] if room else []
        right += [f"(?:{_GROUP}:){{0,{room - 2}}}{address}"] if room > 1 else []
        forms.append(f"{left}::" + (f"(?:{'|'.join(right)})?" if right else ""))
    return f"^(?:{'|'.join(forms)})$"


_IPV6 = _ipv6_pattern()


def _is_ipv4(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    return call("rlike", [args[0], _text(_ADDRESS)], span)


def _is_ipv6(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    return call("rlike", [args[0], _text(_IPV6)], span)


def _number_of(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    """Return ``inet_aton(s)``: the address as a number, NULL of a text that is none."""
    total: Expression | None = None
    for turn, weight in enumerate((1 << 24, 1 << 16, 1 << 8, 1)):
        part = call("split_part", [args[0], _text("."), Literal(INT, False, value=turn + 1)], span)
        number = Cast(BIGINT, True, arg=part, safe=True, span=span)
        one = call("multiply", [number, _whole(weight)], span)
        total = one if total is None else call("add", [total, one], span)
    assert total is not None, "an address has four parts"
    return case_of([(_is_ipv4(args, call, span), total)], Literal(BIGINT, True, value=None), span)


def _text_of(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    """Return ``inet_ntoa(n)``: the address of a number, NULL of one that is none."""
    number = Cast(BIGINT, args[0].nullable, arg=args[0], safe=False, span=span)
    parts: list[Expression] = []
    for weight in (1 << 24, 1 << 16, 1 << 8, 1):
        byte = call("mod", [call("div", [number, _whole(weight)], span), _whole(256)], span)
        parts += [_text(".")] * bool(parts) + [Cast(STRING, byte.nullable, arg=byte, safe=False, span=span)]
    inside = _between(number, 0, _GREATEST, call, span)
    return case_of([(inside, call("concat", parts, span))], Literal(STRING, True, value=None), span)


def _in_range(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    """Return whether an address is one of a constant network such as '10.0.0.0/8'."""
    written = args[1].value if isinstance(args[1], Literal) else None
    try:
        network = ipaddress.IPv4Network(written, strict=False) if isinstance(written, str) else None
    except ValueError:
        network = None
    if network is None:
        raise PenstockError(
            "SQL-1103",
            "isIPAddressInRange takes a constant network of IPv4",
            span=span,
            hint="write isIPAddressInRange(s, '10.0.0.0/8')",
            sqlstate="42804",
        )
    low = int(network.network_address)
    return _between(_number_of(args[:1], call, span), low, low + network.num_addresses - 1, call, span)


def _between(value: Expression, low: int, high: int, call: Caller, span: Span | None) -> Expression:
    return conjunction(
        (
            call("greater_equal", [value, _whole(low)], span),
            call("less_equal", [value, _whole(high)], span),
        )
    )


def _text(value: str) -> Expression:
    return Literal(STRING, False, value=value)


def _whole(value: int) -> Expression:
    return Literal(BIGINT, False, value=value)


IP_FUNCTIONS: dict[str, Callable[[Sequence[Expression], Caller, Span | None], Expression]] = {
    "inet_aton": _number_of,
    "inet_ntoa": _text_of,
    "ipv4numtostring": _text_of,
    "ipv4stringtonumornull": _number_of,
    "is_ipv4": _is_ipv4,
    "is_ipv6": _is_ipv6,
    "isipv4string": _is_ipv4,
    "isipv6string": _is_ipv6,
    "isipaddressinrange": _in_range,
}
