"""Operators that stand alone, and the factory."""
