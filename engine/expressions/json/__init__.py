"""Functions of JSON. It may import what engine/expressions may."""
