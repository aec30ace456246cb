"""Numba loops over columns."""
