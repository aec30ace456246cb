"""Connectors, one a file."""
