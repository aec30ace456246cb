"""Rewrites of the logical plan, one rule a file. In optimizer it may import properties."""
