"""Functions of places on the Earth, written with other functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.catalog.errors import Span
from penstock.catalog.types import DOUBLE
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.expressions.nodes import Caller, Expression, Literal

_RADIUS_KM = 6371.0


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


def _number(value: float) -> Expression:
    return Literal(DOUBLE, False, value=value)


GEO_FUNCTIONS: dict[str, Callable[[Sequence[Expression], Caller, Span | None], Expression]] = {
    "haversine": _haversine
}
