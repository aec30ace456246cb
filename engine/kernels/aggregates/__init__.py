"""Compiled updates of accumulators. It may import what engine/kernels may."""
