"""Functions of strings. It may import what engine/expressions may."""
