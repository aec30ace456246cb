"""Operators of window table functions and window aggregates. It may import what engine/operators may."""
