"""Compiled hash tables and linked lists. It may import what engine/kernels may."""
