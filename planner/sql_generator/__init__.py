"""Bounded plans as SQL text."""
