"""Operators of WITH RECURSIVE."""
