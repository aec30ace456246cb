"""Declared options and promises, one connector a file."""
