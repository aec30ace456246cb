"""Compiled loops that decode and encode Avro. It may import what engine/kernels may."""
