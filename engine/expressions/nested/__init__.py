"""Functions of arrays, maps and rows. It may import what engine/expressions may."""
