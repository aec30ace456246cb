"""Operators at the head of a chain."""
