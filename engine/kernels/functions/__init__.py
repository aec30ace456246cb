"""Compiled loops of scalar functions over texts and times. It may import what engine/kernels may."""
