"""Compiled hash tables, linked lists and gathers by position. It may import what engine/kernels may."""
