"""Functions of places on the Earth, written with other functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.catalog.errors import Span
from penstock.catalog.types import BIGINT, DOUBLE, INT, STRING
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.expressions.nodes import Caller, Cast, Expression, Literal, conjunction

_RADIUS_KM = 6371.0
_BASE_32 = "0123456789bcdefghjkmnpqrstuvwxyz"
_MOST_CHARACTERS = 12
"""Of a geohash: 60 bits, half of them of the longitude. They name a place of 4 by 2 centimetres."""
_BITS = 30


def _haversine(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    """Return ``haversine(lat1, lon1, lat2, lon2)``: kilometres along a great circle, as in Snowflake."""
    lat1, lon1, lat2, lon2 = (call("radians", [arg], span) for arg in args)

    def chord(a: Expression, b: Expression) -> Expression:
        sine = call("sin", [call("divide", [call("subtract", [b, a], span), _number(2.0)], span)], span)
        return call("multiply", [sine, sine], span)

    cosines = call("multiply", [call("cos", [lat1], span), call("cos", [lat2], span)], span)
    across = call("multiply", [cosines, chord(lon1, lon2)], span)
    # rounding may lead beyond 1, of which ASIN has no value
    total = call("add", [chord(lat1, lat2), across], span)
    part = case_of([(call("greater", [total, _number(1.0)], span), _number(1.0))], total, span)
    angle = call("asin", [call("sqrt", [part], span)], span)
    return call("multiply", [_number(2.0 * _RADIUS_KM), angle], span)


def _geohash(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    """Return ``geohashEncode(longitude, latitude[, n])``: n characters of base 32, as in ClickHouse.
    Each is five bits, of the longitude and the latitude in turn. NULL for a place that is none.
    """
    degrees = [Cast(DOUBLE, arg.nullable, arg=arg, safe=False, span=span) for arg in args[:2]]
    cells = [_cell(degrees[0], 180.0, call, span), _cell(degrees[1], 90.0, call, span)]
    characters: list[Expression] = []
    for place in range(_MOST_CHARACTERS):
        # bits that former characters have taken: the longitude is the first
        taken = [(5 * place + 1) // 2, 5 * place // 2]
        three, two = (0, 1) if place % 2 == 0 else (1, 0)
        high = _bits(cells[three], _BITS - taken[three] - 3, 7, call, span)
        low = _bits(cells[two], _BITS - taken[two] - 2, 3, call, span)
        value = call("add", [call("multiply", [high, _whole(4)], span), low], span)
        at = Cast(INT, value.nullable, arg=call("add", [value, _whole(1)], span), safe=False, span=span)
        characters.append(call("substr", [_text(_BY_COORDINATE), at, Literal(INT, False, value=1)], span))
    inside = conjunction(
        tuple(
            call("less_equal", [call("abs", [degree], span), _number(most)], span)
            for degree, most in zip(degrees, (180.0, 90.0), strict=True)
        )
    )
    joined = call("concat", characters, span)
    if len(args) > 2:
        joined = call("left", [joined, args[2]], span)
    return case_of([(inside, joined)], Literal(STRING, True, value=None), span)


def _cell(degree: Expression, most: float, call: Caller, span: Span | None) -> Expression:
    """Return which of 2^30 equal parts from -most to most a degree lies in; the last has both its ends."""
    part = call("divide", [call("add", [degree, _number(most)], span), _number(2 * most)], span)
    floor = call("floor", [call("multiply", [part, _number(float(1 << _BITS))], span)], span)
    # TRY: a degree that is none, such as NaN, has no cell
    cell = Cast(BIGINT, True, arg=floor, safe=True, span=span)
    return call("least", [cell, _whole((1 << _BITS) - 1)], span)


def _bits(cell: Expression, shift: int, mask: int, call: Caller, span: Span | None) -> Expression:
    return call(
        "bitwise_and",
        [call("shiftright", [cell, Literal(INT, False, value=shift)], span), _whole(mask)],
        span,
    )


def _by_coordinate() -> str:
    """Return the letters of base 32 by three bits of one coordinate, then by two of the other."""
    letters = []
    for high in range(8):
        for low in range(4):
            value = (high & 4) << 2 | (low & 2) << 2 | (high & 2) << 1 | (low & 1) << 1 | high & 1
            letters.append(_BASE_32[value])
    return "".join(letters)


_BY_COORDINATE = _by_coordinate()


def _number(value: float) -> Expression:
    return Literal(DOUBLE, False, value=value)


def _whole(value: int) -> Expression:
    return Literal(BIGINT, False, value=value)


def _text(value: str) -> Expression:
    return Literal(STRING, False, value=value)


GEO_FUNCTIONS: dict[str, Callable[[Sequence[Expression], Caller, Span | None], Expression]] = {
    "geohashencode": _geohash,
    "haversine": _haversine,
}
