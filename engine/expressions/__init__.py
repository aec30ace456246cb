"""Typed expressions compiled to Arrow kernels."""
