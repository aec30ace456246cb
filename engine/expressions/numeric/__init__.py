"""Arithmetic, comparison and hashes. It may import what engine/expressions may."""
