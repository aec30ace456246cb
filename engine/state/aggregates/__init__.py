"""Accumulators of aggregate functions, one family a file. It may import what engine/state may."""
