"""Grouped state."""
