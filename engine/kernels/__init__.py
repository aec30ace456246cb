"""Numba kernels over columns."""
