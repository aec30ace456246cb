"""Operators of GROUP BY. It may import what engine/operators may."""
