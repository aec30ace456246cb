"""Weighted rows."""
