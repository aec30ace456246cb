"""Rows and messages as text."""
