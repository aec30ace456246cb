"""Operators of OVER. It may import what engine/operators may."""
