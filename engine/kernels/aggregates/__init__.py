"""Accumulator updates."""
